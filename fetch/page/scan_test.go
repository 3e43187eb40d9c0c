package page_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/stretchr/testify/require"
)

// linkSet returns the yielded links, sorted and without duplicates.
func linkSet(links iter.Seq2[page.Link, error]) (set []string, err error) {
	for l, err := range links {
		if err != nil {
			return nil, err
		}
		set = append(set, fmt.Sprintf("%+v", l))
	}
	slices.Sort(set)
	return slices.Compact(set), nil
}

// same fails unless the scanner and a tree find the same links on the page, and returns their
// number.
func same(t *testing.T, body []byte, base, name string) (links int) {
	t.Helper()
	want, got := linkSets(t, body, base)
	if !slices.Equal(want, got) {
		t.Errorf("%s:\nwant %v\n got %v", name, want, got)
	}
	return len(got)
}

// linkSets returns the links of a page as a tree has them, and as the scanner finds them. Both are
// nil if the page has more links than allowed, or deeper nesting than a tree supports.
func linkSets(t *testing.T, body []byte, base string) (want, got []string) {
	want, err := linkSet(page.TreeLinks(body, base, page.Options{}))
	if err != nil {
		return nil, nil
	}
	got, err = linkSet(page.Links(body, base, inUTF8))
	require.NoError(t, err, "%q", body)
	return want, got
}

// sitePages iterates over real pages: every n-th HTML file below the directory that SPINNERET_SITES
// names.
func sitePages(tb testing.TB, nth int) iter.Seq2[string, []byte] {
	dir := os.Getenv("SPINNERET_SITES")
	if dir == "" {
		tb.Skip("no real pages: set SPINNERET_SITES to a directory of them")
	}
	return func(yield func(string, []byte) bool) {
		n, left := 0, false
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			body := strings.HasPrefix(filepath.Ext(path), ".htm") && !d.IsDir()
			if err != nil || left || !body {
				return err
			}
			if n++; n%nth != 0 {
				return nil
			}
			text, err := os.ReadFile(path)
			left = err == nil && !yield(path, text)
			return err
		})
		require.NoError(tb, err)
	}
}

func TestLinksOfRealPagesMatchTheTree(t *testing.T) {
	nth := 1
	if testing.Short() {
		nth = 20
	}
	pages, links := 0, 0
	for name, body := range sitePages(t, nth) {
		pages++
		links += same(t, body, "http://a.test/dir/page.html", name)
		// A truncated page is more broken than most pages.
		cut := rand.New(rand.NewPCG(uint64(pages), 0)).IntN(len(body) + 1)
		same(t, body[cut:], pageURL, name)
		same(t, body[:cut], pageURL, name)
	}
	t.Logf("%d pages, %d links", pages, links)
	require.Greater(t, links, pages, "real pages have links")
}

// markup has tokens for every state of the scanner. Random sequences of them make pages that no
// handwritten test would contain.
var markup = strings.Split("<|>|/|=|'|\"|!|--|-|?| |\n|\r|\r\n|\t|\f|\x00|x|a|]]>|<!--|"+
	"-->|--!>|<!|<?|</|/>|"+
	"<a |<a\n|<A/|href=|HREF |src=|<img src=i|<a href=x>|<a href='y'>|<a href=\"z\">|</a>|</|<b>|"+
	"<script>|</script>|</SCRIPT |<script|</script|<style>|</style>|<title>|</title|</title>|<xmp>|"+
	"</xmp>|<textarea>|</textarea>|<noscript>|</noscript>|<iframe src=f>|</iframe>|<noembed>|"+
	"<plaintext>|<![CDATA[|&amp;|&copy|&copy;|&not|&notit;|&#65;|&#x41|&#|&|&fjlig;|&semi;|"+
	"<meta name=robots content=none>|<!doctype html>|é|\xff|rel=nofollow ", "|")

func TestScannerMatchesTheTree(t *testing.T) {
	rounds := 8_000
	if testing.Short() {
		rounds = 2_000
	}
	links := 0
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 2))
		var body strings.Builder
		for range 1 + r.IntN(25) {
			body.WriteString(markup[r.IntN(len(markup))])
		}
		// These links show which constructs are still open at the end.
		body.WriteString("<a href=1><!----></script><a href=2>'><a href=3>\"><a href=4>")
		name := fmt.Sprintf("seed %d: %q", seed, body.String())
		links += same(t, []byte(body.String()), pageURL, name)
	}
	require.Greater(t, links, rounds)
}

func TestScriptsInComments(t *testing.T) {
	tests := []struct{ name, script string }{
		{"an end tag", `</script>`},
		{"an end tag in capitals with attributes", `</SCRIPT x='>'>`},
		{"not an end tag", `</scripts>`},
		{"a comment", `<!-- <a href=no> </script>`},
		{"a comment that ends at once", `<!--> <script> </script>`},
		{"a script in a comment", `<!-- <script> </script> <a href=no> --> </script>`},
		{"a script in a comment that ends before", `<!-- <script> --> </script>`},
		{"two scripts in a comment", `<!-- <script></script> <script/ </script > --> </script>`},
		{"dashes", `<!-- - -- --- ----> <script> </script>`},
		{"an unclosed comment", `<!-- <script> </script> <a href=no>`},
		{"a tag in a comment", `<!-- <b> < <script> </script>`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := "<script src=s>" + tt.script + "<a href=x></script><a href=y>"
			same(t, []byte(body), pageURL, body)
		})
	}
}

// Character references in attributes have other rules than in text. Links decodes them with the
// function of the tokenizer's package for text.
func TestReferencesInLinks(t *testing.T) {
	for name := range strings.FieldsSeq(`amp copy not notit notin lt gt quot semi fjlig NotEqualTilde
		Zopf nvlt bne acE hearts sect reg AMP COPY ampx x #65 #x41 #X4a #0 #128 #x9f #55296 #1114112
		#99999999999999999999 # #x #xg CounterClockwiseContourIntegral nbsp apos thinsp`) {
		for _, after := range []string{"", ";", "=", "=1", ";=", "x", ";;", "&", "&amp;", "-", "\x00"} {
			body := "<a href='/?" + "&" + name + after + "'>"
			same(t, []byte(body), pageURL, body)
		}
	}
}

func TestScannerHasNoLimitOnTokens(t *testing.T) {
	long := strings.Repeat("- ", 5<<20)
	for _, body := range []string{"<!--" + long + "-->", "<style>" + long + "</style>",
		"<p title='" + long + "'>", "<a title='" + long + "'>", long} {
		got, err := collect("<a href=x>"+body+"<a href=y>", pageURL)
		require.NoError(t, err)
		require.Len(t, got, 2)
	}
}

// FuzzScanner checks that a tree has the same links, where the elements around a tag do not matter.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("<a href=x&copy><script><!--<script></script>--></script><a/href/=y/>"))
	f.Add([]byte("<!--><a href='x\r\n&#13;\x00'><style></style ><noscript><a href=z></noscript>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		lower := bytes.ToLower(body)
		for _, tag := range []string{"<svg", "<math", "<frame", "<template", "<form"} {
			if bytes.Contains(lower, []byte(tag)) {
				return
			}
		}
		if utf8.Valid(body) {
			same(t, body, pageURL, fmt.Sprintf("%q", body))
		}
	})
}

// BenchmarkLinks measures generated pages, in which the scanner can skip little, and real pages.
func BenchmarkLinks(b *testing.B) {
	for _, links := range []int{10, 100, 1000} {
		body := "<!doctype html><title>x</title>" + strings.Repeat(
			`<p class="x y">some words<a class=z href="../some/page.html?id=1">text</a></p>`, links)
		benchmarkEngines(b, fmt.Sprintf("links=%d", links), [][]byte{[]byte(body)})
	}
	if os.Getenv("SPINNERET_SITES") != "" {
		var real [][]byte
		for _, body := range sitePages(b, 97) {
			real = append(real, body)
		}
		benchmarkEngines(b, "pages=real", real)
	}
}

func benchmarkEngines(b *testing.B, name string, pages [][]byte) {
	engines := map[string]func(body []byte) int{
		"scanner": func(body []byte) (links int) {
			for range page.Links(body, pageURL, inUTF8) {
				links++
			}
			return links
		},
		"tokenizer-loop": page.TokenizerLoop,
	}
	size := 0
	for _, body := range pages {
		size += len(body)
	}
	for engine, run := range engines {
		b.Run(name+"/engine="+engine, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				for _, body := range pages {
					run(body)
				}
			}
			b.ReportMetric(float64(b.N*len(pages))/b.Elapsed().Seconds(), "pages/s")
		})
	}
	b.Logf("%s: %d pages, %d bytes", name, len(pages), size)
}

// TestShadowRootsAreShown: a template that is the shadow root of its parent is no hidden one. Others are, also in HTML within SVG.
func TestShadowRootsAreShown(t *testing.T) {
	for body, want := range map[string]string{
		`<div><template shadowrootmode="open"><p>article</p></template></div>end`:                             "article end",
		`a<template><p>x</p></template>b`:                                                                     "a b",
		`a<template><template shadowrootmode=open>x</template>y</template>b`:                                  "a b",
		`<svg><foreignObject><template>x</template>a</foreignObject></svg>b`:                                  "a b",
		`<div><template ShadowRootMode=open>a<template>x</template>b</template></div><template>y</template>c`: "a b c",
	} {
		var text []byte
		for _, err := range page.Scan([]byte(body), "https://a.example/", "text/html", page.Options{Text: func(p []byte) { text = append(text, p...) }}) {
			require.NoError(t, err)
		}
		require.Equal(t, want, strings.Join(strings.Fields(string(text)), " "), body)
	}
}
