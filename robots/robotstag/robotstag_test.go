package robotstag

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// render writes a Directives as the content of a meta element.
func render(t Directives) string {
	var items []string
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"noindex", t.NoIndex}, {"nofollow", t.NoFollow}, {"noarchive", t.NoArchive},
		{"nosnippet", t.NoSnippet}, {"noimageindex", t.NoImageIndex},
		{"notranslate", t.NoTranslate}, {"noai", t.NoAI}, {"noimageai", t.NoImageAI},
		{"indexifembedded", t.IndexIfEmbedded},
	} {
		if flag.set {
			items = append(items, flag.name)
		}
	}
	if t.MaxSnippet.Limited {
		items = append(items, fmt.Sprintf("max-snippet:%d", t.MaxSnippet.Max))
	}
	if t.MaxVideoPreview.Limited {
		items = append(items, fmt.Sprintf("max-video-preview:%d", t.MaxVideoPreview.Max))
	}
	if t.MaxImagePreview != "" {
		items = append(items, "max-image-preview:"+t.MaxImagePreview)
	}
	if !t.Unavailable.IsZero() {
		items = append(items, "unavailable_after:"+t.Unavailable.Format("2006-01-02T15:04:05Z"))
	}
	return strings.Join(items, ", ")
}

func TestFromMeta(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{"", ""},
		{"all", ""},
		{"index, follow", ""},
		{"NoIndex", "noindex"},
		{"none", "noindex, nofollow"},
		{"noindex,follow,index", "noindex"},
		{" noindex , nofollow ,, ", "noindex, nofollow"},
		{"noindex nofollow", "noindex, nofollow"},
		{"noindex;nofollow", "noindex, nofollow"},
		{"noarchive,nocache,nosnippet,noimageindex,notranslate,noai,noimageai,indexifembedded",
			"noarchive, nosnippet, noimageindex, notranslate, noai, noimageai, indexifembedded"},
		{"max-snippet:20", "max-snippet:20"},
		{"Max-Snippet : 20, max-snippet:0", "max-snippet:0"},
		{"max-snippet:0, max-snippet:20, max-snippet:-1", "max-snippet:0"},
		{"max-snippet:-1", ""},
		{"max-snippet:x, noindex", "noindex"},
		{"max-snippet:-2", ""},
		{"max-snippet:", ""},
		{"max-snippet:99999999999999999999", ""},
		{"max-video-preview:7", "max-video-preview:7"},
		{"max-image-preview:Large, max-image-preview:standard", "max-image-preview:standard"},
		{"max-image-preview:none, max-image-preview:standard", "max-image-preview:none"},
		{"max-image-preview:huge", ""},
		{"noindex: yes", "noindex"},
		{"noodp, Fancy New, x:y:z", ""},
		{"noindex maybe", "noindex"},
		{"unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT, noindex",
			"noindex, unavailable_after:2025-06-25T15:00:00Z"},
		{"unavailable_after: 2025-06-25, unavailable_after: 2024-01-01, unavailable_after: 2026-01-01",
			"unavailable_after:2024-01-01T00:00:00Z"},
		{"unavailable_after: soon, noindex", "noindex"},
		{"unavailable_after: Wed, 25 Foo 2025 15:00:00 GMT, noindex",
			"noindex"},
		{"googlebot: noindex", ""}, // no such thing in meta elements
	} {
		require.Equal(t, tt.want, render(FromMeta("robots", tt.content, "foo")), "%+v", tt)
	}
}

func TestFromMetaNames(t *testing.T) {
	for _, tt := range []struct {
		name, agent string
		want        bool
	}{
		{"robots", "foo", true},
		{" ROBOTS ", "foo", true},
		{"Foo", "foo/1.0", true},
		{"foo", "Mozilla/5.0 (compatible; foo/1)", true},
		{"foobar", "foo", false},
		{"foo", "", false},
		{"robots", "", true},
		{"description", "foo", false},
		{"MJ12bot", "mj12bot", true},
		{"360spider", "", false},
		{"", "foo", false},
		{"", "", false},
	} {
		require.Equal(t, tt.want, FromMeta(tt.name, "noindex", tt.agent).NoIndex, "%+v", tt)
	}
}

func TestFromHeader(t *testing.T) {
	for _, tt := range []struct {
		fields []string
		want   string
	}{
		{nil, ""},
		{[]string{"noindex"}, "noindex"},
		{[]string{"noindex", "nofollow"}, "noindex, nofollow"},
		{[]string{"foo: noindex"}, "noindex"},
		{[]string{"bar: noindex"}, ""},
		{[]string{"bar: noindex, nofollow", "noarchive"}, "noarchive"},
		{[]string{"noarchive, bar: noindex, foo: nofollow, nosnippet, bar: noai"},
			"nofollow, noarchive, nosnippet"},
		{[]string{"FOO/2.1: noindex"}, "noindex"},
		{[]string{"bar/2.1: noindex, nofollow"}, ""},
		{[]string{"*: noindex"}, "noindex"},
		{[]string{"bar: unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT, noindex"}, ""},
		{[]string{"foo: unavailable_after: 25-Jun-25 15:00:00 PST, max-snippet: 3"},
			"max-snippet:3, unavailable_after:2025-06-25T23:00:00Z"},
		{[]string{"bar: max-snippet: 3, foo: max-snippet: 9"}, "max-snippet:9"},
		{[]string{"unavailable_after: 25 Foo 2025 15:00:00 GMT, noindex"},
			"noindex"},
		{[]string{"noindex, https://h.test/, nofollow"},
			"noindex, nofollow"},
		{[]string{"bar: otherwise, foo: something"}, ""},
		// An unknown directive must not hide a known one: it may look like the name of a crawler.
		{[]string{"max-audio-preview: 5, noindex"}, "noindex"},
		{[]string{"max-audio-preview: none, noindex"}, "noindex"},
		{[]string{"license: none-of-it, noindex, foo: nofollow"}, "noindex, nofollow"},
		{[]string{"bar: noarchive, max-audio-preview: 5, foo: noindex"}, "noindex"},
		{[]string{"noindex , x:y , nofollow"}, "noindex, nofollow"},
	} {
		h := http.Header{"X-Robots-Tag": tt.fields}
		require.Equal(t, tt.want, render(FromHeader(h, "foo")), "%+v", tt)
	}
	h := http.Header{"X-Robots-Tag": {"foo: noindex", "nofollow, 360spider: noindex"}}
	require.Equal(t, "nofollow", render(FromHeader(h, "")), "a crawler without a name")
}

// Of a Robots-Tag, everything for the crawler counts, whichever draft it follows.
func TestRobotsTagHeader(t *testing.T) {
	for _, tt := range []struct{ field, want string }{
		{"noindex, nofollow", "noindex, nofollow"},
		{"*;noindex;nosnippet, bar;noarchive", "noindex, noarchive, nosnippet"},
		{"bar;noindex, Foo;nofollow", "noindex, nofollow"},
		{"foo;max-snippet=20;max-image-preview=none", "max-snippet:20, max-image-preview:none"},
		{"*;unavailable_after=\"25 Jun 2025\"", "unavailable_after:2025-06-25T00:00:00Z"},
		{"*=noindex, nosnippet; foo=nofollow;bar=noai", "noindex, nofollow, nosnippet"},
		{"bar: noindex, foo: nofollow", "nofollow"},
	} {
		h := http.Header{"Robots-Tag": {tt.field}}
		require.Equal(t, tt.want, render(FromHeader(h, "foo")))
	}
	both := http.Header{"Robots-Tag": {"noindex", "noai"}, "X-Robots-Tag": {"noarchive"}}
	require.Equal(t, "noindex, noarchive, noai", render(FromHeader(both, "foo")))
}

// TestDates reads dates in the forms that feeds and sitemaps have too: there is one reader of dates.
func TestDates(t *testing.T) {
	afternoon := time.Date(2025, 6, 25, 15, 0, 0, 0, time.UTC)
	midnight := time.Date(2025, 6, 25, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"Wed, 25 Jun 2025 15:00:00 GMT":          afternoon,
		"Wednesday, 25-Jun-25 15:00:00 UTC":      afternoon,
		"25 Jun 2025 08:00:00 PDT":               afternoon,
		"25 Jun 2025 17:00:00 +0200":             afternoon,
		"2025-06-25t15:00:00.75z":                afternoon,
		"2025-06-25T17:00+02:00":                 afternoon,
		"2025-06-25T13:00-02":                    afternoon,
		"Wed Jun 25 15:00:00 2025":               afternoon,
		"June 25, 2025 15:00":                    afternoon,
		"2025-06-25":                             midnight,
		"wed, 25 jun 2025":                       midnight,
		"25 Jun 25 1500 UT":                      midnight, // what follows a date is no part of it
		"31 Feb 2025":                            {},
		"2025-06-25 25:00":                       midnight,
		"Sommer 2025":                            {},
		"25 Jun 2025 " + strings.Repeat("a", 64): midnight,
	} {
		got := FromMeta("robots", "unavailable_after: "+text, "").Unavailable
		require.True(t, want.Equal(got), "%s: %v", text, got)
	}
}

// TestADateHidesNothing: neither its weekday nor its zone is a directive, and the earliest date that
// there is lies in the past, although the zero time means never.
func TestADateHidesNothing(t *testing.T) {
	for content, want := range map[string]string{
		"unavailable_after: 1 Jan 2030 noindex":                     "noindex, unavailable_after:2030-01-01T00:00:00Z",
		"unavailable_after: 1 Jan 2030 15:00:00 noindex":            "noindex, unavailable_after:2030-01-01T15:00:00Z",
		"unavailable_after: 1 Jan 2030 15:00 noindex nofollow":      "noindex, nofollow, unavailable_after:2030-01-01T15:00:00Z",
		"unavailable_after: 1 Jan 2030 15:00 PST noindex":           "noindex, unavailable_after:2030-01-01T23:00:00Z",
		"unavailable_after: 1 Jan 2030 3:00 pm noindex":             "noindex, unavailable_after:2030-01-01T15:00:00Z",
		"unavailable_after: 2030-01-01 15:00 nofollow":              "nofollow, unavailable_after:2030-01-01T15:00:00Z",
		"unavailable_after: 2030-01-01T15:00:00 none":               "noindex, nofollow, unavailable_after:2030-01-01T15:00:00Z",
		"unavailable_after: Jan 1 2030 15:00 noai":                  "noai, unavailable_after:2030-01-01T15:00:00Z",
		"unavailable_after: noindex, 1 Jan 2030":                    "noindex",
		"unavailable_after: nofollow 1 Jan 2030, noarchive":         "nofollow, noarchive",
		"unavailable_after: noai, 2030-01-01":                       "noai",
		"unavailable_after: 1 Jan 2030 15:00 UTC+2, noarchive":      "noarchive, unavailable_after:2030-01-01T13:00:00Z",
		"unavailable_after: 1 Jan 2030 15:00 +0200 noai":            "noai, unavailable_after:2030-01-01T13:00:00Z",
		"unavailable_after: Mit, 2 Jan 2030 15:00, noarchive":       "noarchive, unavailable_after:2030-01-02T15:00:00Z",
		"unavailable_after: 0001-01-01T00:00:00Z":                   "unavailable_after:0001-01-01T00:00:01Z",
		"unavailable_after: 2030-01-01, unavailable_after: 0001":    "unavailable_after:0001-01-01T00:00:01Z",
		"unavailable_after: 1 Jan 2030 15:00 nosuchword, noarchive": "noarchive, unavailable_after:2030-01-01T15:00:00Z",
	} {
		require.Equal(t, want, render(FromMeta("robots", content, "foo")), content)
		require.Equal(t, want, render(FromHeader(http.Header{"X-Robots-Tag": {content}}, "foo")), content)
	}
}

func randomTag(rnd *rand.Rand) Directives {
	var items []string
	for range rnd.IntN(5) {
		items = append(items, pick(rnd, "noindex", "nofollow", "noarchive", "nosnippet",
			"noimageindex", "notranslate", "noai", "noimageai",
			"indexifembedded", "max-snippet:3", "max-snippet:5",
			"max-video-preview:0", "max-video-preview:9", "max-image-preview:none",
			"max-image-preview:large", "max-image-preview:standard", "unavailable_after:2025-01-01",
			"unavailable_after:2024-01-01", "other", "max-snippet:-1"))
	}
	return FromMeta("robots", strings.Join(items, ","), "")
}

// Sources may come in any order and repeat; the result must not depend on that.
func TestMergeLaws(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 0))
	for range 500 {
		a, b, c := randomTag(rnd), randomTag(rnd), randomTag(rnd)
		require.Equal(t, a, a.Merge(a))
		require.Equal(t, a, a.Merge(Directives{}))
		require.Equal(t, a.Merge(b), b.Merge(a), "%+v and %+v", a, b)
		require.Equal(t, a.Merge(b).Merge(c), a.Merge(b.Merge(c)))
		joined := FromMeta("robots", render(a)+",unknown,"+render(b), "")
		require.Equal(t, joined, a.Merge(b), "as if one element held both")
	}
}

// TestMergeTakesConstantTime: a page of a megabyte has 30,000 elements, each merged with all before.
func TestMergeTakesConstantTime(t *testing.T) {
	var d Directives
	one := FromMeta("robots", "unknown, noindex, unavailable_after: 2030-01-01", "")
	require.Zero(t, testing.AllocsPerRun(100, func() { d = d.Merge(one) }))
	require.Equal(t, one, d)
}

// Hostile headers: each is read correctly. Quadratic work would take a hundred times as long as
// this test.
func TestHostileHeaders(t *testing.T) {
	for _, part := range []string{
		"a:", "a:,", ":", "a:b ", "foo:noindex ", "noindex:", "max-snippet:", "max-snippet:x,",
		"max-snippet:1", "unavailable_after:1,", "a;", "a;a=1,", "*;noindex,", "(",
		"*:", "*:\"", "noai ", "noai:", "max-image-preview:x ", "noai:noai ", "x:y ", "_", "=",
		"unavailable_after:1 ", "unavailable_after:,", "unavailable_after", "unavailable_after:2 Jan 2030 ",
	} {
		field := strings.Repeat(part, 1<<18/len(part))
		h := http.Header{"X-Robots-Tag": {field}, "Robots-Tag": {field}}
		require.False(t, FromHeader(h, "bar").NoFollow, part)
		require.False(t, FromMeta("robots", field, "bar").NoFollow, part)
	}
}

// FuzzFromHeader asserts that a header asks a crawler for at least what it asks of all, that a
// directive in front hides nothing, whether it is known, has a value or ends in a blank, and that the
// result, written and read again, is the same.
func FuzzFromHeader(f *testing.F) {
	f.Add("noarchive, bar: noindex, foo: unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT", "foo")
	f.Add("*: max-snippet: -1; x:y:, max-image-preview:large,,", "")
	f.Add("max-audio-preview: 5, noindex", "bar")
	f.Fuzz(func(t *testing.T, field, agent string) {
		read := func(field, agent string) Directives {
			d := FromHeader(http.Header{"X-Robots-Tag": {field}, "Robots-Tag": {field}}, agent)
			return d
		}
		all, own := read(field, ""), read(field, agent)
		if got := own.Merge(all); render(got) != render(own) {
			t.Errorf("%q asks all for %+v, but %q for %+v", field, all, agent, own)
		}
		for _, before := range []string{"max-new: none, ", "max-snippet:0 ", "noai ", "noai max-new:1 "} {
			if got := read(before+field, agent); render(got) != render(got.Merge(own)) {
				t.Errorf("%q asks %q for %+v, but after %q for %+v", field, agent, own, before, got)
			}
		}
		requireReadable(t, own)
	})
}

// FuzzFromMeta asserts the same of elements, and of directives behind. The word x keeps a key without
// a value at the end from taking noindex for its value.
func FuzzFromMeta(f *testing.F) {
	f.Add("robots", "max-snippet:3, unavailable_after: 25 Jun 2025, what is this")
	f.Add("foo", "noindex nofollow;unavailable_after:Jan 1 1:1 1,\xff")
	f.Add("robots", ":30 GMT")
	f.Add("robots", "Wed,")
	f.Fuzz(func(t *testing.T, name, content string) {
		tag := FromMeta(name, content, "foo")
		requireReadable(t, tag)
		for _, longer := range []string{"noindex " + content, content + " x noindex", content + ", noindex"} {
			own, got := FromMeta("robots", content, ""), FromMeta("robots", longer, "")
			if !got.NoIndex || render(got) != render(got.Merge(own)) {
				t.Errorf("%q asks for %+v, but %q for %+v", content, own, longer, got)
			}
		}
	})
}

func requireReadable(t *testing.T, tag Directives) {
	t.Helper()
	if year := tag.Unavailable.Year(); year < 0 || year > 9999 {
		tag.Unavailable = time.Time{} // beyond what ISO 8601 can write
	}
	if again := FromMeta("robots", render(tag), ""); render(again) != render(tag) {
		t.Errorf("%+v is read back as %+v", tag, again)
	}
}

func pick(rnd *rand.Rand, words ...string) string { return words[rnd.IntN(len(words))] }

func BenchmarkFromHeader(b *testing.B) {
	h := http.Header{"X-Robots-Tag": {"noarchive, max-snippet:20, examplebot: nofollow",
		"unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT"}}
	b.ReportAllocs()
	for b.Loop() {
		FromHeader(h, "examplebot")
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "headers/s")
}

// TestAValueIsNoName: an unknown directive with a known word as its value hides nothing.
func TestAValueIsNoName(t *testing.T) {
	for _, field := range []string{"preview=none, noindex", "audience=all, noindex", "examplebot=noindex"} {
		d := FromHeader(http.Header{"X-Robots-Tag": {field}}, "examplebot")
		require.True(t, d.NoIndex, field)
	}
	require.False(t, FromHeader(http.Header{"X-Robots-Tag": {"otherbot: noindex"}}, "examplebot").NoIndex)
}

// TestBlanksSeparateDirectives: a directive with a value hides none that follows or precedes it.
func TestBlanksSeparateDirectives(t *testing.T) {
	for content, want := range map[string]string{
		"noindex max-snippet:0":                  "noindex, max-snippet:0",
		"max-snippet:0 noindex":                  "noindex, max-snippet:0",
		"max-snippet:0 max-video-preview:1 noai": "noai, max-snippet:0, max-video-preview:1",
		"max-snippet: noindex":                   "noindex",
		"max-snippet=\"20\" noindex":             "noindex, max-snippet:20",
		"noindex: nofollow":                      "noindex, nofollow",
		"noindex:: nofollow":                     "noindex, nofollow",
		"noindex: yes nofollow":                  "noindex, nofollow",
		"noindex: max-snippet:0":                 "noindex, max-snippet:0",
		"fresh:5 noindex":                        "noindex",
		"max-image-preview:none noindex":         "noindex, max-image-preview:none",
		"noindex nofollow unavailable_after: 25 Jun 2030 15:00:00 GMT": "noindex, nofollow, " +
			"unavailable_after:2030-06-25T15:00:00Z",
		"noindex unavailable_after: Tue, 25 Jun 2030 15:00:00 GMT, noai": "noindex, noai, " +
			"unavailable_after:2030-06-25T15:00:00Z",
		"max-snippet:0 Unavailable_After : June 25, 2030 nofollow, noai": "nofollow, noai, " +
			"max-snippet:0, unavailable_after:2030-06-25T00:00:00Z",
		"unavailable_after: 2030-06-25 noindex, nofollow, noai": "noindex, nofollow, noai, " +
			"unavailable_after:2030-06-25T00:00:00Z",
	} {
		require.Equal(t, want, render(FromMeta("robots", content, "foo")), content)
		h := http.Header{"X-Robots-Tag": {content}}
		require.Equal(t, want, render(FromHeader(h, "foo")), content)
	}
}

// TestNamesBeforeADirective: whoever else is named before it, it is for the crawler if that is.
func TestNamesBeforeADirective(t *testing.T) {
	for field, want := range map[string]string{
		"foo: foo: noindex":                "noindex",
		"*: foo: noindex, nofollow":        "noindex, nofollow",
		"foo: bar: noindex":                "noindex",
		"*:*:*: noindex":                   "noindex",
		"noarchive foo: noindex":           "noindex, noarchive",
		"noarchive bar: noindex":           "noarchive",
		"foo: foo: noindex, bar: nofollow": "noindex",

		"unavailable_after: 2030-01-01 , bar: noindex, nofollow": "unavailable_after:2030-01-01T00:00:00Z",
	} {
		h := http.Header{"X-Robots-Tag": {field}}
		require.Equal(t, want, render(FromHeader(h, "foo")), field)
	}
}

// TestLineBreaksAreBlanks: the value of an attribute may be broken over lines.
func TestLineBreaksAreBlanks(t *testing.T) {
	for _, blank := range []string{" ", "\n", "\r\n\t", "\u00a0"} {
		d := FromMeta("robots", "max-image-preview:"+blank+"none,"+blank+"max-snippet"+blank+":"+blank+"7", "a")
		require.Equal(t, Directives{MaxImagePreview: "none", MaxSnippet: Limit{true, 7}}, d, "%q", blank)
		d = FromMeta("robots", "unavailable_after:"+blank+"2020-01-02"+blank+"noindex", "a")
		require.True(t, d.NoIndex, "%q", blank)
		require.Equal(t, 2020, d.Unavailable.Year(), "%q", blank)
	}
}

// TestOwnNameBehindABlank: blanks separate directives as commas do, those of others as well.
func TestOwnNameBehindABlank(t *testing.T) {
	for field, hidden := range map[string]bool{
		"otherbot: nofollow, mybot: noindex": true, "otherbot: nofollow mybot: noindex": true,
		"otherbot: nofollow MyBot : noindex, x": true, "otherbot: nofollow robots: noindex": true,
		"otherbot: noindex": false, "otherbot: nofollow thirdbot: noindex": false,
		"otherbot: nofollow mybot": false, "otherbot: nofollow notmybot: noindex": false,
	} {
		d := FromHeader(http.Header{"X-Robots-Tag": {field}}, "mybot")
		require.Equal(t, hidden, d.NoIndex, field)
	}
}
