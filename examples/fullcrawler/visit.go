package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/robots/usage"
	"github.com/spinneret-go/spinneret/scheduler"
)

// pausedLook is the interval between checks of a paused host.
const pausedLook = 5 * time.Second

// skipped is the outcome of a visit that made no request.
var skipped = scheduler.Outcome{Skipped: true}

// visit performs the task of a lease, and reports when and how long it occupied the host.
func (c *crawler) visit(ctx context.Context, lease *scheduler.Lease[stage.Item]) scheduler.Outcome {
	it := lease.Item()
	if c.Paused.Has(lease.Host()) {
		lease.Requeue(skipped, time.Now().Add(pausedLook))
		return skipped
	}
	release, ok := c.Places.Claim(lease.Host())
	if !ok {
		lease.Requeue(skipped, time.Now().Add(stage.PlaceAgain))
		return skipped
	}
	defer release()
	found := c.locate(lease)
	addr := found.Addr
	switch {
	case errors.Is(found.Err, stage.ErrManyLookups), c.Paused.Has(lease.Host()): // meanwhile
		lease.Requeue(skipped, time.Now().Add(stage.FindAgain))
		return skipped
	case found.Err != nil:
		c.giveUp(c.ending, it, found.Err, netip.Addr{}, found.Began)
		return skipped
	}
	if !c.move(it, addr) {
		return skipped
	}
	if !lease.Reach(addr) {
		lease.Requeue(skipped, time.Time{}) // its address is new or has changed, and has no room yet
		return skipped
	}
	outcome := c.request(ctx, it, addr)
	c.advance() // before the lease ends, or the crawl could look finished
	lease.Done(outcome)
	c.visited(lease.Host(), outcome)
	return outcome
}

// locate resolves the host of a lease. While it waits, another visit takes its place. If the lookup
// takes long, another host gets the turn at the old address.
func (c *crawler) locate(lease *scheduler.Lease[stage.Item]) stage.Finding {
	if addr, known := c.Resolver.Cached(lease.Host()); known {
		return stage.Finding{Addr: addr}
	}
	c.Places.Leave()
	defer c.Places.Enter()
	return c.Finder.Addr(c.ending, lease.Host(), func() { lease.Reach(netip.Addr{}) })
}

// request fetches the page, sitemap or robots.txt of an item, if that is still allowed.
func (c *crawler) request(ctx context.Context, it stage.Item, addr netip.Addr) scheduler.Outcome {
	if it.Robots != nil {
		if why := c.barsRobots(it); why != "" {
			c.refuseRobots(*it.Robots, why)
			return skipped
		}
		return c.visitRobots(ctx, it, addr)
	}
	if !c.Quota.Take(c.ending) {
		return skipped
	}
	page, o := false, skipped
	// Once more just before the request (paper Q §5.2.4): the page may have waited for hours.
	switch why := c.Filter.Check(it); {
	case c.Paused.Has(weburl.Host(it.URL)):
		c.enqueue(it)
	case why != "":
		c.end(it, stage.Unwanted, string(why))
	case c.rule(it):
		page, o = c.visitPage(ctx, it, addr)
	}
	if c.Quota.Done(page) {
		c.stop(cockpit.ErrPageLimit)
	}
	return o
}

// move charges a page to the share of its current address. If there is no room, the page is
// postponed.
func (c *crawler) move(it stage.Item, addr netip.Addr) (room bool) {
	addr = c.Polite.Shared.Counted(addr)
	if it.Robots != nil || it.Visit.Early() || it.Visit.Addr == addr {
		return true
	}
	until := c.Hosts.Move(weburl.Host(it.URL), it.Visit.Addr, addr)
	if until == 0 {
		it.Visit.Addr = addr
		return true
	}
	c.Hosts.Leave(weburl.Host(it.URL), it.Visit.Addr)
	c.putBack(it, until)
	return false
}

// putBack returns a page that is in flight to the store.
func (c *crawler) putBack(it stage.Item, until int64) {
	if c.Order != nil {
		c.Order.Done(it.URL)
	}
	c.Tally.Reopen()
	c.postpone(it, until)
}

// visited records what a visit tells about the time of the next ones. If the host is not visited for
// long, its pages leave the queue, where they would take the places of other hosts' pages.
func (c *crawler) visited(host string, o scheduler.Outcome) {
	if o.Skipped {
		return
	}
	wait, now := time.Duration(0), time.Now()
	if reason := c.Polite.Queue.Explain(host); reason.Failures > 0 || o.RetryAfter.After(now) {
		wait = max(reason.Until.Sub(now), 0)
	}
	pace, until := time.Duration(0), time.Time{}
	if wait == 0 {
		pace = c.Clock.Shown(c.Polite.Pace(host, o.Took))
	} else {
		until = c.Clock.Now().Add(c.Clock.Shown(wait))
	}
	c.Hosts.Visited(host, pace, until)
	if wait < stage.Horizon/2 {
		return
	}
	away := c.isAway(host)
	for _, task := range c.Polite.Queue.Withdraw(host) {
		switch it := task.Item; {
		case it.Robots != nil && away:
			c.enqueueRobots(*it.Robots) // which does not wait
		case it.Robots != nil, it.Visit.Early() && !away:
			c.enqueue(it)
		default:
			c.putBack(it, c.Hosts.TakeBack(host, it.Visit.Addr))
		}
	}
}

// isAway reports whether a host has asked for a pause for which a crawl without other work does not wait.
// It may be longer than -wait, as the scheduler spreads the hosts that ask for the same pause.
func (c *crawler) isAway(host string) bool {
	reason := c.Polite.Queue.Explain(host)
	return reason.Rule == stage.AskedToWait && time.Until(reason.Until) > max(2*c.Cfg.Wait, stage.Horizon)
}

// visitPage fetches and archives a page or a sitemap, and discovers its links if it has changed. It
// reports whether it got a page, changed or not.
func (c *crawler) visitPage(
	ctx context.Context, it stage.Item, addr netip.Addr,
) (page bool, o scheduler.Outcome) {
	known := it.Visit.State.Validators
	if it.Visit.State.Relink || it.Sitemap != nil && it.Visit.State.Failures > 0 || known != (fetch.Validators{}) && !c.archived.Has(ctx, it.URL) {
		known = fetch.Validators{} // "not modified" would come without links, or without what the archive lacks
	}
	resp, given := c.get(ctx, it, addr, known)
	if resp == nil {
		return false, given
	}
	defer c.client.Release(resp)
	by := stage.Wall(resp)
	o = c.Polite.Outcome(resp, by != "")
	listed := it.Sitemap != nil
	it, _ = c.Depths.Latest(c.asPage(it, resp))
	if it.Sitemap == nil && (listed || usage.FromHeader(resp.Header) != nil) && !c.unobjected(it, resp.Header) {
		return false, o // it is not archived, nor are its links followed
	}
	if by != "" { // it is not stored as the page, nor is it a change
		c.end(it, stage.Walled, by)
		return false, o
	}
	if err := c.keep(resp, it.Visit.Signals); err != nil { // if the archive has failed, this becomes an interruption
		c.end(it, stage.Unstored, err.Error())
		return false, o
	}
	fate, why := c.evaluate(it, resp)
	state := &it.Visit.State
	if fate.Page() || fate == stage.Redirected || state.Relink && fate.Retry() == 0 {
		if listed, what := c.links(it, resp); listed != "" {
			fate, why = listed, what
		}
		state.Relink = false
	}
	c.end(it, fate, why)
	return it.Sitemap == nil && (fate.Page() || fate == stage.Unchanged), o
}

// asPage makes a page of an item that was listed as a sitemap but is a page, if the filters allow that.
// Everybody's robots.txt can name any URL, and that must not hide a page.
func (c *crawler) asPage(it stage.Item, resp *fetch.Response) stage.Item {
	if it.Sitemap == nil || !stage.IsPage(resp) {
		return it
	}
	page := it.AsPage()
	if c.Filter.Check(page) != "" {
		return it
	}
	page.Visit.Is(page)
	return page
}

// links discovers the links of a page. For a sitemap it discovers the URLs in it, and returns the
// sitemap's fate.
func (c *crawler) links(it stage.Item, resp *fetch.Response) (listed stage.Fate, why string) {
	it.Visit.State.Barred = 0
	switch fate := stage.FateOf(resp); {
	case fate == stage.Redirected:
		c.redirect(it, resp.Location)
	case fate.Page() && it.Sitemap != nil:
		return c.list(it, resp)
	case fate.Page():
		c.extract(it, resp)
	}
	return "", ""
}

// evaluate determines the fate of a visited page and updates the page's state.
func (c *crawler) evaluate(it stage.Item, resp *fetch.Response) (fate stage.Fate, why string) {
	fate, why = stage.FateOf(resp), stage.Detail(resp)
	if fate == stage.SentAway {
		it.Visit.RetryAfter = min(resp.RetryAfter, stage.MaxRetryAfter)
	}
	if fate.Retry() > 0 {
		return fate, why
	}
	change := it.Visit.State.Compare(resp, c.Cfg.Texts)
	c.revisits.Observe(it, resp, change == stage.RealChange)
	if fate.Page() {
		c.traps.note(it)
	}
	switch {
	case change == stage.NoChange:
		return stage.Unchanged, ""
	case change == stage.SlightChange && fate == stage.Fetched:
		return stage.HardlyChanged, ""
	case fate == stage.Redirected:
		if _, ok := it.NextHop(resp.Location); !ok {
			return stage.TooManyRedirects, why
		}
	}
	return fate, why
}

// extract discovers the links of a page.
func (c *crawler) extract(it stage.Item, resp *fetch.Response) {
	host, siblings := weburl.Host(it.URL), 0
	if !it.Visit.Before.IsZero() && c.revisits.Publishing(host) {
		siblings = mostSiblings
	}
	var links []string
	stage.Extract(resp, c.Cfg.Agent, c.Cfg.Resources, func(url string, why stage.Reason) {
		to := c.follow(stage.Item{URL: url, Depth: it.Depth + 1, From: it.URL, Visit: it.Visit}, why)
		if c.Order != nil && to != "" && !c.Hosts.IsCrowded(to) { // an endless host would fill the order
			links = append(links, to)
		}
		if siblings > 0 && weburl.Host(to) == host {
			siblings--
			c.reconsider(to, time.Time{})
		}
	})
	c.rank(it.URL, links...)
}

// rank passes a page's links to the order of items, if there is one.
func (c *crawler) rank(url string, links ...string) {
	if c.Order != nil {
		c.Order.Fetched(url, links)
	}
}

// follow discovers the target of a link, unless there is a reason not to.
func (c *crawler) follow(it stage.Item, why stage.Reason) (canonical string) {
	if why != "" {
		c.Tally.Skip(why)
		return ""
	}
	return c.discover(it.URL, it)
}

// list discovers the URLs of a sitemap and returns the fate of the sitemap.
func (c *crawler) list(it stage.Item, resp *fetch.Response) (stage.Fate, string) {
	entries := 0
	last := it.Visit.Before
	err := stage.List(resp, it, func(entry stage.Item, why stage.Reason) {
		entries++
		entry.Visit = it.Visit
		url := c.follow(entry, why)
		modified := time.Unix(entry.LastMod, 0)
		if url != "" && !last.IsZero() && modified.After(last) {
			c.reconsider(url, modified)
		}
	})
	switch {
	case err != nil && entries == 0:
		return stage.NoSitemap, err.Error()
	case err != nil:
		return stage.Listed, err.Error()
	}
	return stage.Listed, stage.Detail(resp)
}

// maxSitemaps is how many sitemaps a robots.txt may name. Each may be an index of 50,000.
const maxSitemaps = 100

// learn applies the other lines of a robots.txt: the crawl delay and the sitemaps. A sitemap gets
// the depth of the nearest page that waits for the rules.
func (c *crawler) learn(url string, rules stage.Answered, nearest int) {
	if longest := c.Polite.SetDelay(url, rules.Delay); rules.Delay > 0 {
		stage.Wake(c.asked)
		c.Log.Info("Crawl-delay", "host", weburl.Host(url), "delay", longest.String())
	}
	if !c.Cfg.Sitemaps || c.Cfg.Reach == urlfilter.Page || nearest == math.MaxInt {
		return
	}
	it := stage.Item{Depth: nearest, From: url, Sitemap: &stage.Sitemap{Server: stage.Authority(url)}}
	for n, sitemap := range rules.Sitemaps {
		if n < maxSitemaps {
			c.discover(sitemap, it)
		} else {
			c.Tally.Skip(stage.ManySitemaps)
		}
	}
}

// redirect discovers the target of a redirect. The target of a seed's redirect is a seed too: a
// user who seeds http://example.org wants https://www.example.org. But only the first one of a run: a seed
// that leads elsewhere each time does not lead the crawl through the web.
func (c *crawler) redirect(it stage.Item, location string) {
	if url, err := stage.Plain(location); err == nil && it.Seeded() && c.leads(it.URL, url) {
		c.widen(url)
	}
	it.Hops, _ = it.NextHop(location)
	it.From = it.URL
	c.rank(it.From, c.discover(location, it))
}

// maxRobotsTries is how often a server may answer with a short Retry-After before its robots.txt
// counts as unreachable.
const maxRobotsTries = 3

// visitRobots fetches a robots.txt and releases the items that wait for it.
func (c *crawler) visitRobots(
	ctx context.Context, it stage.Item, addr netip.Addr,
) scheduler.Outcome {
	req := *it.Robots
	known := fetch.Validators{ETag: req.ETag, LastModified: req.LastModified}
	resp, given := c.get(ctx, it, addr, known)
	if resp == nil {
		return given
	}
	defer c.client.Release(resp)
	c.Tally.Robots()
	by := stage.Wall(resp)
	outcome := func() scheduler.Outcome { return c.Polite.Outcome(resp, by != "") } // by the delay then
	if by != "" {
		c.Log.Warn("no robots.txt", "url", it.URL, "fate", string(stage.Walled), "why", by)
	} else if err := c.keep(resp, ""); err != nil && !errors.Is(err, archive.ErrInvalid) {
		c.Robots.Abandon(req)
		return outcome()
	}
	if it.Hops < maxRobotsTries && stage.Classify(resp, nil) == stage.SentAway &&
		0 < resp.RetryAfter && resp.RetryAfter <= c.Cfg.Wait {
		it.Hops++
		c.enqueue(it) // the scheduler obeys the Retry-After
		return outcome()
	}
	answer := c.Robots.Answer(req, stage.RobotsResponse(resp), time.Now())
	if answer.More {
		c.enqueueRobots(answer.Next)
		return outcome()
	}
	nearest := math.MaxInt
	for _, waiting := range answer.Released {
		nearest = min(nearest, waiting.Depth)
		c.route(waiting)
	}
	c.learn(req.For, answer, nearest)
	return outcome()
}

// get makes the request of an item. With a nil response it returns the outcome of the visit.
func (c *crawler) get(
	ctx context.Context, it stage.Item, addr netip.Addr, v fetch.Validators,
) (*fetch.Response, scheduler.Outcome) {
	began := time.Now()
	req := fetch.Request{URL: it.URL, Validators: v, Addr: addr} // which the lease counts
	if it.Robots != nil {
		req.MaxBody = robotstxt.MaxSize + 1 // regardless of -max-body: a truncated file may lack a rule
	}
	resp, err := c.client.Do(ctx, req)
	if err != nil {
		return nil, c.giveUp(ctx, it, err, addr, began)
	}
	if c.squeezed(it, resp) {
		defer c.client.Release(resp)
		return nil, c.Polite.Outcome(resp, false)
	}
	switch resp.RawCut {
	case fetch.CutTime, fetch.CutSlow, fetch.CutDisconnect: // by the server, or the network is gone
		err = &fetch.Error{Kind: fetch.HeadTimeout, URL: it.URL, Addr: resp.Addr}
		if c.Uplink.Ours(ctx, err, addr, began) {
			c.client.Release(resp)
			c.interrupt(ctx, it, err)
			return nil, c.Polite.Sent(err)
		}
	}
	c.Uplink.Answered()
	return resp, scheduler.Outcome{}
}

// giveUp handles a visit without a response. If this machine is to blame, the item goes back to the
// queue of its host. Otherwise it ends. If it was for a robots.txt, all items that wait for the
// file end with it.
func (c *crawler) giveUp(
	ctx context.Context, it stage.Item, err error, addr netip.Addr, began time.Time,
) scheduler.Outcome {
	fate := stage.Classify(nil, err)
	switch {
	case c.Uplink.Ours(ctx, err, addr, began):
		c.interrupt(ctx, it, err)
		return c.Polite.Sent(err)
	case fate == stage.Interrupted: // nobody can be blamed
		c.interrupt(ctx, it, err)
	case it.Robots == nil:
		c.end(it, fate, err.Error())
	default:
		switch fate {
		case stage.TimedOut, stage.NotHTTP, stage.Oversized:
			fate = stage.RobotsUnreachable // the pages themselves were never requested
		}
		c.silent(*it.Robots, fate, err.Error())
	}
	return c.Polite.Failure(it, err)
}

// refuseRobots ends all items that wait for a robots.txt which this crawler does not request. If it
// was to be requested from another host, its server counts as unreachable for a while.
func (c *crawler) refuseRobots(req robots.Request, why string) {
	if req.Hop > 0 {
		c.silent(req, stage.RobotsUnreachable, why)
		return
	}
	for _, waiting := range c.Robots.Refuse(req) {
		c.end(waiting, stage.Unwanted, why)
	}
}

// silent ends all items that wait for an unreachable robots.txt.
func (c *crawler) silent(req robots.Request, fate stage.Fate, why string) {
	for _, waiting := range c.Robots.Silent(req, fate, why, time.Now()) {
		c.end(waiting, fate, why)
	}
}

// keep stores a response in the archive. If the archive fails, the crawl ends: it should not fetch
// what it cannot store. A single response that does not fit into a record does not end it.
func (c *crawler) keep(resp *fetch.Response, signals string) error {
	if err := stage.Keep(c.Store, resp, signals); err != nil {
		if !errors.Is(err, archive.ErrInvalid) {
			c.stop(fmt.Errorf("%w (make room, or name another directory with -out, and start again)",
				err))
		}
		return err
	}
	c.Tally.Got(resp.Addr.Addr(), len(resp.Raw), resp.Wait())
	return nil
}
