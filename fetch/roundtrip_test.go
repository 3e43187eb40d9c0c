package fetch_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// randomEntry returns an entry with the fields that a format of the kind can hold.
func randomEntry(r *rand.Rand, kind fetch.EntryKind) fetch.Entry {
	e := fetch.Entry{Kind: kind, Priority: 0.5}
	e.URL = fmt.Sprintf("https://a.test/%x?a=%d&b='\"<>", r.Uint32(), r.IntN(9))
	if r.IntN(2) == 0 {
		e.LastMod = time.Unix(int64(r.Uint32()), 0).UTC()
	}
	if kind == fetch.PageEntry {
		e.Priority = float64(r.IntN(11)) / 10
		e.ChangeFreq = []string{"", "always", "daily", "never"}[r.IntN(4)]
	}
	return e
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a Buffer takes all
	return b.String()
}

// writers write one entry in each format.
var writers = map[string]struct {
	kind        fetch.EntryKind
	before, end string
	write       func(e fetch.Entry) string
}{
	"sitemap": {fetch.PageEntry, "<urlset>", "</urlset>", func(e fetch.Entry) string {
		return "<url>" + element("loc", e.URL) + element("lastmod", date(e, time.RFC3339)) +
			element("changefreq", e.ChangeFreq) + element("priority", fmt.Sprint(e.Priority)) + "</url>"
	}},
	"index": {fetch.SitemapEntry, "<sitemapindex>", "</sitemapindex>", func(e fetch.Entry) string {
		return "<sitemap>" + element("lastmod", date(e, time.RFC3339)) +
			element("loc", e.URL) + "</sitemap>"
	}},
	"rss": {fetch.FeedEntry, "<rss><channel>", "</channel></rss>", func(e fetch.Entry) string {
		return "<item>" + element("title", "<loc>no</loc>") + element("link", e.URL) +
			element("pubDate", date(e, time.RFC1123Z)) + "</item>"
	}},
	"atom": {fetch.FeedEntry, "<feed>", "</feed>", func(e fetch.Entry) string {
		return `<entry><link rel="alternate" href="` + escaped(e.URL) + `"/>` +
			element("updated", date(e, time.RFC3339)) + "</entry>"
	}},
}

func element(name, text string) string {
	if text == "" {
		return ""
	}
	return "<" + name + ">\n" + escaped(text) + "</" + name + ">"
}

func date(e fetch.Entry, layout string) string {
	if e.LastMod.IsZero() {
		return ""
	}
	return e.LastMod.Format(layout)
}

// What is written down by each format's rules comes out again.
func TestSitemapRoundTrip(t *testing.T) {
	for name, format := range writers {
		for seed := range uint64(50) {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 3))
				var want, got []fetch.Entry
				doc := format.before
				for range r.IntN(20) {
					e := randomEntry(r, format.kind)
					doc += format.write(e)
					e.URL = strings.NewReplacer("'", "%27", `"`, "%22", "<", "%3C", ">", "%3E").Replace(e.URL)
					want = append(want, e)
				}
				for e, err := range fetch.Sitemap(strings.NewReader(doc+format.end), sitemapURL) {
					require.NoError(t, err)
					e.LastMod = e.LastMod.UTC()
					got = append(got, e)
				}
				require.Equal(t, want, got, "%s", doc)
			})
		}
	}
}

// Style sheets of pieces whose URLs are known.
func TestStylesModel(t *testing.T) {
	pieces := []string{"a { b: c }", "/* url(no) ' */", "'url(no)'", `"/*"`, "url(%d)", "url('%d')",
		"URL( \"%d\" )", "@import '%d';", "@import url(%d);", "my-url(no)", "@media x { b { c: d } }",
		"content: \"\\\"url(no)\"", "\n", ";", "@charset \"no\";", "url( %d )format('no')"}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		var css strings.Builder
		var want []string
		for n := range r.IntN(30) {
			piece := pieces[r.IntN(len(pieces))]
			if strings.Contains(piece, "%d") {
				piece = fmt.Sprintf(piece, n)
				want = append(want, fmt.Sprintf("http://a.test/%d", n))
			}
			css.WriteString(piece + " ")
		}
		var got []string
		for l, err := range fetch.Styles([]byte(css.String()), "http://a.test/") {
			require.NoError(t, err)
			got = append(got, l.URL)
		}
		require.Equal(t, want, got, "seed %d: %s", seed, css.String())
	}
}

// The law: what Scan is asked for comes on top of what Links yields, and the texts are parts of the
// page, one behind the other, without a tag in them.
func FuzzScanOptions(f *testing.F) {
	f.Add([]byte("<title>a&amp;b</title>x<a href=y>z</a><style>url(i)</style><form action=s>"))
	f.Add([]byte("a<b<c><!-- d -->e<script>f</script>"))
	f.Fuzz(func(t *testing.T, page []byte) {
		end := 0
		opts := fetch.ScanOptions{Forms: true, Styles: true, Title: true, Text: func(piece []byte) {
			at := bytes.Index(page[end:], piece)
			if at < 0 || bytes.IndexByte(piece, '<') >= 0 {
				t.Fatalf("%q: piece %q after byte %d", page, piece, end)
			}
			end += at + len(piece)
		}}
		var all []fetch.Link
		for l, err := range fetch.Scan(page, pageURL, opts) {
			if err != nil {
				return
			}
			all = append(all, l)
		}
		for l, err := range fetch.Links(page, pageURL) {
			if err != nil {
				return
			}
			for len(all) > 0 && all[0] != l {
				all = all[1:]
			}
			if len(all) == 0 {
				t.Fatalf("%q: Scan misses %+v", page, l)
			}
		}
	})
}

// Strings that share memory must not share contents, and each page must need few blocks.
func TestLinksStringsAreTheirOwn(t *testing.T) {
	var page strings.Builder
	var want []string
	for n := range 3000 {
		fmt.Fprintf(&page, "<a href=/%d/%s rel='r%d'>", n, strings.Repeat("x", n%200), n)
		want = append(want, fmt.Sprintf("http://a.test/%d/%s r%d", n, strings.Repeat("x", n%200), n))
	}
	text := []byte(page.String())
	var links []fetch.Link
	for l, err := range fetch.Links(text, pageURL) {
		require.NoError(t, err)
		links = append(links, l)
	}
	clear(text)
	require.Len(t, links, len(want))
	for n, l := range links {
		if got := l.URL + " " + l.Rel; got != want[n] {
			t.Errorf("link %d is %q, want %q", n, got, want[n])
		}
	}
}

func TestLinksAllocatesLittle(t *testing.T) {
	const link = `<p class=x>text<a href="../a/b.html?c=1&amp;d=2#e" rel="next">f</a>`
	for _, links := range []int{10, 100, 1000} {
		page := []byte(strings.Repeat(link, links))
		allocs := testing.AllocsPerRun(3, func() {
			for _, err := range fetch.Links(page, pageURL) {
				if err != nil {
					t.Error(err)
				}
			}
		})
		require.LessOrEqual(t, allocs, 10.0, "%d links", links)
	}
}
