package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// discover handles one URL that was found. It returns the canonical form, or "" if the URL is not
// crawled. On a crowded host only known pages are. A page on which it was found takes note if the deny
// list is the reason.
func (c *crawler) discover(raw string, it stage.Item) (canonical string) {
	context := c.recent.contextOf(it)
	why, met := c.recent.find(raw, context)
	if met && why != stage.Denied { // by a line that has to be known
		c.count(raw, why)
		return orNone(raw, why)
	}
	var err error
	if it.URL, err = stage.StepsFor(it, c.Cfg.AsFound).Canonical(raw); err != nil {
		c.count("", urlfilter.Malformed(err))
		return ""
	}
	it.Strange = it.ByStrangers()
	why = c.Filter.Check(it)
	if why == stage.Denied && it.Visit != nil {
		it.Visit.State.Barred |= stage.BarredBy(c.Filter.DeniedBy(it.URL))
	}
	it.Visit = nil
	if why == "" {
		why = c.traps.admit(it)
	}
	if why == "" && !it.Seeded() && weburl.Host(it.From) != weburl.Host(it.URL) && !c.Hosts.TakesHost(it.URL, it.From) {
		why = stage.ManyHosts
	}
	if why == "" && it.Strange && !it.Seeded() && !c.Hosts.TakesStrange(it.URL) {
		why = stage.ManyStrange
	}
	if c.count(it.URL, why) {
		nearer := c.Depths.Nearer(it)
		if err := c.Pages.Discover(it); err != nil {
			c.stop(err)
			return ""
		}
		stage.Wake(c.changed)
		if nearer {
			c.bringNearer(it.URL)
		}
	}
	if why != "" || it.URL == raw {
		c.recent.keep(raw, context, why)
	}
	return orNone(it.URL, why)
}

// orNone returns a URL, or "" if there is a reason not to crawl it.
func orNone(url string, why stage.Reason) string {
	if why != "" {
		return ""
	}
	return url
}

// count counts a link that passes the filters, or the reason why it does not. It returns false if
// the link cannot be a new page.
func (c *crawler) count(url string, why stage.Reason) (followed bool) {
	if why == "" && c.Hosts.IsCrowded(url) {
		why = stage.CrowdedHost
	}
	if why != "" {
		c.Tally.Skip(why)
		return false
	}
	c.Tally.Discovered()
	return true
}

// advance routes the next items in the order of their ranks, while there is room.
func (c *crawler) advance() {
	for c.Order != nil {
		it, ok := c.Order.Next()
		if !ok {
			return
		}
		c.route(it)
	}
}

// route enqueues an item or ends it, as the robots.txt of its server requires.
func (c *crawler) route(it stage.Item) {
	if c.rule(it) {
		c.enqueue(it)
	}
}

// rule checks an item with the robots table, and ends or parks it if it may not be fetched.
func (c *crawler) rule(it stage.Item) (allowed bool) {
	ruling := c.Robots.Rule(it, time.Now())
	if ruling.News != nil {
		c.learn(it.URL, *ruling.News, it.Depth)
		for _, waiting := range ruling.News.Released {
			c.route(waiting)
		}
	}
	switch ruling.Step {
	case stage.Stop:
		if !ruling.Until.IsZero() {
			it.Visit.RetryAfter = max(time.Until(ruling.Until), time.Second)
		}
		c.end(it, ruling.Fate, ruling.Why)
	case stage.Ask:
		c.enqueueRobots(ruling.Request)
	}
	if ruling.Step != stage.Go || it.Robots != nil || it.Sitemap != nil {
		return ruling.Step == stage.Go
	}
	return c.unobjected(it, nil)
}

// unobjected reports whether the site objects to no use that -respect-signals names. Otherwise it
// ends the item.
func (c *crawler) unobjected(it stage.Item, h http.Header) bool {
	signals := c.Robots.Signals(it.URL, h, time.Now())
	it.Visit.Signals = stage.Stated(signals)
	against := stage.Against(signals, c.Cfg.Respect)
	if against != "" {
		c.end(it, stage.Disallowed, "the site states "+against)
	}
	return against == ""
}

// enqueueRobots makes an item of a request for a robots.txt.
func (c *crawler) enqueueRobots(req robots.Request) {
	url, err := stage.Plain(req.URL)
	if err != nil { // the redirect target is not a valid URL
		c.silent(req, stage.RobotsUnreachable, err.Error())
		return
	}
	if c.isAway(weburl.Host(url)) { // the pages that wait for the file would stay in the queue
		c.silent(req, stage.RobotsUnreachable, url+": the host asks to wait for long")
		return
	}
	c.enqueue(stage.Item{URL: url, Robots: &req})
}

// maxForeignRules is how many servers of other sites may redirect their robots.txt to one host in a day.
// The requests to that host are not its own choice.
const maxForeignRules = 100

// barsRobots returns why a robots.txt is not requested, or "". A server may redirect that request
// anywhere, but nobody's robots.txt, which everybody may read, leads the crawler to where it would
// not go by itself.
func (c *crawler) barsRobots(it stage.Item) (why string) {
	host := weburl.Host(it.URL)
	file, err := robotstxt.Locate(it.URL)
	bar := c.Filter.Bars(it.URL)
	switch {
	case bar != "":
		return it.URL + ": " + string(bar)
	case it.Robots.Hop == 0 || host == weburl.Host(it.Robots.For):
		return ""
	case err != nil || it.URL != file && !c.wouldFetch(it.URL):
		return "redirects to " + it.URL + ", which this crawl does not fetch"
	case weburl.Site(it.URL) == weburl.Site(it.Robots.For): // its owner's own choice
		return ""
	case !c.foreignRules.Add(time.Now().UTC().Format(time.DateOnly)+" "+host, maxForeignRules):
		return "redirects to " + it.URL + ", as too many servers do"
	}
	return ""
}

// wouldFetch reports whether a URL passes the filters, and its host does not disallow it as far as
// is known.
func (c *crawler) wouldFetch(url string) bool {
	return c.Filter.Check(stage.Item{URL: url}) == "" && !c.Robots.Forbids(url, time.Now())
}

// enqueue hands an item to the scheduler. If the address of its host is not known yet, the visit
// looks it up.
func (c *crawler) enqueue(it stage.Item) {
	addr, _ := c.Resolver.Cached(weburl.Host(it.URL))
	if err := c.Polite.Enqueue(it, addr); err != nil {
		c.stop(fmt.Errorf("queue %s: %w", it.URL, err)) // the room is what bounds the queue
	}
}

// interrupt repeats a visit that failed locally: in this run or, if it ends, in the next one.
func (c *crawler) interrupt(ctx context.Context, it stage.Item, err error) {
	switch {
	case ctx.Err() == nil:
		c.enqueue(it)
	case it.Robots == nil:
		c.end(it, stage.Interrupted, err.Error())
	default:
		c.Robots.Abandon(*it.Robots)
	}
}

// squeezed ends a visit whose response was cut because other pages have taken the memory, which is not the
// server's doing: a page is retried later, and a robots.txt soon, for some times. It reports whether it did.
func (c *crawler) squeezed(it stage.Item, resp *fetch.Response) bool {
	switch {
	case resp.Truncated != fetch.CutMemory && resp.RawCut != fetch.CutMemory:
		return false
	case it.Robots == nil:
		c.end(it, stage.Unstored, "large pages of others have taken a quarter of -memory")
	case it.Hops < maxRobotsTries:
		it.Hops++
		c.enqueue(it)
	default:
		return false
	}
	return true
}
