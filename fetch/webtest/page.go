package webtest

import (
	"math"
	"strconv"
	"sync"
)

// goDir leads to pages through a redirect: /r/17 is a 301 to page 17 of the host. No word of the
// vocabulary is a single letter, so no page has such a path.
const goDir = "/r/"

// minSize and maxSize bound the size drawn for a page: the smallest body has little besides its
// links.
const (
	minSize = 256
	maxSize = 1 << 20
)

// sizeSigma is the spread of the logarithm of the sizes.
const sizeSigma = 0.6

// page is the work space for making one page. It is pooled: once warm, a page costs no allocation.
type page struct {
	web      *Web
	host     int
	number   int
	base     bool // a <base href> stands in the head
	text     rng  // draws words and forms
	path     []byte
	target   []byte
	other    []byte
	entities []byte
	links    []link
	rest     []link // of links: those not yet written
	body     []byte
}

var pages = sync.Pool{New: func() any { return new(page) }}

// render writes the bytes of a page into p.body. The version changes only the text.
func (p *page) render(w *Web, host, number int, version uint64) {
	p.web, p.host, p.number = w, host, number
	p.text = w.stream(saltText, host, number)
	p.path = w.appendPath(p.path[:0], host, number)
	p.links = w.appendLinks(p.links[:0], host, number)
	p.rest = p.links
	p.base = p.text.below(16) == 0
	words := w.stream(saltVersion, host, number) ^ rng(version)

	b := p.appendHead(p.body[:0])
	if p.text.below(8) == 0 {
		b = p.appendGhosts(b)
	}
	if number == 0 {
		b = p.appendTraps(b)
	}
	size := w.pageSize(host, number)
	for len(b) < size || len(p.rest) > 0 {
		b = p.appendParagraph(b, &words, size)
	}
	p.body = append(b, "</body></html>\n"...)
}

// appendHead ends the title with the page's number, so that a person who reads a crawl's output
// sees which page it is.
func (p *page) appendHead(b []byte) []byte {
	b = append(b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>"...)
	for range 2 + p.text.below(4) {
		b = append(append(b, p.web.prose.word(&p.text)...), ' ')
	}
	b = appendInt(b, p.number)
	b = append(b, "</title>\n"...)
	if p.base {
		b = append(append(b, "<base href=\""...), p.web.scheme...)
		b = append(b, p.web.hosts[p.host].Name...)
		b = append(b, "/\">\n"...)
	}
	return append(b, "</head><body>\n"...)
}

// appendGhosts writes text that looks like links to a careless scanner. Nothing else points below
// /ghost/, so a request there exposes the scanner.
func (p *page) appendGhosts(b []byte) []byte {
	b = append(b, "<!-- <a href=\"/ghost/comment.html\">old</a> -->\n"...)
	b = append(b, "<script>var s = '<a href=\"/ghost/script.html\">';</script>\n"...)
	b = append(b, "<a href=\"javascript:void(0)\">top</a> <a name=\"here\">anchor</a>\n"...)
	b = append(b, "<a href=\"mailto:web@vweb.test\">mail</a>\n"...)
	if p.base {
		return b // a bare fragment would lead to the base, not to this page
	}
	return append(b, "<a href=\"#here\">here</a>\n"...)
}

// appendTraps links the hostile paths that are enabled on the host.
func (p *page) appendTraps(b []byte) []byte {
	for _, t := range traps {
		if p.web.hosts[p.host].traits.Traps&t.bit == 0 {
			continue
		}
		for _, rest := range t.links {
			path := t.name + rest
			b = append(append(b, "<p><a href=\""+trapDir...), path...)
			b = append(append(append(b, "\">"...), path...), "</a></p>\n"...)
		}
	}
	return b
}

// appendParagraph writes some sentences, if the page has not reached its size, and some of the
// remaining links.
func (p *page) appendParagraph(b []byte, words *rng, size int) []byte {
	b = append(b, "<p>"...)
	for range 2 + p.text.below(4) {
		if len(b) < size {
			b = append(b, p.web.prose.sentence(words)...)
		}
	}
	n := min(1+p.text.below(3), len(p.rest))
	for _, l := range p.rest[:n] {
		b = p.appendAnchor(b, l)
	}
	p.rest = p.rest[n:]
	return append(b, "</p>\n"...)
}

// pageSize draws the size of a page from a log-normal distribution, which is how page sizes of
// the real web are spread.
func (w *Web) pageSize(host, number int) int {
	r := w.stream(saltSize, host, number)
	return int(min(max(minSize, w.size*math.Exp(sizeSigma*r.norm())), maxSize))
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
