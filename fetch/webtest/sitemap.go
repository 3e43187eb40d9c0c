package webtest

import (
	"iter"
	"strconv"
	"strings"
	"time"
)

// The paths of sitemaps. robots.txt names the first one.
const (
	sitemapPath  = "/sitemap.xml"
	sitemapPages = "/sitemap-pages.xml"
	sitemapRest  = "/sitemap-orphans.xml.gz"
	orphanDir    = "/orphan/"
)

// Sitemap describes the sitemaps of a host; its robots.txt names them if it has rules. The zero
// Sitemap means that there are none.
type Sitemap struct {
	Orphans int  // pages that nothing else links to; 0 means no sitemap at all
	Index   bool // an index of two sitemaps, one of them gzipped
}

// Orphans returns the URLs of the pages that only the host's sitemap lists. They do not count as
// pages of the host.
func (h Host) Orphans() iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := range h.web.hosts[h.Index].traits.Sitemap.Orphans {
			if !yield(h.web.scheme + h.Name + orphanPath(n)) {
				return
			}
		}
	}
}

func orphanPath(n int) string { return orphanDir + strconv.Itoa(n) + ".html" }

// findSitemap reports whether the host has something at path that belongs to its sitemaps.
func (x *exchange) findSitemap(path string) (answer func() int, ok bool) {
	s := x.web.hosts[x.host].traits.Sitemap
	switch {
	case s.Orphans == 0:
		return nil, false
	case path == sitemapPath && s.Index:
		return x.sitemapIndex, true
	case path == sitemapPath:
		return func() int { return x.sitemap(true, true) }, true
	case path == sitemapPages && s.Index:
		return func() int { return x.sitemap(true, false) }, true
	case path == sitemapRest && s.Index:
		return func() int { return x.sitemap(false, true) }, true
	}
	n, ok := lastNumber(strings.TrimSuffix(path, ".html"))
	if !ok || n >= s.Orphans || path != orphanPath(n) {
		return nil, false
	}
	return func() int { return x.sendSmall("orphan "+strconv.Itoa(n), `<a href="/">home</a>`) }, true
}

var (
	typeXML  = []string{"application/xml"}
	typeGzip = []string{"application/gzip"}
)

// sitemapIndex lists the two sitemaps, and itself, which nobody should follow forever.
func (x *exchange) sitemapIndex() int {
	host := x.web.hosts[x.host].Host
	var b strings.Builder
	b.WriteString(`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	for _, path := range []string{sitemapPages, sitemapRest, sitemapPath} {
		b.WriteString("<sitemap><loc>" + x.web.scheme + host.Name + path + "</loc></sitemap>\n")
	}
	b.WriteString("</sitemapindex>\n")
	return x.send(typeXML, []byte(b.String()))
}

// sitemap lists pages with their last changes and one page of another host, which it is not allowed
// to list, or orphans, or both.
func (x *exchange) sitemap(pages, orphans bool) int {
	host := x.web.hosts[x.host].Host
	b := []byte(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	if pages {
		number := 0
		for url := range host.Pages() {
			changed := x.web.version(x.host, number).modified.UTC()
			b = appendEntry(b, url, "<lastmod>"+changed.Format(time.RFC3339)+"</lastmod>")
			number++
		}
		b = appendEntry(b, x.web.nextHost(x.host).URL()+"ghost/sitemap.html", "")
	}
	if orphans {
		for url := range host.Orphans() {
			b = appendEntry(b, url, "")
		}
	}
	b = append(b, "</urlset>\n"...)
	if pages {
		return x.send(typeXML, b)
	}
	z := zippers.Get().(*zipper)
	defer zippers.Put(z)
	return x.send(typeGzip, z.pack(b))
}

func appendEntry(b []byte, url, rest string) []byte {
	url = strings.ReplaceAll(url, "&", "&amp;")
	return append(b, "<url><loc>"+url+"</loc>"+rest+"</url>\n"...)
}
