// Package stage holds the steps of a crawl as plain functions and small tables, one for each module
// of Ueda et al., "A parallel distributed crawler of producer-consumer modules" (§5). Programs wire
// them; a stage knows nothing of the others.
//
//	seeder (m)              Seeds
//	URL format filter (f)   urlfilter.Format, in Filter
//	explicit filter (g)     urlfilter.List, in Filter with Scope and patterns
//	duplicate check (h)     dedupe.Filter
//	resolver (i)(j)         Resolver
//	robots.txt (c)(k)       Robots
//	scheduler (a)(b)        scheduler.Scheduler
//	downloader (d)          fetch.Client, and Judge for what came of it
//	HTML parser (e)         Extract
//	data store (l)          Capture
package stage

import (
	"strings"

	"github.com/spinneret-go/spinneret/robots"
)

// An Item is what travels between the stages: one URL to be fetched, and how it was come by.
type Item struct {
	URL   string // in canonical form
	Depth int    // links between the nearest seed and this URL
	Hops  int    // redirects since the last link

	// Robots is the request for a robots.txt that this item stands for; nil for pages.
	Robots *robots.Request
}

// Seeded says whether the item is a seed, or what a seed redirects to.
func (it Item) Seeded() bool { return it.Depth == 0 }

// Authority returns the part of an absolute URL that names the server: host, and port if it is not
// the scheme's own.
func Authority(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}
