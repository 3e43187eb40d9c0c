package archive

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/allen"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// openDir opens an archive on disk that starts fast.
func openDir(t testing.TB, dir string, opts Options) *Archive {
	t.Helper()
	if opts.Level == 0 {
		opts.Level = 1
	}
	opts.Compressors = max(opts.Compressors, 1)
	a, err := Open(dir, opts)
	require.NoError(t, err)
	return a
}

// commitAt sets how many entries are committed together. Opening an archive may have begun a commit.
func commitAt(a *Archive, entries int) {
	a.index.mu.Lock()
	defer a.index.mu.Unlock()
	a.index.limit = entries
}

// body reads the body of a version.
func body(t testing.TB, a *Archive, v Version) string {
	t.Helper()
	rec, err := a.Read(v.Content)
	require.NoError(t, err)
	h, err := rec.HTTP()
	require.NoError(t, err)
	text, err := io.ReadAll(h.Body)
	require.NoError(t, err)
	require.NoError(t, rec.Close())
	return string(text)
}

// visit is a capture of a model.
type visit struct {
	url    string
	at     time.Time
	status int
	body   string // "" for a 304
}

func (v visit) capture() Capture {
	c := page(v.url, v.body)
	c.Time = v.at
	c.Head = fmt.Appendf(nil, "HTTP/1.1 %d X\r\nContent-Type: text/html\r\n\r\n", v.status)
	return c
}

// model is a history sorted by URL and time.
type model []visit

func (m model) of(url string) (list []visit) {
	for _, v := range m {
		if v.url == url {
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b visit) int { return a.at.Compare(b.at) })
	return list
}

// content returns the body that was valid at version i of a list.
func content(list []visit, i int) (string, bool) {
	for ; i >= 0; i-- {
		if v := list[i]; v.status == 200 {
			return v.body, true
		}
	}
	return "", false
}

// randomVisits returns a history of few URLs in the order of time, with many unchanged pages.
func randomVisits(r *rand.Rand, n int) model {
	var m model
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range n {
		at = at.Add(time.Duration(1+r.Int64N(int64(36*time.Hour/1000))) * time.Microsecond)
		v := visit{url: randomURL(r), at: at, status: 200}
		switch r.IntN(8) {
		case 0:
			v.status, v.body = 404, "not here"
		case 1:
			v.status = 304
		default:
			v.body = fmt.Sprintf("content %d of %s", r.IntN(3), v.url)
		}
		m = append(m, v)
	}
	return m
}

func randomURL(r *rand.Rand) string {
	hosts := []string{"a.test", "www.a.test", "b.test", "a.test:81"}
	paths := []string{"", "d/", "d/1", "d/2"}
	return fmt.Sprintf("http://%s/%s", hosts[r.IntN(4)], paths[r.IntN(4)])
}

// requireModel requires that lookups match the model, for all URLs and around all times.
func requireModel(t *testing.T, a *Archive, m model) {
	t.Helper()
	urls := map[string]bool{}
	for _, v := range m {
		urls[v.url] = true
	}
	for url := range urls {
		list := m.of(url)
		versions, err := a.Versions(url)
		require.NoError(t, err)
		require.Len(t, versions, len(list), url)
		for i, v := range list {
			requireVersion(t, a, versions[i], list, i)
			for _, at := range []time.Time{v.at, v.at.Add(time.Microsecond)} {
				if got, err := a.At(url, at); i+1 == len(list) || at.Before(list[i+1].at) {
					require.NoError(t, err)
					require.Equal(t, versions[i], got)
				}
			}
		}
		_, err = a.At(url, list[0].at.Add(-time.Microsecond))
		require.ErrorIs(t, err, ErrNotFound)
		last, err := a.At(url, time.Time{})
		require.NoError(t, err)
		require.Equal(t, versions[len(list)-1], last)
	}
}

func requireVersion(t *testing.T, a *Archive, got Version, list []visit, i int) {
	t.Helper()
	want := list[i]
	require.Equal(t, want.url, got.URL)
	require.Equal(t, want.at, got.Time)
	require.Equal(t, want.status, got.Status)
	if i+1 < len(list) {
		require.Equal(t, list[i+1].at, got.Until)
	} else {
		require.True(t, got.Until.IsZero())
	}
	text, known := want.body, true
	if want.status == 304 {
		text, known = content(list, i)
	}
	require.Equal(t, known, got.Content != Location{}, "%+v", got)
	if known {
		require.Equal(t, text, body(t, a, got))
		sum := sha1.Sum([]byte(text))
		require.Equal(t, sha1Digest(&sum), got.digest)
		require.Equal(t, "text/html", got.Media)
	}
}

// Random histories, with random syncs and reopens, with several options.
func TestVersionsMatchModel(t *testing.T) {
	for i, opts := range []Options{{}, {Compression: warc.Zstd, MaxFile: 4000},
		{Level: -1, MaxFile: 9000}} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("options=%d/seed=%d", i, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				dir := t.TempDir()
				m := randomVisits(r, 80)
				a := openDir(t, dir, opts)
				commitAt(a, 7) // so that it is committed often
				for i, v := range m {
					_, err := a.Append(v.capture())
					require.NoError(t, err)
					switch r.IntN(20) {
					case 0:
						require.NoError(t, a.Sync())
					case 1:
						require.NoError(t, a.Close())
						a = openDir(t, dir, opts)
					case 2:
						requireModel(t, a, m[:i+1])
					}
				}
				requireModel(t, a, m)
				require.NoError(t, a.Close())
				requireRebuilt(t, dir, opts)
			})
		}
	}
}

// requireRebuilt requires that the index rebuilt from the WARC files is the same.
func requireRebuilt(t *testing.T, dir string, opts Options) {
	t.Helper()
	before := indexContents(t, dir)
	old, err := filepath.Glob(filepath.Join(dir, indexName+"*"))
	require.NoError(t, err)
	require.NotEmpty(t, old)
	for _, name := range old {
		require.NoError(t, os.Remove(name))
	}
	require.NoError(t, openDir(t, dir, opts).Close())
	require.Equal(t, before, indexContents(t, dir))
}

// A repeated body is stored once.
func TestRepeatsBecomeRevisits(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	long := strings.Repeat("some text ", 100)
	times := []visit{
		{"http://a.test/", someTime, 200, long},
		{"http://a.test/", someTime.Add(time.Hour), 200, long},
		{"http://a.test/", someTime.Add(2 * time.Hour), 304, ""},
		{"http://a.test/", someTime.Add(3 * time.Hour), 200, "other"},
		{"http://a.test/", someTime.Add(4 * time.Hour), 200, long},
		{"http://b.test/", someTime.Add(5 * time.Hour), 200, long},
		{"http://c.test/", someTime, 304, ""},
	}
	var types, profiles, refers []string
	for _, v := range times {
		loc, err := a.Append(v.capture())
		require.NoError(t, err)
		rec, err := a.Read(loc)
		require.NoError(t, err)
		types = append(types, rec.Type())
		profiles = append(profiles, rec.Get("WARC-Profile"))
		refers = append(refers, rec.Get("WARC-Refers-To-Date"))
		require.NoError(t, rec.Close())
	}
	require.Equal(t, []string{"response", "revisit", "revisit", "response", "response", "response",
		"response"}, types, "only the previous version counts")
	require.Equal(t, []string{"", warc.ProfileIdentical, warc.ProfileNotModified, "", "", "", ""},
		profiles)
	require.Equal(t, "2026-11-03T03:05:06.007008Z", refers[1])
	require.EqualValues(t, 2, a.Stats().Revisits)
	v, err := a.At("http://c.test/", time.Time{})
	require.NoError(t, err)
	require.Equal(t, Unchanged, v.Kind)
	require.Equal(t, Location{}, v.Content, "its body was never appended")
	_, err = a.Read(v.Content)
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, a.Close())
}

// A 304 may be appended before the version that it repeats.
func TestRevisitBeforeItsContent(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	for _, v := range []visit{
		{"http://a.test/", someTime.Add(time.Hour), 304, ""},
		{"http://a.test/", someTime, 200, "one"},
	} {
		_, err := a.Append(v.capture())
		require.NoError(t, err)
	}
	for range 2 {
		v, err := a.At("http://a.test/", time.Time{})
		require.NoError(t, err)
		require.Equal(t, Unchanged, v.Kind)
		require.Equal(t, "one", body(t, a, v))
		require.NoError(t, a.Close())
		_, err = Repair(dir, Options{})
		require.NoError(t, err)
		a = openDir(t, dir, Options{})
	}
	require.NoError(t, a.Close())
}

// A revisit may refer to another URL, as wget and other tools write it.
func TestRevisitOfAnotherURL(t *testing.T) {
	dir := t.TempDir()
	enc, err := warc.NewEncoder(warc.EncoderOptions{})
	require.NoError(t, err)
	var file bytes.Buffer
	sum := sha1.Sum([]byte("one"))
	head := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n")
	for _, h := range []warc.Head{
		{Type: "response", TargetURI: "http://a.test/", Date: someTime},
		{Type: "revisit", TargetURI: "http://b.test/", Date: someTime.Add(time.Hour),
			Profile: warc.ProfileIdentical, RefersToURI: "http://a.test/", RefersToDate: someTime},
		{Type: "revisit", TargetURI: "http://c.test/", Date: someTime.Add(time.Hour),
			Profile:     warc.ProfileIdentical,
			RefersToURI: "http://lost.test/", RefersToDate: someTime},
		{Type: "revisit", TargetURI: "http://d.test/", Date: someTime.Add(time.Hour),
			Profile: warc.ProfileIdentical},
	} {
		h.Payload, h.ContentType = &sum, "application/http; msgtype=response"
		parts := [][]byte{head}
		if h.Type == "response" {
			parts = append(parts, []byte("one"))
		}
		_, _, err := enc.Encode(&file, &h, parts...)
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "foreign.warc.gz"), file.Bytes(), 0o644))
	a := openDir(t, dir, Options{})
	v, err := a.At("http://b.test/", time.Time{})
	require.NoError(t, err)
	require.Equal(t, "http://b.test/", v.URL)
	require.Equal(t, "one", body(t, a, v))
	for _, url := range []string{"http://c.test/", "http://d.test/"} {
		v, err = a.At(url, time.Time{})
		require.NoError(t, err)
		require.Equal(t, Location{}, v.Content)
	}
	s, err := a.Snapshot(Query{})
	require.NoError(t, err)
	require.Len(t, documents(t, s), 2)
	require.NoError(t, s.Close())
	require.NoError(t, a.Close())
}

// Goroutines append, look up, take snapshots and verify concurrently.
func TestConcurrentUse(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{Compressors: 3, MaxFile: 20_000})
	commitAt(a, 20)
	var writers, readers sync.WaitGroup
	const each = 60
	for g := range 3 {
		writers.Go(func() {
			for i := range each {
				at := someTime.Add(time.Duration(i) * time.Hour)
				url := fmt.Sprintf("http://%d.test/", i%7)
				c := visit{url, at, 200, fmt.Sprint("body ", i/3)}.capture()
				c.Time = c.Time.Add(time.Duration(g))
				if _, err := a.Append(c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	for _, ask := range []func() error{
		func() error { _, err := a.Versions("http://3.test/"); return err },
		func() error { return a.Sync() },
		func() error {
			s, err := a.Snapshot(Query{Relations: allen.Found})
			if err != nil {
				return err
			}
			for doc, err := range s.Documents() {
				if err != nil {
					return err
				}
				rec, err := doc.Record()
				if err != nil {
					return err
				}
				if err := rec.Close(); err != nil {
					return err
				}
			}
			return s.Close()
		},
		func() error {
			_, err := a.Verify(t.Context(), func(f Fault) { t.Error(f) })
			return err
		},
	} {
		readers.Go(func() {
			for {
				if err := ask(); err != nil {
					t.Error(err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	n := 0
	for _, err := range a.All() {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 3*each, n)
	require.NoError(t, a.Close())
}

// Captures may be appended out of order. An unchanged version keeps its content.
func TestVersionInBetween(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	for _, v := range []visit{
		{"http://a.test/", someTime, 200, "one"},
		{"http://a.test/", someTime.Add(2 * time.Hour), 200, "one"},
		{"http://a.test/", someTime.Add(time.Hour), 200, "two"},
	} {
		_, err := a.Append(v.capture())
		require.NoError(t, err)
	}
	versions, err := a.Versions("http://a.test/")
	require.NoError(t, err)
	var got []string
	for _, v := range versions {
		got = append(got, v.Kind.String()+" "+body(t, a, v))
	}
	require.Equal(t, []string{"changed one", "changed two", "unchanged one"}, got)
	require.NoError(t, a.Close())
}

// Two captures in the same microsecond are two versions.
func TestVersionsOfOneInstant(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	for _, text := range []string{"one", "two"} {
		_, err := a.Append(page("http://a.test/", text))
		require.NoError(t, err)
	}
	versions, err := a.Versions("http://a.test/")
	require.NoError(t, err)
	require.Len(t, versions, 2)
	v, err := a.At("http://a.test/", someTime)
	require.NoError(t, err)
	require.Equal(t, "two", body(t, a, v))
	require.NoError(t, a.Close())
}

func TestVeryLongURL(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	url := "http://a.test/" + strings.Repeat("x", maxURL-20)
	_, err := a.Append(page(url, "body"))
	require.NoError(t, err)
	for range 2 {
		v, err := a.At(url, time.Time{})
		require.NoError(t, err)
		require.Equal(t, url, v.URL)
		require.Equal(t, "body", body(t, a, v))
		require.NoError(t, a.Close())
		a = openDir(t, dir, Options{})
	}
	require.NoError(t, a.Close())
	requireRebuilt(t, dir, Options{})
}

// A closed record must not use its reader, which another record may use now.
func TestReadAfterClose(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	var locs []Location
	for _, text := range []string{"one", "two"} {
		loc, err := a.Append(page("http://a.test/"+text, text))
		require.NoError(t, err)
		locs = append(locs, loc)
	}
	one, err := a.Read(locs[0])
	require.NoError(t, err)
	require.NoError(t, one.Close())
	require.NotZero(t, one.Length)
	two, err := a.Read(locs[1])
	require.NoError(t, err)
	_, err = one.Read(make([]byte, 1))
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = one.WriteTo(io.Discard)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = one.HTTP()
	require.ErrorIs(t, err, fs.ErrClosed)
	require.Equal(t, "http://a.test/one", one.Get("WARC-Target-URI"))
	require.NoError(t, one.Close(), "again")
	message, err := two.HTTP()
	require.NoError(t, err)
	text, err := io.ReadAll(message.Body)
	require.NoError(t, err)
	require.Equal(t, "two", string(text))
	require.NoError(t, errors.Join(two.Close(), a.Close()))
}
