package archive

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// At the limits of valid times, each version is found from its own time up to that of the next one.
func TestTimesAtTheEdges(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	times := []time.Time{
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
		time.Unix(0, 0).UTC(),
		time.Unix(0, 1000).UTC(),
		time.Date(2026, 2, 28, 23, 59, 60, 0, time.UTC), // a leap second
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
	}
	for i, at := range times {
		_, err := a.Append(visit{"http://a.test/", at, 200, fmt.Sprint(i)}.capture())
		require.NoError(t, err)
	}
	for committed := range 2 {
		_, err := a.At("http://a.test/", times[0].Add(-time.Microsecond))
		require.ErrorIs(t, err, ErrNotFound)
		for i, at := range times {
			for _, asked := range []time.Time{at, at.Add(999), at.In(time.FixedZone("", 3600))} {
				v, err := a.At("http://a.test/", asked)
				require.NoError(t, err)
				require.Equal(t, at, v.Time, "%d %v", committed, asked)
				require.Equal(t, fmt.Sprint(i), body(t, a, v))
			}
			if i > 0 {
				v, err := a.At("http://a.test/", at.Add(-time.Microsecond))
				require.NoError(t, err)
				require.Equal(t, times[i-1], v.Time)
				require.Equal(t, at, v.Until)
			}
		}
		v, err := a.At("http://a.test/", time.Unix(math.MaxInt32<<20, 0))
		require.NoError(t, err)
		require.Equal(t, times[5], v.Time, "the far future")
		require.NoError(t, a.index.commit())
	}
	require.NoError(t, a.Close())
}

// Equivalent URLs find the same page, and URLs that differ slightly do not.
func TestURLsThatAreOnePage(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	const url = "http://www.a.test/b?c=D"
	_, err := a.Append(visit{url, someTime, 200, "one"}.capture())
	require.NoError(t, err)
	for _, same := range []string{
		url, url + "#fragment", "HTTP://WWW.A.TEST/b?c=D", "http://www.a.test:80/b?c=D",
		"http://www.a.test./b?c=D", "http://user:pass@www.a.test/b?c=D",
	} {
		v, err := a.At(same, time.Time{})
		require.NoError(t, err, same)
		require.Equal(t, url, v.URL, "in the form of the index")
	}
	for _, other := range []string{
		"https://www.a.test/b?c=D", "http://a.test/b?c=D", "http://www.a.test/B?c=D",
		"http://www.a.test/b?c=d", "http://www.a.test/b", "http://www.a.test/b?",
		"http://www.a.test:81/b?c=D", "http://www.a.test/b/?c=D", "http://www.a.test/b?c=D&",
		"", "x", "http://", strings.Repeat("x", 3*urlkey.MaxLen),
	} {
		_, err := a.At(other, time.Time{})
		require.ErrorIs(t, err, ErrNotFound, other)
		versions, err := a.Versions(other)
		require.NoError(t, err)
		require.Empty(t, versions, other)
	}
	require.NoError(t, a.Close())
}

// Each scope of a query includes its own URLs, and none that only look similar.
func TestScopesOfQueries(t *testing.T) {
	urls := []string{
		"http://a.test/", "https://a.test/d", "http://a.test/d/", "http://a.test/d/e?f",
		"http://a.test/dx", "http://a.test:81/d/", "http://b.a.test/d/", "http://ba.test/",
		"http://a.testx/", "http://192.0.2.1/", "http://192.0.2.10/", "http://a.test/D/",
		"http://[2001:db8::1]:81/",
	}
	a := openDir(t, t.TempDir(), Options{})
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	for _, url := range urls {
		_, err := a.Append(page(url, url))
		require.NoError(t, err)
	}
	for _, tt := range []struct {
		name string
		q    Query
		want []int
	}{
		{"everything", Query{}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{"a host, with all ports and schemes", Query{Host: "a.test"}, []int{0, 1, 2, 3, 4, 5, 11}},
		{"a host in capitals", Query{Host: "A.TEST"}, []int{0, 1, 2, 3, 4, 5, 11}},
		{"a subdomain", Query{Host: "b.a.test"}, []int{6}},
		{"a site", Query{Site: "a.test"}, []int{0, 1, 2, 3, 4, 5, 6, 11}},
		{"a whole domain", Query{Site: "test"}, []int{0, 1, 2, 3, 4, 5, 6, 7, 11}},
		{"an address", Query{Host: "192.0.2.1"}, []int{9}},
		{"an address in brackets", Query{Host: "[2001:db8::1]"}, []int{12}},
		{"an address as net/url has it", Query{Host: "2001:DB8::1"}, []int{12}},
		{"a directory", Query{Prefix: "http://a.test/d/"}, []int{2, 3}},
		{"a directory, with the other scheme", Query{Prefix: "https://a.test/d/"}, []int{2, 3}},
		{"a prefix", Query{Prefix: "http://a.test/d"}, []int{1, 2, 3, 4}},
		{"a directory on another port", Query{Prefix: "http://a.test:81/"}, []int{5}},
		{"an unknown host", Query{Host: "c.test"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := a.Snapshot(tt.q)
			require.NoError(t, err)
			found := map[string]bool{}
			for v, err := range s.Versions() {
				require.NoError(t, err)
				found[v.URL] = true
			}
			want := map[string]bool{}
			for _, i := range tt.want {
				want[urls[i]] = true
			}
			require.Equal(t, want, found)
			require.NoError(t, s.Close())
		})
	}
	for _, host := range []string{"a.test:81", "[2001:db8::1]:81", "http://a.test", "a.test/d"} {
		_, err := a.Snapshot(Query{Host: host})
		require.ErrorContains(t, err, "not a host", host)
		_, err = a.Erase(t.Context(), Selection{Host: host}, "asked for")
		require.ErrorIs(t, err, ErrInvalid, host)
	}
}

// A file of a stranger cannot make a megabyte expand to gigabytes, nor can a head of a million lines
// be stored that no reader accepts. What we wrote ourselves may expand as much as it likes.
func TestExpandingMembers(t *testing.T) {
	zeros := strings.Repeat("a", 48<<20)
	dir := t.TempDir()
	a := openDir(t, dir, Options{Compression: warc.Zstd})
	_, err := a.Append(page("http://a.test/", zeros))
	require.NoError(t, err)
	lines := page("http://a.test/lines", "")
	lines.Head = []byte("HTTP/1.1 200 OK\r\n" + strings.Repeat("a:\r\n", warc.MaxLines) + "\r\n")
	_, err = a.Append(lines)
	require.ErrorIs(t, err, ErrInvalid)
	lines = page("http://a.test/lines", "")
	lines.Request = []byte("GET / HTTP/1.1\r\n" + strings.Repeat("a:\r\n", warc.MaxLines) + "\r\n")
	_, err = a.Append(lines)
	require.ErrorIs(t, err, ErrInvalid)
	require.NoError(t, a.Close())

	a = openDir(t, dir, Options{Reindex: true})
	require.Zero(t, a.Recovered().Faults)
	v, err := a.At("http://a.test/", time.Time{})
	require.NoError(t, err)
	require.Len(t, body(t, a, v), len(zeros))
	names, err := a.Files()
	require.NoError(t, err)
	require.NoError(t, a.Close())

	b := openDir(t, t.TempDir(), Options{})
	found, err := b.Import(filepath.Join(dir, names[0]))
	require.NoError(t, err)
	require.Equal(t, 1, found.Faults)
	require.ErrorContains(t, found.Damage[0].Err, "expands")
	require.NoError(t, b.Close())
}
