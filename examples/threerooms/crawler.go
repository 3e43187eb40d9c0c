package main

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/scheduler"
)

// A crawler visits the pages of one site, one at a time.
type crawler struct {
	client *fetch.Client
	rules  *robots.Cache
	queue  *scheduler.Scheduler[string]
	seen   map[string]bool
	site   string // host, and port if the URLs have one
}

// add queues a link, if it is a new one and one of the site.
func (c *crawler) add(link string) {
	u, err := url.Parse(link)
	if err != nil || u.Host != c.site || c.seen[link] {
		return
	}
	if c.queue.Add(scheduler.Task[string]{Host: u.Hostname(), Item: link}) == nil {
		c.seen[link] = true
	}
}

// run shows so many pages, or all that there are. Each turn of the scheduler is good for one
// request, be it for a page or for the rules.
func (c *crawler) run(ctx context.Context, pages int, show func(*fetch.Response)) error {
	for pages > 0 {
		lease, err := c.queue.Next(ctx)
		if errors.Is(err, scheduler.ErrDrained) {
			return nil
		}
		if err != nil {
			return err
		}
		link := lease.Item()
		switch answer, err := c.rules.Lookup(link, time.Now()); {
		case err == nil && answer.State == robots.Needed:
			resp, outcome := c.get(ctx, answer.Request.URL)
			c.learn(answer.Request, resp)
			lease.Done(outcome)
			delete(c.seen, link)
			c.add(link) // its turn comes after the delay
		case err != nil || !answer.Rules.Allowed(link):
			lease.Done(scheduler.Outcome{Skipped: true})
		default:
			resp, outcome := c.get(ctx, link)
			lease.Done(outcome)
			if resp != nil {
				c.follow(resp)
				show(resp)
				pages--
			}
		}
	}
	return nil
}

// get makes a request, and says what it means for the host.
func (c *crawler) get(ctx context.Context, link string) (*fetch.Response, scheduler.Outcome) {
	start := time.Now()
	resp, err := c.client.Get(ctx, link, fetch.Validators{})
	outcome := scheduler.Outcome{Start: start, Took: time.Since(start), Failed: err != nil}
	if err != nil {
		return nil, outcome
	}
	outcome.Status = resp.Status
	if resp.RetryAfter > 0 {
		outcome.RetryAfter = start.Add(resp.RetryAfter)
	}
	return resp, outcome
}

// learn hands an answer for a robots.txt to the rules, and their delay to the scheduler. It does
// not follow redirects: then the rules are out of reach, and nothing is allowed.
func (c *crawler) learn(req robots.Request, resp *fetch.Response) {
	var got robots.Response
	if resp != nil && resp.Location == "" {
		got = robots.Response{Status: resp.Status, Header: resp.Header, Body: resp.Body}
	}
	answer, err := c.rules.Store(req, got, time.Now())
	if err != nil {
		return
	}
	if delay, asked := answer.Rules.Delay(); asked {
		c.queue.SetDelay(c.host(), delay)
	}
}

func (c *crawler) host() string {
	u := url.URL{Host: c.site}
	return u.Hostname()
}

// follow adds what a page links to, or redirects to.
func (c *crawler) follow(page *fetch.Response) {
	c.add(page.Location)
	for link, err := range fetch.Links(page.Body, page.URL) {
		if err == nil && link.Kind == fetch.Anchor && !link.NoFollow {
			c.add(link.URL)
		}
	}
}
