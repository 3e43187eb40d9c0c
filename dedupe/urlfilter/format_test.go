package urlfilter_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/publicsuffix"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

func TestFormat(t *testing.T) {
	deep := func(n int) string { return "https://a.example.com" + segments(n) }
	params := func(n int) string {
		query := "https://example.com/?p0"
		for i := range n - 1 {
			query += fmt.Sprintf("&p%d", i+1)
		}
		return query
	}
	for _, tt := range []struct {
		name string
		url  string
		want urlfilter.Reason
	}{
		{"page", "https://www.example.com/a/b?c=1", urlfilter.Fine},
		{"home page", "https://example.com/", urlfilter.Fine},
		{"address", "http://192.0.2.1:8080/", urlfilter.Fine},
		{"IPv6 address", "http://[2001:db8::1]/", urlfilter.Fine},
		{"private suffix", "https://someone.github.io/", urlfilter.Fine},
		{"root dot", "https://example.com./", urlfilter.Fine},
		{"single label", "http://intranet/", urlfilter.UnknownSuffix},
		{"unlisted top-level domain", "http://a.invalid/", urlfilter.UnknownSuffix},
		{"maximum length", "https://example.com/" + strings.Repeat("x", 2063), urlfilter.Fine},
		{"too long", "https://example.com/" + strings.Repeat("x", 2064), urlfilter.TooLong},
		{"deep", deep(20), urlfilter.Fine},
		{"too deep", deep(21), urlfilter.TooDeep},
		{"segment thrice", "https://example.com/a/a/b/a", urlfilter.Fine},
		{"segment four times", "https://example.com/a/b/a/b/a/b/a", urlfilter.Repeating},
		{"segment four times with a query", "https://example.com/a/a/a/a?b", urlfilter.Repeating},
		{"many slashes", "https://example.com/a/////", urlfilter.Fine},
		{"many slashes in the middle", "https://example.com/a/////b", urlfilter.Repeating},
		{"many parameters", params(30), urlfilter.Fine},
		{"too many parameters", params(31), urlfilter.ManyParams},
		{"parameter with other values", "https://example.com/?a=1&a=2&a=3&a=4&a=5", urlfilter.Fine},
		{"parameter with the same value", "https://example.com/?a=1&a=1&a=1&a=1", urlfilter.Repeating},

		{"a newspaper's archive", "https://www.nytimes.com/1912/04/16/archives/title.html", urlfilter.Fine},
		{"a calendar", "https://example.com/events/2101-05-31/", urlfilter.Fine},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, urlfilter.Format{}.Check(tt.url), tt.url)
		})
	}
}

func segments(n int) (path string) {
	for i := range n {
		path += fmt.Sprintf("/%d", i)
	}
	return path
}

func TestAnySuffix(t *testing.T) {
	require.Equal(t, urlfilter.UnknownSuffix, urlfilter.Format{}.Check("http://intranet/"))
	require.Equal(t, urlfilter.Fine, urlfilter.Format{AnySuffix: true}.Check("http://intranet/"))
	require.Equal(t, urlfilter.TooDeep, urlfilter.Format{AnySuffix: true}.Check("http://intranet"+segments(21)))
}

func TestMalformed(t *testing.T) {
	for url, want := range map[string]urlfilter.Reason{
		"https://example.com/": urlfilter.Fine,
		"nonsense":             urlfilter.NotURL,
		"mailto:a@example.com": urlfilter.OtherScheme,
		"https://example.com/" + strings.Repeat("x", 10000): urlfilter.TooLong,
	} {
		_, err := weburl.Canonical(url)
		require.Equal(t, want, urlfilter.Malformed(err), url)
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	const url = "https://www.example.com/a/b/2026/11/21/title.html?id=12&date=2026-11&page=3"
	check := func() { urlfilter.Format{}.Check(url) }
	require.Zero(t, testing.AllocsPerRun(10, check))
}

// TestSuffixesAreThoseOfTheList checks that caching top-level domains changes no verdict, whatever
// the list has below them: wildcards, exceptions, private suffixes, and parents of these.
func TestSuffixesAreThoseOfTheList(t *testing.T) {
	tops := []string{"com", "jp", "ck", "bd", "uk", "onion", "invalid", "intranet", "xn--p1ai"}
	labels := []string{"www", "city", "kawasaki", "amazonaws", "us-east-1", "compute", "github", "rhcloud", "co"}
	random := rand.New(rand.NewPCG(1, 0))
	for range 5000 {
		host := tops[random.IntN(len(tops))]
		for range random.IntN(4) {
			host = labels[random.IntN(len(labels))] + "." + host
		}
		suffix, icann := publicsuffix.PublicSuffix(host)
		listed := icann || strings.Contains(suffix, ".")
		got := urlfilter.Format{}.Check("http://" + host + "/")
		require.Equal(t, listed, got == urlfilter.Fine, host)
	}
}

// FuzzCheck compares with the rules as the documentation says them.
func FuzzCheck(f *testing.F) {
	f.Add("https://example.com/b/a/a/a/a?x=1&x=1")
	f.Add("https://example.com/?a&a&b&a&a")
	f.Add("http:///\x00[::1")
	f.Fuzz(func(t *testing.T, in string) {
		urlfilter.Format{AnySuffix: true}.Check(in) // any bytes must not panic
		url, err := weburl.Canonical(in)
		if err != nil {
			t.Skip()
		}
		_, rest, _ := strings.Cut(url, "://")
		path, query, _ := strings.Cut(rest[strings.IndexByte(rest, '/'):], "?")
		manySegments, segmentsRepeat := parts(strings.Trim(path, "/"), "/", 20)
		manyParams, paramsRepeat := parts(query, "&", 30)
		want := urlfilter.Fine
		switch {
		case len(url) > 2083:
			want = urlfilter.TooLong
		case manySegments:
			want = urlfilter.TooDeep
		case segmentsRepeat || paramsRepeat && !manyParams:
			want = urlfilter.Repeating
		case manyParams:
			want = urlfilter.ManyParams
		}
		if got := (urlfilter.Format{AnySuffix: true}).Check(url); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	})
}

// parts counts the parts of a text.
func parts(text, separator string, most int) (many, repeats bool) {
	counts := map[string]int{}
	for _, part := range strings.Split(text, separator) {
		if counts[part]++; counts[part] > 3 {
			repeats = true
		}
	}
	return strings.Count(text, separator) >= most, repeats
}

func BenchmarkCheck(b *testing.B) {
	const url = "https://www.example.com/a/b/2026/11/21/title.html?id=12&date=2026-11&page=3"
	b.ReportAllocs()
	for b.Loop() {
		urlfilter.Format{}.Check(url)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
}
