package main

import (
	"bytes"
	"fmt"
	"net/url"
	"runtime"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/spinneret-go/spinneret/internal/bench/measure"
	"golang.org/x/net/html"
)

const base = "http://www.example.com/docs/page.html"

// linkEngines find the links of a page, each in its usual way, and resolve them. The baselines find
// none: one only tokenizes, one only builds a tree.
var linkEngines = []struct {
	name string
	find func(page []byte) int
}{
	{"tokenizer loop", tokenize},
	{"page.Links", func(body []byte) (n int) {
		for _, err := range page.Links(body, base, "text/html") {
			if err == nil {
				n++
			}
		}
		return n
	}},
	{"tree", func(page []byte) int {
		_, _ = html.Parse(bytes.NewReader(page))
		return 0
	}},
	{"goquery", query},
}

// links compares ways to find the links of pages, by CPU time including garbage collection. The
// reference is a loop over the tokens of golang.org/x/net/html that does nothing with them.
func links(rounds int) error {
	pages := generated()
	size := 0
	for _, page := range pages {
		size += len(page)
	}
	var r measure.Results
	found := map[string]int{}
	for round := range rounds + 1 {
		for _, e := range linkEngines {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start, n := measure.CPU(), 0
			for _, page := range pages {
				n += e.find(page)
			}
			took := measure.CPU() - start
			runtime.ReadMemStats(&after)
			found[e.name] = n
			if round > 0 { // the first round is a warm-up
				r.Add(e.name, float64(size)/1e6/took.Seconds(),
					float64(after.Mallocs-before.Mallocs)/float64(len(pages)),
					float64(after.TotalAlloc-before.TotalAlloc)/float64(len(pages)))
			}
		}
	}
	fmt.Printf("%d pages, %.1f MB; links found: %v\n", len(pages), float64(size)/1e6, found)
	return r.Print("engine", "tokenizer loop", "MB/CPU-s", "allocs/page", "bytes/page")
}

// generated returns a hundred pages with ever more links.
func generated() (pages [][]byte) {
	for n := range 100 {
		pages = append(pages, []byte("<!doctype html><title>x</title>"+strings.Repeat(
			`<p class="x y">some words<a class=z href="../some/page.html?id=1">text</a></p>`, 10*n)))
	}
	return pages
}

// tokenize reads each token and attribute, and finds no links.
func tokenize(page []byte) int {
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return 0
		case html.StartTagToken, html.SelfClosingTagToken:
			_, more := z.TagName()
			for more {
				_, _, more = z.TagAttr()
			}
		}
	}
}

var from, _ = url.Parse(base)

func resolved(ref string) bool {
	u, err := from.Parse(strings.TrimSpace(ref))
	return err == nil && u.String() != "" && strings.HasPrefix(u.Scheme, "http")
}

func query(page []byte) (n int) {
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(page))
	if err != nil {
		return 0
	}
	doc.Find("a[href], area[href], link[href], img[src], script[src], iframe[src]").Each(
		func(_ int, s *goquery.Selection) {
			ref, ok := s.Attr("href")
			if !ok {
				ref, _ = s.Attr("src")
			}
			if resolved(ref) {
				n++
			}
		})
	return n
}
