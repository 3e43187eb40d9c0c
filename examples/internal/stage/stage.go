// Package stage holds the steps of a crawl as plain functions and small tables, one for each module
// of Ueda et al., "A parallel distributed crawler of producer-consumer modules" (§5). Programs wire
// them; a stage does not depend on the others.
//
//	seeder (m)              urlfilter.Seeds
//	URL format filter (f)   urlfilter.Format, in Filter
//	explicit filter (g)     urlfilter.List and Scope, in Filter with patterns
//	duplicate check (h)     satstore.Store, in Pages
//	resolver (i)(j)         resolve.Resolver
//	robots.txt (c)(k)       Robots
//	scheduler (a)(b)        scheduler.Scheduler
//	downloader (d)          fetch.Client, and Classify for its result
//	HTML parser (e)         Extract, and List for sitemaps
//	data store (l)          Capture
//
// and the long-term queue of Tamura and Kitsuregawa's incremental crawler: Pages.
package stage

import (
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/robots"
)

// An Item is what travels between the stages: one URL to be fetched, and how it was found.
type Item struct {
	URL   string // in canonical form
	Depth int    // links between the nearest seed and this URL
	Hops  int    // redirects since the last link, as NextHop counts them
	From  string // URL of the page that links to it, on discovery; "" if none does

	// Strange means that another site had the first link to it, or a redirect. Strangers can link to
	// any number of pages that do not exist, so such pages prove nothing about their site.
	Strange bool

	// LastMod is the last change of the page according to a sitemap, in Unix time; 0 if unknown.
	LastMod int64

	// The kind of an item that is not a page; otherwise nil.
	Robots  *robots.Request // a request for a robots.txt
	Sitemap *Sitemap

	// Visit is the page's, from Pages; nil for items that are not stored there, such as a
	// robots.txt.
	Visit *Visit
}

// Seeded reports whether the item is a seed, or the target of its redirect.
func (it Item) Seeded() bool { return it.Depth == 0 && it.Sitemap == nil }

// maxRedirects is how often a redirect is followed within a site, and from one site to another.
const maxRedirects = 10

// NextHop returns the Hops of the target of a redirect, or false if there were too many. Those within a
// site are counted anew at each site: otherwise a site could lead others to the start of a long chain,
// and the redirects from there would be too many.
func (it Item) NextHop(target string) (hops int, ok bool) {
	sites, within := it.Hops/(maxRedirects+1), it.Hops%(maxRedirects+1)
	if within++; weburl.Site(it.URL) != weburl.Site(target) {
		sites, within = sites+1, 0
	}
	return sites*(maxRedirects+1) + within, sites <= maxRedirects && within <= maxRedirects
}

// ByStrangers returns the Strange of an item that was discovered on the page From. If that redirects
// here, the item has its Strange so far.
func (it Item) ByStrangers() bool {
	foreign := it.From != "" && weburl.Host(it.From) != weburl.Host(it.URL) &&
		weburl.Site(it.From) != weburl.Site(it.URL)
	return foreign || it.Hops > 0 && it.Strange
}

// Authority returns the part of an absolute URL that names the server: host, and port if it is not
// the scheme's own.
func Authority(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// Plain returns the canonical form of a URL that was requested explicitly, with the one form of its host's name.
func Plain(url string) (string, error) { return StepsFor(Item{}, true).Canonical(url) }

// StepsFor returns how to simplify a URL, so that /blog/?utm_source=x is not fetched in addition to
// /blog/. Seeds and sitemaps were requested explicitly. A redirect may lead from a page to the same
// one with a session, and would otherwise lead nowhere.
func StepsFor(it Item, asFound bool) weburl.Steps {
	if asFound || it.Seeded() || it.Sitemap != nil || it.Hops > 0 {
		return weburl.Steps{DropRootDot: true} // delays, pauses and limits go by the host
	}
	return weburl.Steps{NormalizeEscapes: true, DropTracking: true, DropSessions: true, DropRootDot: true}
}
