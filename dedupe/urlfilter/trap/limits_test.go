package trap

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

func TestPatterns(t *testing.T) {
	for path, want := range map[string]string{
		"/":                               "/",
		"/about.html":                     "/about.html",
		"/1912/04/16/archives/title.html": "/#/#/#/archives/title.html",
		"/calendar/2031-05-31":            "/calendar/#-#-#",
		"/a1b22c/":                        "/a#b#c/",
		"/p?id=17":                        "/p?id=",
		"/p?id=x&page=two/&sid=":          "/p?id=&page=&sid=",
		"/p?17&x=1":                       "/p?#&x=",
		"/0123456789abcdef":               "/*",
		"/x/550e8400-e29b-41d4-a716-446655440000":     "/x/*",
		"/internationalization1":                      "/internationalization#",
		"/12345678901234567890":                       "/#",
		"/a;jsessionid=0A1B2C3D4E5F60718":             "/a;jsessionid=*",
		"/%C3%BC":                                     "/%C3%BC",
		"/%d0%b41%D0%B0?%D0%B4=%D0%B4&%D0%B4":         "/%d0%b4#%D0%B0?%D0%B4=&%D0%B4",
		"/%411%%2f1%8":                                "/%41#%%2f#%#",
		"/%20%2F550e8400-e29b-41d4-a716-446655440000": "/%20%2F*",
		"/%31%32": "/%#%#",
	} {
		require.Equal(t, want, string(appendPattern(nil, path)), path)
	}
}

// Limits beyond the counts are no limits, and counts do not start again.
func TestRepeatsBeyondTheCounts(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("an int is too small for such limits")
	}
	const url = "https://a.example/item/1"
	for _, most := range []uint64{1 << 32, 1<<32 + 1, math.MaxInt64} {
		l := &Limits{Repeats: int(most)}
		l.Fetched(url, true)
		require.Equal(t, urlfilter.Fine, l.Admit(url), most)
		full := tally{repeats: math.MaxUint32}
		l.counts[l.key(url)] = full
		l.Fetched(url, true)
		require.Equal(t, urlfilter.Fine, l.Admit(url), most)
		require.Equal(t, full, l.counts[l.key(url)])
	}
}

// TestTraps crawls URLs with session ids, which repeat the same page, and the archive of a
// newspaper, which does not.
func TestTraps(t *testing.T) {
	var l Limits
	admitted := 0
	for i := range 10_000 {
		session := fmt.Sprintf("https://a.example/page?s=%x", uint64(i)*0x9e3779b97f4a7c15)
		if l.Admit(session) == urlfilter.Fine {
			admitted++
			l.Fetched(session, i > 0)
		}
		article := fmt.Sprintf("https://a.example/%d/%02d/%02d/title", 1851+i/366, i/30%12+1, i%28+1)
		require.Equal(t, urlfilter.Fine, l.Admit(article))
		l.Fetched(article, i%10 > 0) // most are the same, like a paywall, but not all
	}
	require.InDelta(t, DefaultRepeats+10_000/probe, admitted, 3)
	require.Equal(t, Trap, l.Admit("https://a.example/page?s=1"))

	// The pattern recovers once its pages differ again.
	for i := range 2 * probe {
		url := fmt.Sprintf("https://a.example/page?s=%d", i)
		if l.Admit(url) == urlfilter.Fine {
			l.Fetched(url, false)
		}
	}
	require.Equal(t, urlfilter.Fine, l.Admit("https://a.example/page?s=2"))

	never := &Limits{Repeats: -1}
	for i := range 1000 {
		url := fmt.Sprintf("https://a.example/%d", i)
		require.Equal(t, urlfilter.Fine, never.Admit(url))
		never.Fetched(url, true)
	}
}

// TestLimitsBoundTheirMemory has known pages on more hosts than Entries. The pattern with the most
// must be remembered.
func TestLimitsBoundTheirMemory(t *testing.T) {
	l := &Limits{Repeats: 100, Entries: 200}
	for i := range 100 {
		l.Fetched(fmt.Sprintf("https://large.example/%d", i), true)
	}
	for i := range 5000 {
		l.Fetched(fmt.Sprintf("https://h%d.example/", i), true)
		require.LessOrEqual(t, len(l.counts), 200)
	}
	require.Equal(t, Trap, l.Admit("https://large.example/7"))
}

func TestAdmitDoesNotAllocate(t *testing.T) {
	l := &Limits{}
	const url = "https://www.example.com/articles/2026/11/index.html?id=12345&page=2"
	l.Admit(url)
	require.Zero(t, testing.AllocsPerRun(100, func() { l.Admit(url) }))
}

// FuzzPattern changes the numbers of a URL, which must not change its pattern.
func FuzzPattern(f *testing.F) {
	f.Add("https://a.example/2031/05/31?a=1&b=x", uint8(7))
	f.Add("https://a.example/0123456789abcdef/a1", uint8(3))
	f.Fuzz(func(t *testing.T, in string, digit uint8) {
		url, err := weburl.Canonical(in)
		if err != nil || len(url) > 1000 {
			t.Skip()
		}
		path := pathOf(url)
		pattern := string(appendPattern(nil, path))
		if again := string(appendPattern(nil, pattern)); again != pattern {
			t.Errorf("%q has pattern %q, and that has %q", path, pattern, again)
		}
		other := []byte(path)
		for i, c := range other {
			if escape := strings.LastIndexByte(path[:i], '%'); escape >= 0 && i-escape <= 2 {
				continue
			}
			if '0' <= c && c <= '9' {
				other[i] = '0' + (c-'0'+digit%10)%10
			}
		}
		changed := string(appendPattern(nil, string(other)))
		if changed != pattern {
			t.Errorf("%q has pattern %q, but %q has %q", path, pattern, other, changed)
		}
	})
}

func BenchmarkAdmit(b *testing.B) {
	l := &Limits{}
	const url = "https://www.example.com/articles/2026/11/index.html?id=12345&page=2"
	b.ReportAllocs()
	for b.Loop() {
		l.Admit(url)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
}
