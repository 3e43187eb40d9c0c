package main

import (
	"context"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/scheduler"
)

// A crawler visits the pages of one site, one at a time.
type crawler struct {
	client *fetch.Client
	rules  *robots.Pending[string]
	asked  map[string]robots.Request // for robots.txt, queued, by URL
	queue  *scheduler.Scheduler[string]
	seen   map[string]bool
	site   string // its host
}

// add queues a link, if it is a new one and one of the site.
func (c *crawler) add(link string) {
	url, err := weburl.Canonical(link)
	if err == nil && weburl.Host(url) == c.site && !c.seen[url] {
		c.seen[url] = c.queue.Add(scheduler.Task[string]{Host: c.site, Item: url}) == nil
	}
}

// run takes so many turns of the scheduler, and ends with ErrDrained if there are no more. A turn
// is good for one request, be it for a page or for the rules.
func (c *crawler) run(ctx context.Context, turns int, show func(*fetch.Response)) error {
	for range turns {
		lease, err := c.queue.Next(ctx)
		if err != nil {
			return err
		}
		link := lease.Item()
		if req, asked := c.asked[link]; asked {
			c.learn(req, c.get(ctx, lease, link))
			continue
		}
		switch answer, err := c.rules.Lookup(link, link, time.Now()); {
		case err == nil && !answer.Known: // the link waits for robots.txt
			lease.Done(scheduler.Outcome{Skipped: true})
			c.ask(answer.Request)
		case !answer.Rules.Allowed(link):
			lease.Done(scheduler.Outcome{Skipped: true})
		default:
			c.follow(c.get(ctx, lease, link), show)
		}
	}
	return nil
}

// get makes a request and tells the scheduler how it went. A page of Status 0 did not come.
func (c *crawler) get(ctx context.Context, l *scheduler.Lease[string], at string) *fetch.Response {
	page, err := c.client.Get(ctx, at)
	if err != nil {
		page = &fetch.Response{URL: at}
	}
	l.Done(scheduler.Outcome{Start: page.FirstByte, Took: page.Wait(),
		Status: page.Status, Failed: err != nil, RetryAfter: page.FirstByte.Add(page.RetryAfter)})
	return page
}

// ask queues a request for robots.txt like a page.
func (c *crawler) ask(req *robots.Request) {
	if req != nil && c.queue.Add(scheduler.Task[string]{Host: c.site, Item: req.URL}) == nil {
		c.asked[req.URL] = *req
	}
}

// learn hands the response for a robots.txt to the rules and its delay to the scheduler, and queues
// the links that waited for it.
func (c *crawler) learn(req robots.Request, page *fetch.Response) {
	delete(c.asked, req.URL)
	answer, waited, _ := c.rules.Store(req, robots.Response{Status: page.Status, Header: page.Header,
		Body: page.Body, Whole: page.Truncated == fetch.Whole}, time.Now())
	c.ask(answer.Request) // if it is a redirect
	if delay, asked := answer.Rules.Delay(); asked {
		c.queue.SetHost(c.site, scheduler.Host{Delay: delay})
	}
	for _, link := range waited {
		_ = c.queue.Add(scheduler.Task[string]{Host: c.site, Item: link}) // it fits, they just left
	}
}

// follow shows a page and queues what it links to, or redirects to.
func (c *crawler) follow(got *fetch.Response, show func(*fetch.Response)) {
	show(got)
	c.add(got.Location)
	for link, err := range page.Links(got.Body, got.URL, got.Header.Get("Content-Type")) {
		if err == nil && link.Kind == page.Anchor && !link.NoFollow {
			c.add(link.URL)
		}
	}
}
