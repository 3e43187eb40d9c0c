package robots

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHostsAreKeptApart(t *testing.T) {
	c := NewCache(Options{Agent: "foo"})
	file := []byte("user-agent: foo\ndisallow: /a\nuser-agent: *\ndisallow: /b\n")
	got := tell(t, c, ask(t, c, page, noon), Response{200, nil, file}, noon)
	require.False(t, got.allows("/a"))
	require.False(t, got.File.Rules("bar").Allowed("/b"), "other agents have their own")
	for _, url := range []string{
		"http://h.test/a", "https://h.test:8443/a", "https://www.h.test/a", "https://h.test./",
	} {
		ask(t, c, url, noon)
	}
	for _, url := range []string{
		"https://h.test", "https://h.test?x", "HTTPS://u@H.test:443/x", "https://h.test:/",
	} {
		answer, err := c.Lookup(url, noon)
		require.NoError(t, err)
		require.Equal(t, got, answer, url)
	}
	_, err := c.Lookup("mailto:a@h.test", noon)
	require.ErrorIs(t, err, ErrLocate)
	_, err = c.Store(Request{}, Response{}, noon)
	require.ErrorIs(t, err, ErrLocate)
	require.ErrorIs(t, c.Restore(Entry{}), ErrLocate)
	c.Abandon(Request{})
}

func TestOneFlightPerHost(t *testing.T) {
	c := NewCache(Options{Patience: time.Minute})
	req := ask(t, c, page, noon)
	state := func(now time.Time) State {
		answer, err := c.Lookup(page, now)
		require.NoError(t, err)
		return answer.State
	}
	require.Equal(t, InFlight, state(noon))
	require.Equal(t, InFlight, state(noon.Add(time.Minute-1)))

	c.Abandon(Request{For: where, URL: "https://other.test/"})
	require.Equal(t, InFlight, state(noon), "another request than the one that is out")
	c.Abandon(req)
	require.Equal(t, Needed, state(noon), "given back")

	require.Equal(t, Needed, state(noon.Add(time.Minute)), "lost")
	require.Equal(t, InFlight, state(noon.Add(time.Minute)))

	stray, err := c.Store(Request{For: where, URL: "https://other.test/"},
		Response{200, nil, []byte(noAs)}, noon)
	require.NoError(t, err)
	require.Equal(t, InFlight, stray.State, "ignored")
	require.True(t, tell(t, c, req, Response{Status: 404}, noon).allows("/a"))
	c.Abandon(req)
	require.Equal(t, Fresh, state(noon), "too late")
}

func TestEndlessPatience(t *testing.T) {
	c := NewCache(Options{Patience: -1})
	req := ask(t, c, page, noon)
	later := noon.Add(100 * 365 * day)
	answer, err := c.Lookup(page, later)
	require.NoError(t, err)
	require.Equal(t, InFlight, answer.State)
	require.True(t, tell(t, c, req, Response{Status: 404}, later).allows("/a"))
}

// Who restarts may hold answers to requests of which the new cache knows nothing.
func TestUnaskedAnswersAreWelcome(t *testing.T) {
	c := NewCache(Options{})
	req := Request{For: where, URL: "https://other.test/x", Hop: 5}
	answer, err := c.Store(req, Response{301, fields("Location", "/y"), nil}, noon)
	require.NoError(t, err)
	require.Equal(t, Fresh, answer.State)
	got := tell(t, c, Request{For: where, URL: where}, Response{200, nil, []byte(noAs)}, noon)
	require.False(t, got.allows("/a"))

	other := Request{For: "https://other.test/robots.txt", URL: "https://other.test/", ETag: "x"}
	got = tell(t, c, other, Response{Status: 304}, noon)
	require.True(t, got.Unreachable, "what it confirms is not here")
}

func TestCacheKeepsItsBound(t *testing.T) {
	const bound = 256 << 10
	c := NewCache(Options{MaxBytes: bound})
	url := func(i int) string { return fmt.Sprintf("https://h%d.test/", i) }
	for i := range 500 {
		now := noon.Add(time.Duration(i) * time.Second)
		tell(t, c, ask(t, c, url(i), now), Response{200, nil, []byte(typicalFile)}, now)
		kept, err := c.Lookup(url(0), now)
		require.NoError(t, err)
		require.Equal(t, Fresh, kept.State, "what is used stays")
		require.LessOrEqual(t, c.Stats().Bytes, bound)
	}
	require.Greater(t, c.Stats().Hosts, 50)
	require.Less(t, c.Stats().Hosts, 200)
	ask(t, c, url(1), noon)

	small := NewCache(Options{MaxBytes: 1})
	require.Equal(t, Fresh, tell(t, small, ask(t, small, page, noon), Response{Status: 404}, noon).State)
	require.Equal(t, 1, small.Stats().Hosts, "the last answer is always there")
	endless := NewCache(Options{MaxBytes: -1})
	for i := range 10 {
		tell(t, endless, ask(t, endless, url(i), noon), Response{200, nil, hostileFile()}, noon)
	}
	require.Equal(t, 10, endless.Stats().Hosts)
}

// The bound is on an estimate, which must not be below what is really taken.
func TestCostIsNoLie(t *testing.T) {
	for name, body := range map[string][]byte{
		"typical": []byte(typicalFile),
		"hostile": hostileFile(),
		"nothing": nil,
		"names":   fileOf("user-agent:N\nallow:/\n"),
		"notes":   fileOf("a:b\n"),
		"literal": []byte("user-agent: *\n" + strings.Repeat("disallow: /abcdef\n", 64)),
	} {
		stats := 0
		n := 1 + 200_000/(len(body)+1000)
		live := liveHeap(2, func() *Cache {
			c := NewCache(Options{MaxBytes: -1})
			for i := range n {
				url := fmt.Sprintf("https://h%d.test/", i)
				tell(t, c, ask(t, c, url, noon), Response{200, nil, body}, noon)
			}
			stats = c.Stats().Bytes
			return c
		})
		require.Less(t, live, stats, name)
		require.Greater(t, live, stats/8, name)
	}
}

func TestEntriesRestoreACache(t *testing.T) {
	old := NewCache(Options{Agent: "foo"})
	for i := range 20 {
		url := fmt.Sprintf("https://h%d.test/", i)
		status := []int{200, 404, 503, 0}[i%4]
		header := fields("ETag", fmt.Sprint(i))
		tell(t, old, ask(t, old, url, noon), Response{status, header, []byte(noAs)}, noon)
	}
	flying := ask(t, old, "https://h0.test/", noon.Add(25*time.Hour))
	ask(t, old, "https://new.test/", noon)

	c := NewCache(Options{Agent: "foo"})
	for entry := range old.Entries() {
		require.NoError(t, c.Restore(entry))
	}
	require.Equal(t, 20, c.Stats().Hosts)
	require.Zero(t, c.Stats().InFlight)
	require.Equal(t, 2, old.Stats().InFlight)
	for i := range 20 {
		got, err := c.Lookup(fmt.Sprintf("https://h%d.test/", i), noon)
		require.NoError(t, err)
		require.Equal(t, Fresh, got.State)
		require.Equal(t, i%4 < 2, got.allows("/b"), i)
		require.Equal(t, i%4 > 1, got.Unreachable, i)
	}
	require.Equal(t, flying, ask(t, c, "https://h0.test/", noon.Add(25*time.Hour)), "as before")
	require.NoError(t, c.Restore(Entry{URL: "https://h0.test/"}))
	answer, err := c.Lookup("https://h0.test/", noon)
	require.NoError(t, err)
	require.Equal(t, InFlight, answer.State, "a flight is not disturbed")
	for range old.Entries() {
		break
	}
}

// Restored in the order of Entries, what was used last is what stays last.
func TestEntriesComeInOrderOfUse(t *testing.T) {
	c := NewCache(Options{})
	for _, name := range []string{"a", "b", "c"} {
		url := "https://" + name + ".test/"
		tell(t, c, ask(t, c, url, noon), Response{Status: 404}, noon)
	}
	_, err := c.Lookup("https://a.test/", noon)
	require.NoError(t, err)
	var order string
	for entry := range c.Entries() {
		order += entry.URL[len("https://"):][:1]
	}
	require.Equal(t, "bca", order)
}

// TestCacheModel compares the cache with a map from host to what was last said, under random
// answers at random times.
func TestCacheModel(t *testing.T) {
	type known struct {
		copied      bool // there is a copy, which forbids /a
		unreachable bool
		until       time.Time
	}
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		c := NewCache(Options{MaxBytes: -1})
		model := make(map[string]known)
		now := noon
		for range 200 {
			now = now.Add(time.Duration(rnd.IntN(7200)) * time.Second)
			url := "https://" + pick(rnd, "a", "b", "c", "d") + ".test/"
			answer, err := c.Lookup(url, now)
			require.NoError(t, err)
			m := model[url]
			require.Equal(t, now.Before(m.until), answer.State == Fresh, "seed %d", seed)
			if answer.State == Needed {
				status := []int{200, 200, 404, 500, 429, 0, 304}[rnd.IntN(7)]
				header := fields("ETag", "x", "Cache-Control", "max-age=7200")
				answer, err = c.Store(answer.Request, Response{status, header, []byte(noAs)}, now)
				require.NoError(t, err)
				m = known{copied: m.copied, until: answer.Until}
				switch {
				case status == 200, status == 404:
					m.copied = status == 200
				case status != 304 || !m.copied:
					m.unreachable = true
				}
				model[url] = m
			}
			require.Equal(t, m.unreachable, answer.Unreachable, "seed %d", seed)
			require.Equal(t, !m.copied && !m.unreachable, answer.allows("/a"), "seed %d", seed)
			require.Equal(t, m.copied || !m.unreachable, answer.allows("/b"), "seed %d", seed)
		}
	}
}
