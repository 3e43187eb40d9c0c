package sitemap_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/fetch/sitemap"
	"github.com/stretchr/testify/require"
)

// randomEntry returns an entry with the fields that a format of the kind can hold.
func randomEntry(r *rand.Rand, kind sitemap.Kind) sitemap.Entry {
	e := sitemap.Entry{Kind: kind}
	e.URL = fmt.Sprintf("https://a.test/%x?a=%d&b='\"<>", r.Uint32(), r.IntN(9))
	if r.IntN(2) == 0 {
		e.LastMod = time.Unix(int64(r.Uint32()), 0).UTC()
	}
	if kind == sitemap.Item {
		e.Title, e.ID = []string{"", "<loc>no</loc>", "a & b"}[r.IntN(3)], []string{"", "urn:<1>"}[r.IntN(2)]
	}
	return e
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a Buffer never fails
	return b.String()
}

// writers write one entry in each format.
var writers = map[string]struct {
	kind        sitemap.Kind
	before, end string
	write       func(e sitemap.Entry) string
}{
	"sitemap": {sitemap.Page, "<urlset>", "</urlset>", func(e sitemap.Entry) string {
		return "<url>" + element("loc", e.URL) + element("lastmod", date(e, time.RFC3339)) +
			element("changefreq", "daily") + element("priority", "0.8") + "</url>"
	}},
	"index": {sitemap.Sitemap, "<sitemapindex>", "</sitemapindex>", func(e sitemap.Entry) string {
		return "<sitemap>" + element("lastmod", date(e, time.RFC3339)) +
			element("loc", e.URL) + "</sitemap>"
	}},
	"rss": {sitemap.Item, "<rss><channel>", "</channel></rss>", func(e sitemap.Entry) string {
		return "<item>" + element("title", e.Title) + element("link", e.URL) +
			element("guid", e.ID) +
			element("pubDate", date(e, time.RFC1123Z)) + "</item>"
	}},
	"atom": {sitemap.Item, "<feed>", "</feed>", func(e sitemap.Entry) string {
		return `<entry><x:y t="a > b"/><link rel="alternate" title='">' x:href="/no" href="` + escaped(e.URL) + `"/>` +
			element("title", e.Title) + element("id", e.ID) + element("updated", date(e, time.RFC3339)) + "</entry>"
	}},
}

func element(name, text string) string {
	if text == "" {
		return ""
	}
	return "<" + name + ">\n" + escaped(text) + "</" + name + ">"
}

func date(e sitemap.Entry, layout string) string {
	if e.LastMod.IsZero() {
		return ""
	}
	return e.LastMod.Format(layout)
}

// decorated adds what XML allows and an entry does not need.
func decorated(r *rand.Rand, doc string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(doc, ">\n") // of a field
		if b.WriteString(before); !ok {
			return b.String()
		}
		b.WriteString([]string{">\n", " >", " x:a='b > \"c' >", " a = \"b/>\">", "><?x a > <b> ?>", "><!-- > --><?x?>"}[r.IntN(6)])
		before, after, _ = strings.Cut(after, "</")
		b.WriteString(before + []string{"", "\n<?x > ?>", "<!-- </loc> -->"}[r.IntN(3)] + "</")
		doc = after
	}
}

// TestSitemapRoundTrip writes entries in each format and reads them back.
func TestSitemapRoundTrip(t *testing.T) {
	for name, format := range writers {
		for seed := range uint64(50) {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 3))
				var want, got []sitemap.Entry
				doc := format.before
				for range r.IntN(20) {
					e := randomEntry(r, format.kind)
					doc += decorated(r, format.write(e))
					e.URL = strings.NewReplacer("'", "%27", `"`, "%22", "<", "%3C", ">", "%3E").Replace(e.URL)
					want = append(want, e)
				}
				for e, err := range sitemap.Entries(strings.NewReader(doc+format.end), sitemapURL) {
					require.NoError(t, err)
					e.LastMod = e.LastMod.UTC()
					got = append(got, e)
				}
				require.Equal(t, want, got, "%s", doc)
			})
		}
	}
}

// However the reader cuts a document, a bracket in a URL stays one. Where a piece ends, more is read, and what
// was read moves.
func TestBracketsBetweenPieces(t *testing.T) {
	doc := "<urlset><url><loc>/1?a<b=cdefghijkl</loc></url><url><loc>/2</loc></url>" + strings.Repeat("-", 2*4096)
	want := []string{"page https://a.test/1?a%3Cb=cdefghijkl", "page https://a.test/2"}
	for pad := 4000; pad < 4110; pad++ {
		got, err := entries(strings.NewReader(strings.Repeat(" ", pad) + doc))
		require.NoError(t, err)
		require.Equal(t, want, got, "behind %d blanks", pad)
	}
}

// URLs that a base makes too long cost as much as others.
func TestABaseThatMakesAllURLsTooLong(t *testing.T) {
	doc := strings.Repeat("<url><loc>abc</loc></url>", 50_000)
	_, err := entries(strings.NewReader(`<urlset xml:base="/` + strings.Repeat("b", 8<<10-2) + `/">` + doc))
	require.ErrorIs(t, err, sitemap.ErrTooLarge)
	err = nil
	for _, err = range sitemap.Entries(strings.NewReader("<urlset>"+doc), "http://a.test/"+strings.Repeat("b", 8<<10)) {
		break
	}
	require.ErrorContains(t, err, "longer than 8 KiB")
}
