package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe/simhash"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/scheduler"
)

// maxRedirects is how many redirects in a row lead to a page; browsers give up after twenty.
const maxRedirects = 10

// visit does one task and reports when and how long it occupied the host.
func (c *crawler) visit(ctx context.Context, task scheduler.Task[stage.Item]) scheduler.Outcome {
	skipped := scheduler.Outcome{Skipped: true}
	it := task.Item
	addr, err := c.resolver.Addr(ctx, task.Host)
	if err != nil {
		c.giveUp(it, stage.Judge(nil, err), err)
		return skipped
	}
	if addr != task.Addr {
		c.enqueue(it) // the delay of its address, new or changed, has to be kept as well
		return skipped
	}
	if it.Robots != nil {
		return c.visitRobots(ctx, it)
	}
	if !c.rule(it) { // once more just before the request (paper Q §5.2.4)
		return skipped
	}
	if it.Sitemap == nil && c.visited.Add(1) > c.cfg.pages && c.cfg.pages > 0 {
		c.stop(errPageLimit)
		return skipped
	}
	return c.visitPage(ctx, it)
}

// visitPage fetches a page or a sitemap, keeps it and sights its links, if it is not as it was.
func (c *crawler) visitPage(ctx context.Context, it stage.Item) scheduler.Outcome {
	resp, err := c.get(ctx, it.URL, it.Visit.State.Validators)
	if err != nil {
		c.giveUp(it, stage.Judge(nil, err), err)
		return c.failure(it.URL, err)
	}
	defer c.client.Release(resp)
	if err := c.keep(resp); err != nil {
		c.end(it, stage.Unstored, err.Error())
		return outcome(resp)
	}
	fate, why := c.judge(it, resp)
	switch {
	case fate == stage.Redirected:
		c.redirect(it, resp.Location)
	case fate.Page() && it.Sitemap != nil:
		fate, why = c.list(it, resp)
	case fate.Page():
		c.extract(it, resp)
	}
	c.end(it, fate, why)
	return outcome(resp)
}

// judge tells the fate of a page that was visited, and takes it down in the page's state.
func (c *crawler) judge(it stage.Item, resp *fetch.Response) (fate stage.Fate, why string) {
	fate, why = stage.Judge(resp, nil), stage.Detail(resp)
	if fate.Retry() > 0 {
		return fate, why
	}
	modified, _ := http.ParseTime(resp.Header.Get("Last-Modified")) // the zero time if it is none
	change := it.Visit.State.Observe(resp, c.clock.at(resp.Timing.Start), modified, c.cfg.texts)
	switch {
	case change == simhash.Same:
		return stage.Unchanged, ""
	case change == simhash.Minor && fate == stage.Fetched:
		return stage.HardlyChanged, ""
	case fate == stage.Redirected && it.Hops >= maxRedirects:
		return stage.TooManyRedirects, why
	}
	return fate, why
}

// extract sights what a page links to.
func (c *crawler) extract(it stage.Item, resp *fetch.Response) {
	var links []string
	stage.Extract(resp, c.cfg.agent, c.cfg.resources, func(url string, why stage.Reason) {
		to := c.follow(stage.Item{URL: url, Depth: it.Depth + 1}, why)
		if c.order != nil && to != "" {
			links = append(links, to)
		}
	})
	c.rank(it.URL, links...)
}

// rank tells the order of items, if there is one, where a page leads.
func (c *crawler) rank(url string, links ...string) {
	if c.order != nil {
		c.order.Fetched(url, links)
	}
}

// follow sights what a link leads to, unless there is a reason not to.
func (c *crawler) follow(it stage.Item, why stage.Reason) (canonical string) {
	if why != "" {
		c.tally.skip(why)
		return ""
	}
	return c.sight(it.URL, it)
}

// list sights what a sitemap lists and returns what became of the sitemap.
func (c *crawler) list(it stage.Item, resp *fetch.Response) (stage.Fate, string) {
	entries := 0
	last := it.Visit.Before
	err := stage.List(resp, it, func(entry stage.Item, why stage.Reason) {
		entries++
		url := c.follow(entry, why)
		if modified := time.Unix(entry.LastMod, 0); url != "" && !last.IsZero() && modified.After(last) {
			c.hint(url, modified)
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

// learn takes in what the rules of a URL's server say beside what they forbid: the delay that it
// asks for, and its sitemaps. Those lie where the nearest of the pages lies that need the rules.
func (c *crawler) learn(url string, rules stage.Settled, nearest int) {
	if rules.Delay > 0 {
		c.queue.SetDelay(weburl.Host(url), rules.Delay)
		c.manners.changed()
		c.log.Info("Crawl-delay", "host", weburl.Host(url), "delay", rules.Delay.String())
	}
	if !c.cfg.sitemaps || c.cfg.reach == stage.Page || nearest == math.MaxInt {
		return
	}
	it := stage.Item{Depth: nearest, Sitemap: &stage.Sitemap{Server: stage.Authority(url)}}
	for n, sitemap := range rules.Sitemaps {
		if n < maxSitemaps {
			c.sight(sitemap, it)
		} else {
			c.tally.skip(stage.ManySitemaps)
		}
	}
}

// redirect sights where a redirect leads. What a seed redirects to is a seed too: who asks for
// http://example.org wants https://www.example.org.
func (c *crawler) redirect(it stage.Item, location string) {
	if url, err := weburl.Canonical(location); err == nil && it.Seeded() {
		c.filter.Scope.Add(url)
	}
	from := it.URL
	it.Hops++
	c.rank(from, c.sight(location, it))
}

// visitRobots fetches a robots.txt and lets go the items that wait for it.
func (c *crawler) visitRobots(ctx context.Context, it stage.Item) scheduler.Outcome {
	req := *it.Robots
	resp, err := c.get(ctx, it.URL, fetch.Validators{ETag: req.ETag, LastModified: req.LastModified})
	if err != nil {
		c.giveUp(it, stage.Judge(nil, err), err)
		return c.failure(it.URL, err)
	}
	defer c.client.Release(resp)
	c.tally.robots()
	_ = c.keep(resp) // an archive that fails has ended the crawl; the rules hold all the same
	answer := robots.Response{Status: resp.Status, Header: resp.Header, Body: resp.Body}
	if resp.Truncated == fetch.CutDisconnect || resp.Truncated == fetch.CutTime || resp.Truncated == fetch.CutSlow {
		answer = robots.Response{} // half a file may lack the half that forbids
	}
	settled := c.robots.Settle(req, answer, time.Now())
	if settled.More {
		c.enqueueRobots(settled.Next)
		return outcome(resp)
	}
	nearest := math.MaxInt
	for _, waiting := range settled.Released {
		nearest = min(nearest, waiting.Depth)
		c.route(waiting)
	}
	c.learn(req.For, settled, nearest)
	return outcome(resp)
}

// get fetches a URL, and notes that its port answers.
func (c *crawler) get(ctx context.Context, url string, v fetch.Validators) (*fetch.Response, error) {
	resp, err := c.client.GetIf(ctx, url, v)
	if err == nil {
		c.ports.Answered(url)
	}
	return resp, err
}

// giveUp ends an item without an answer. If it was to bring a robots.txt, all that waited for that
// ends with it.
func (c *crawler) giveUp(it stage.Item, fate stage.Fate, why error) {
	if it.Robots == nil {
		c.end(it, fate, why.Error())
		return
	}
	switch fate {
	case stage.TimedOut, stage.NotHTTP, stage.Oversized:
		fate = stage.RobotsUnreachable // the pages themselves were never asked for
	}
	c.silent(*it.Robots, fate, why.Error())
}

// silent ends all items that wait for a robots.txt that cannot be had.
func (c *crawler) silent(req robots.Request, fate stage.Fate, why string) {
	for _, waiting := range c.robots.Silent(req, fate, why, time.Now()) {
		c.end(waiting, fate, why)
	}
}

// keep puts a response into the archive. An archive that fails ends the crawl: what cannot be kept
// should not be asked for. One answer that no record can hold does not.
func (c *crawler) keep(resp *fetch.Response) error {
	if err := c.append(resp); err != nil {
		if !errors.Is(err, archive.ErrInvalid) {
			c.stop(fmt.Errorf("%w (make room, or name another directory with -out, and start again)", err))
		}
		return err
	}
	c.tally.got(resp.Addr.Addr(), len(resp.Raw), resp.Timing.FirstByte.Sub(resp.Timing.WroteRequest))
	return nil
}

func (c *crawler) append(resp *fetch.Response) error {
	if c.store == nil {
		return nil
	}
	_, err := c.store.Append(stage.Capture(resp))
	return err
}
