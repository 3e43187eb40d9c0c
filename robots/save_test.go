package robots

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// saved returns all entries of a cache in a comparable form and order.
func saved(t testing.TB, c *Cache) (lines []string) {
	t.Helper()
	for entry := range c.All() {
		line, err := json.Marshal(entry)
		require.NoError(t, err)
		lines = append(lines, string(line))
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// restored returns a new cache with these entries, through JSON.
func restored(t testing.TB, lines []string) *Cache {
	t.Helper()
	c := NewCache(Options{MaxBytes: -1})
	for _, line := range lines {
		var entry Entry
		require.NoError(t, json.Unmarshal([]byte(line), &entry))
		require.NoError(t, c.Restore(entry), line)
	}
	return c
}

// requireSaved asserts that a cache restored from All yields the same entries.
func requireSaved(t testing.TB, c *Cache) {
	t.Helper()
	lines := saved(t, c)
	again := restored(t, lines)
	require.Equal(t, lines, saved(t, again))
	for entry := range c.All() { // without JSON, and a second time
		require.NoError(t, again.Restore(entry))
	}
	require.Equal(t, lines, saved(t, again))
}

func TestAllRestoresACache(t *testing.T) {
	old := NewCache(Options{Agent: "foo"})
	for i := range 20 {
		url := fmt.Sprintf("https://h%d.test/", i)
		status := []int{200, 404, 503, 0}[i%4]
		header := fields("ETag", fmt.Sprint(i))
		tell(t, old, ask(t, old, url, noon), whole(status, header, noAs), noon)
	}
	later := noon.Add(25 * time.Hour)
	flying := ask(t, old, "https://h0.test/", later)
	ask(t, old, "https://new.test/", noon)
	requireSaved(t, old)

	c := restored(t, saved(t, old))
	require.Equal(t, Stats{Hosts: 20, Bytes: c.Stats().Bytes}, c.Stats())
	require.Equal(t, 2, old.Stats().InFlight)
	for i := range 20 {
		url := fmt.Sprintf("https://h%d.test/", i)
		rules, known := c.Get(url, noon)
		require.True(t, known)
		require.Equal(t, i%4 < 2, rules.Allowed("/b"), i)
		entry, _ := c.Entry(url)
		require.Equal(t, i%4 > 1, entry.Failures > 0, i)
	}
	require.Equal(t, unflown(flying), unflown(ask(t, c, "https://h0.test/", later)), "as before")
	require.NoError(t, c.Restore(Entry{URL: where, Expires: noon, Failures: 1, FailedSince: noon}))
	answer, err := c.Lookup("https://h0.test/", later)
	require.NoError(t, err)
	require.Equal(t, Answer{}, answer, "a flight is not disturbed")
	for range old.All() {
		break
	}
}

// TestAllWhileTheCacheIsUsed: nothing that stays in the cache may be missing.
func TestAllWhileTheCacheIsUsed(t *testing.T) {
	c := NewCache(Options{MaxBytes: 1500 * 900})
	url := func(i int) string { return fmt.Sprintf("https://h%d.test/", i) }
	for i := range 1000 {
		tell(t, c, ask(t, c, url(i), noon), Response{Status: 404}, noon)
	}
	seen, n := make(map[string]int), 0
	for entry := range c.All() {
		seen[entry.URL]++
		// Others come and go, and these are used so that they stay.
		for i := range 10 {
			c.Get(url(i), noon)
		}
		tell(t, c, ask(t, c, url(2000+n), noon), Response{Status: 404}, noon)
		n++
	}
	require.Greater(t, n, 900)
	for i := range 10 {
		require.Positive(t, seen[url(i)+"robots.txt"], i)
	}
}

// randomEntry returns what some cache may know of a host.
func randomEntry(t *testing.T, rnd *rand.Rand, url string) Entry {
	t.Helper()
	c := NewCache(Options{})
	now := noon.Add(time.Duration(rnd.Int64N(int64(10 * time.Minute)))) // no two at the same time
	for range 1 + rnd.IntN(3) {
		header := fields("Cache-Control", "max-age=600", "ETag", fmt.Sprint(rnd.IntN(3)))
		body := "user-agent: *\ndisallow: /" + strings.Repeat("a", rnd.IntN(3)) + "\n"
		status := []int{200, 200, 404, 403, 500, 0, 304}[rnd.IntN(7)]
		tell(t, c, ask(t, c, url, now), whole(status, header, body), now)
		now = now.Add(time.Hour + time.Duration(rnd.Int64N(int64(100*time.Minute))))
	}
	entry, known := c.Entry(url)
	require.True(t, known)
	return entry
}

// TestRestoreInAnyOrder asserts that any order and repetition of entries gives the same result, and
// that restoring never makes a cache know less.
func TestRestoreInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var entries []Entry
		for range 1 + rnd.IntN(5) {
			entries = append(entries, randomEntry(t, rnd, page))
		}
		var want []string
		for range 4 {
			rnd.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
			c := NewCache(Options{})
			for _, entry := range append(entries, entries[rnd.IntN(len(entries))]) {
				require.NoError(t, c.Restore(entry))
			}
			requireSaved(t, c)
			got := saved(t, c)
			require.Equal(t, cmp.Or(len(want), 1), len(got))
			if want != nil {
				require.Equal(t, want, got, "seed %d", seed)
			}
			want = got
		}
		var last Entry
		for _, entry := range entries {
			if entry.Fetched.After(last.Fetched) {
				last = entry
			}
		}
		c := restored(t, want)
		merged, _ := c.Entry(page)
		require.True(t, merged.Fetched.Equal(last.Fetched), "seed %d", seed)
		at := merged.Expires.Add(-time.Nanosecond)
		rules, known := c.Get(page, at)
		require.True(t, known)
		newest, latest := NewCache(Options{}), time.Time{} // those that were answered last
		for _, entry := range entries {
			if entry.Fetched.Equal(last.Fetched) {
				require.NoError(t, newest.Restore(entry))
			}
			if entry.Fetched.Equal(last.Fetched) || entry.Failures > 0 {
				latest = later(latest, entry.Expires)
			}
		}
		require.False(t, merged.Expires.After(latest), "seed %d", seed)
		if entry, _ := newest.Entry(page); !last.Fetched.IsZero() {
			strict, _ := newest.Get(page, entry.Expires.Add(-time.Nanosecond))
			for _, path := range []string{"/", "/a", "/aa"} {
				require.False(t, rules.Allowed(path) && !strict.Allowed(path), "seed %d: %s", seed, path)
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// TestTwoThatForbid are merged into one that forbids: an older file, and its end with a failure
// since then. The expiry is not that of what no longer counts.
func TestTwoThatForbid(t *testing.T) {
	file := Entry{URL: where, Status: 200, Fetched: noon, Expires: noon.Add(day), Source: where,
		Body: []byte("user-agent: *\ndisallow: /\n")}
	gone := Entry{URL: where, Status: 404, Fetched: noon.Add(time.Minute), Expires: noon.Add(6 * time.Minute)}
	failed := gone
	failed.Status, failed.Failures = 503, 1
	failed.FailedSince, failed.Expires = noon.Add(7*time.Minute), noon.Add(12*time.Minute)
	for newer, allowed := range map[*Entry]bool{&gone: true, &failed: false} {
		for _, entries := range [][]Entry{{file, *newer}, {*newer, file}} {
			c := NewCache(Options{})
			for _, entry := range entries {
				require.NoError(t, c.Restore(entry))
			}
			rules, known := c.Get(page, newer.Expires.Add(-1))
			require.True(t, known)
			require.Equal(t, allowed, rules.Allowed("/a"))
			_, known = c.Get(page, newer.Expires)
			require.False(t, known)
		}
	}
}

// A host says that its file is gone. Neither an older copy, restored later, nor another process's
// record of a failure may override that.
func TestTheNewerStays(t *testing.T) {
	file := Entry{URL: where, Status: 200, Fetched: noon, Expires: noon.Add(time.Hour), Source: where,
		Body: []byte(noAs)}
	gone := Entry{URL: where, Status: 404, Fetched: noon.Add(2 * time.Hour), Expires: noon.Add(3 * time.Hour)}
	failed := Entry{URL: where, Failures: 2, FailedSince: noon.Add(time.Hour), Expires: noon.Add(4 * time.Hour)}
	for _, tt := range []struct {
		entries []Entry
		allowed bool
		status  int
	}{
		{[]Entry{gone, file}, true, 404},
		{[]Entry{file, gone}, true, 404},
		{[]Entry{file, failed}, false, 0},
		{[]Entry{failed, file}, false, 0},
		{[]Entry{failed}, false, 0},
		{[]Entry{failed, gone}, false, 0},
	} {
		c := NewCache(Options{})
		for _, entry := range tt.entries {
			require.NoError(t, c.Restore(entry))
		}
		rules, known := c.Get(page, noon.Add(150*time.Minute))
		require.True(t, known)
		require.Equal(t, tt.allowed, rules.Allowed("/a"), "%+v", tt)
		entry, _ := c.Entry(page)
		require.Equal(t, tt.status, entry.Status)
	}
}

func TestRestoreKeepsTheBound(t *testing.T) {
	c := NewCache(Options{MaxBytes: 64 << 10})
	for i := range 1000 {
		require.NoError(t, c.Restore(Entry{URL: fmt.Sprintf("https://h%d.test/robots.txt", i), Status: 200,
			Fetched: noon, Expires: noon, Source: where, Body: []byte(noAs)}))
		require.LessOrEqual(t, c.Stats().Bytes, 64<<10)
	}
	require.Greater(t, c.Stats().Hosts, 20)
}

// TestRestoredRulesKeepTheBound: compiled rules take memory too.
func TestRestoredRulesKeepTheBound(t *testing.T) {
	const bound = 8 << 20
	file := "user-agent: *\n" + strings.Repeat("disallow: /\xff*\n", 5000)
	c := NewCache(Options{MaxBytes: bound})
	before := liveBytes()
	for i := range 100 {
		url := fmt.Sprintf("https://h%d.test", i)
		require.NoError(t, c.Restore(Entry{
			URL: url + "/robots.txt", Source: url + "/robots.txt", Body: []byte(file), Status: 200,
			Fetched: noon, Expires: noon.Add(time.Hour),
		}))
	}
	for i := range 100 {
		_, _ = c.Get(fmt.Sprintf("https://h%d.test/", i), noon)
	}
	require.LessOrEqual(t, c.Stats().Bytes, bound)
	require.Less(t, liveBytes()-before, int64(bound+bound/4))
	require.Greater(t, c.Stats().Hosts, 5)
	runtime.KeepAlive(c)
}

// TestRulesAreCompiledBefore: a long file takes a while to compile, during which nobody could use the
// cache if that were left to the first use.
func TestRulesAreCompiledBefore(t *testing.T) {
	c := NewCache(Options{Agent: "foo"})
	e := Entry{URL: where, Status: 200, Fetched: noon, Expires: noon, Source: where, Body: []byte(noAs)}
	require.NoError(t, c.Restore(e))
	file := c.hosts["https://h.test"].file
	size := file.Size()
	require.Greater(t, size, robotstxt.Parse(e.Body).Size())
	_ = file.Rules("foo")
	require.Equal(t, size, file.Size(), "compiled already")
}

// A raw body, as from an archive, is cleaned like that of a response.
func TestRestoreParses(t *testing.T) {
	c := NewCache(Options{})
	require.NoError(t, c.Restore(Entry{URL: where, Status: 200, Fetched: noon, Expires: noon.Add(time.Hour),
		Source: where, Body: []byte("\xEF\xBB\xBF" + noAs + long)}))
	rules, known := c.Get(page, noon)
	require.True(t, known)
	require.False(t, rules.Allowed("/a"))
	require.LessOrEqual(t, len(rules.File().String()), robotstxt.MaxSize)
	requireSaved(t, c)
}

func TestRestoreRefusesWhatCannotBe(t *testing.T) {
	good := Entry{URL: where, Status: 200, Fetched: noon, Expires: noon, Source: where, Body: []byte(noAs)}
	for field, spoil := range map[string]func(e *Entry){
		"URL":          func(e *Entry) { e.URL = "https://H.test/robots.txt" },
		"Expires":      func(e *Entry) { e.Expires = time.Time{} },
		"Failures":     func(e *Entry) { e.Failures = -1; e.FailedSince = noon },
		"Fetched":      func(e *Entry) { e.Fetched = time.Time{} },
		"Status":       func(e *Entry) { e.Status = 503 },
		"Source":       func(e *Entry) { e.Source = "" },
		"Reason":       func(e *Entry) { e.Reason = "it did not fail" },
		"ETag":         func(e *Entry) { e.ETag = "a\nb" },
		"LastModified": func(e *Entry) { e.LastModified = "a\x00" },
	} {
		c := NewCache(Options{})
		bad := good
		spoil(&bad)
		require.ErrorContains(t, c.Restore(bad), field)
		require.Zero(t, c.Stats(), field)
		require.NoError(t, c.Restore(good))
	}
	for _, bad := range []Entry{
		{}, {URL: "about:blank"}, {URL: page, Expires: noon}, {URL: where, Expires: noon},
		{URL: where, Expires: noon, Failures: math.MaxInt, FailedSince: noon},
		{URL: where, Expires: noon, Fetched: noon, Status: 200, Source: "\xff no URL\n"},
		{URL: where, Expires: noon, Fetched: noon, Status: 200, Source: "file:///etc/passwd"},
		{URL: where, Expires: noon, Fetched: noon, Status: 200, Source: where + "?" + endless},
		{URL: where, Expires: noon, Failures: 1}, {URL: where, Expires: noon, FailedSince: noon, Fetched: noon},
		{URL: where, Expires: noon, Failures: 1, FailedSince: noon, Source: where},
		{URL: where, Expires: noon, Failures: 1, FailedSince: noon, ETag: "x"},
		{URL: where, Expires: noon, Failures: 1, FailedSince: noon, Reason: long},
		{URL: where, Expires: noon, Fetched: noon, Status: 200}, {URL: where, Expires: noon, Fetched: noon, Status: 304},
		{URL: where, Expires: noon, Fetched: noon, Status: 404, Source: where, Body: []byte(noAs)},
	} {
		require.Error(t, NewCache(Options{}).Restore(bad), "%+v", bad)
	}
}

// FuzzRestore asserts that whatever JSON makes an Entry of is refused, or survives to be saved and
// restored.
func FuzzRestore(f *testing.F) {
	c := NewCache(Options{})
	for i, status := range []int{200, 403, 404, 503} {
		url := fmt.Sprintf("https://h%d.test/", i)
		tell(f, c, ask(f, c, url, noon), whole(status, fields("ETag", `"x"`), noAs), noon)
	}
	for _, line := range saved(f, c) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var entry Entry
		if json.Unmarshal(line, &entry) != nil {
			t.Skip()
		}
		c := NewCache(Options{})
		if c.Restore(entry) == nil {
			requireSaved(t, c)
		} else if c.Stats() != (Stats{}) {
			t.Errorf("%+v was refused, and left something", entry)
		}
	})
}

// The loop that every caller writes.
func TestJSONLines(t *testing.T) {
	old := NewCache(Options{})
	tell(t, old, ask(t, old, page, noon), whole(200, nil, noAs), noon)
	var file strings.Builder
	for entry := range old.All() {
		require.NoError(t, json.NewEncoder(&file).Encode(entry))
	}
	c, lines := NewCache(Options{}), json.NewDecoder(strings.NewReader(file.String()))
	for {
		var entry Entry
		err := lines.Decode(&entry)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.NoError(t, c.Restore(entry))
	}
	require.Equal(t, saved(t, old), saved(t, c))
}
