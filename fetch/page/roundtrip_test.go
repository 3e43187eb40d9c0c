package page_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/stretchr/testify/require"
)

// TestStylesModel assembles style sheets from pieces whose URLs are known.
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
		for l, err := range page.Styles([]byte(css.String()), "http://a.test/", "") {
			require.NoError(t, err)
			got = append(got, l.URL)
		}
		require.Equal(t, want, got, "seed %d: %s", seed, css.String())
	}
}

// tagStart is where an opening bracket is no text.
var tagStart = regexp.MustCompile(`<([A-Za-z!?]|/.)`)

// FuzzScanOptions checks that Scan yields the links of Links plus those that the options request.
// The texts are parts of the page, in order, without tags.
func FuzzScanOptions(f *testing.F) {
	f.Add([]byte("<title>a&amp;b</title>x<a href=y>z</a><style>url(i)</style><form action=s>"))
	f.Add([]byte("a<b<c><!-- d -->e<script>f</script>"))
	f.Add([]byte("1 < 2<p>3 <"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return // texts are always UTF-8
		}
		end := 0
		opts := page.Options{Styles: true, Meta: true, Text: func(piece []byte) {
			if string(piece) == "\n" || bytes.IndexByte(body, '&') >= 0 {
				return // between two blocks, or with a reference resolved
			}
			at := bytes.Index(body[end:], piece)
			if at < 0 || tagStart.Match(piece) {
				t.Fatalf("%q: piece %q after byte %d", body, piece, end)
			}
			end += at + len(piece)
		}}
		var all []page.Link
		for l, err := range page.Scan(body, pageURL, inUTF8, opts) {
			if err != nil {
				return
			}
			all = append(all, l)
		}
		for l, err := range page.Links(body, pageURL, inUTF8) {
			if err != nil {
				return
			}
			for len(all) > 0 && all[0] != l {
				all = all[1:]
			}
			if len(all) == 0 {
				t.Fatalf("%q: Scan misses %+v", body, l)
			}
		}
	})
}

// Strings that share memory must not share contents, and each page must need few blocks.
func TestLinksStringsDoNotOverlap(t *testing.T) {
	var body strings.Builder
	var want []string
	for n := range 3000 {
		fmt.Fprintf(&body, "<a href=/%d/%s rel='r%d'>", n, strings.Repeat("x", n%200), n)
		want = append(want, fmt.Sprintf("http://a.test/%d/%s r%d", n, strings.Repeat("x", n%200), n))
	}
	text := []byte(body.String())
	var links []page.Link
	for l, err := range page.Links(text, pageURL, inUTF8) {
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
		body := []byte(strings.Repeat(link, links))
		allocs := testing.AllocsPerRun(3, func() {
			for _, err := range page.Links(body, pageURL, inUTF8) {
				if err != nil {
					t.Error(err)
				}
			}
		})
		require.LessOrEqual(t, allocs, 12.0, "%d links", links)
	}
}

// TestALongTextIsNotKept: who keeps a link does not keep a directive before it, of whatever length.
func TestALongTextIsNotKept(t *testing.T) {
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	const pages, size = 16, 1_000_001
	body := []byte("<meta name=robots content='none," + strings.Repeat("x", size) + "'><a href=y>")
	before := heap()
	var kept []string
	for range pages {
		for l, err := range page.Links(body, pageURL, inUTF8) {
			require.NoError(t, err)
			if l.Kind == page.Anchor {
				kept = append(kept, l.URL)
			}
		}
	}
	require.Less(t, heap()-before, pages*size/4)
	require.Len(t, kept, pages)
	runtime.KeepAlive(body)
}
