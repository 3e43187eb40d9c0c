package main

import (
	"context"
	"errors"
	"net/http/httptrace"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/scheduler"
)

// maxRetryAfter is how long a server is believed that sends the crawler away.
const maxRetryAfter = 24 * time.Hour

// arriving makes the delays count from when the request of a lease reaches its server, if it is
// known how long that takes. A slow page then does not hold up the other hosts of its address.
func (c *crawler) arriving(ctx context.Context, lease *scheduler.Lease[stage.Item]) context.Context {
	if c.Cfg.Arrival == 0 {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { lease.Arrived(time.Now().Add(c.Cfg.Arrival)) },
	})
}

// outcome counts the delays from the first byte of the answer: by then the server has seen the
// request, so that no two requests can arrive closer than the delay. They count from earlier if it
// is known how long a request is under way.
func (c *crawler) outcome(resp *fetch.Response) scheduler.Outcome {
	o := scheduler.Outcome{
		Start: resp.FirstByte, Took: resp.FirstByte.Sub(resp.WroteRequest), Status: resp.Status,
	}
	if arrived := resp.WroteRequest.Add(c.Cfg.Arrival); c.Cfg.Arrival > 0 && arrived.Before(o.Start) {
		o.Start = arrived
	}
	if resp.RetryAfter > 0 {
		o.RetryAfter = resp.FirstByte.Add(min(resp.RetryAfter, maxRetryAfter))
	}
	return c.charge(o, resp.URL, resp.Attempts)
}

// charge has each of several attempts count: the host has a delay of rest for each request that it
// may have got.
func (c *crawler) charge(o scheduler.Outcome, url string, attempts int) scheduler.Outcome {
	if attempts <= 1 {
		return o
	}
	delay := max(c.Cfg.Delay, c.delays.Of(weburl.Host(url)))
	rested := o.Start.Add(time.Duration(attempts) * delay)
	if o.RetryAfter.Before(rested) {
		o.RetryAfter = rested
	}
	return o
}

// spareEvery is how often a closed port is not held against its host.
const spareEvery = 30 * time.Second

// sent counts the delays from now if the request may have been sent, for a visit that says nothing
// about the server.
func (c *crawler) sent(err error) scheduler.Outcome {
	for _, unsent := range []fetch.Kind{fetch.Blocked, fetch.BadURL, fetch.Resolve} {
		if errors.Is(err, unsent) {
			return scheduler.Outcome{Skipped: true}
		}
	}
	o := scheduler.Outcome{Start: time.Now()}
	var failed *fetch.Error
	if errors.As(err, &failed) {
		o = c.charge(o, failed.URL, failed.Attempts)
	}
	return o
}

// failure is sent for a server in trouble, which is left alone for longer with each failure. A port
// where nobody listens is no server: it says nothing about the pages of another port, and neither
// success nor failure would be right. So the visit did not take place, but not so often that it
// were a scan.
func (c *crawler) failure(url string, err error) scheduler.Outcome {
	o := c.sent(err)
	closed := errors.Is(err, fetch.Connect) || errors.Is(err, fetch.ConnectTimeout)
	if closed && c.ports.Refused(url, time.Now(), spareEvery) {
		return scheduler.Outcome{Skipped: true}
	}
	o.Failed = !o.Skipped
	return o
}
