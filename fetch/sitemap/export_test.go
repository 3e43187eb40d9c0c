package sitemap

import "io"

// SitemapWithin iterates over a sitemap, and reads at most total bytes of it.
func SitemapWithin(r io.Reader, base string, total int) error {
	l := lister{yield: func(Entry, error) bool { return true }, left: MaxEntries, total: total}
	return l.walk(r, base)
}
