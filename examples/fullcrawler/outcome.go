package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/scheduler"
)

// maxRetryAfter is how long a server is believed that sends the crawler away.
const maxRetryAfter = 24 * time.Hour

// arriving makes the delays count from when the request of a lease reaches its server: if it is
// known how long that takes, so that a slow page does not hold up the other hosts of its address,
// and for a host that may have several requests under way. Where there are such hosts, the scheduler
// lets others have several as well once it is told that their requests arrive: so it is not.
func (c *crawler) arriving(
	ctx context.Context, lease *scheduler.Lease[stage.Item],
) (context.Context, func()) {
	host := lease.Host()
	most := c.Cfg.Overrides.Of(host).Concurrency
	if most <= 1 && (c.Cfg.Arrival == 0 || c.Cfg.OverrideFile != "") {
		return ctx, func() {}
	}
	arrived, done := lease.Arrived, func() {}
	if most > 1 {
		arrived, done = c.several.Begin(host, most, arrived)
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { arrived(time.Now().Add(c.Cfg.Arrival)) },
	}), done
}

// sawAddr notes a visit as evidence on whether unrelated hosts share an address.
func (c *crawler) sawAddr(ctx context.Context, host string, addr netip.Addr, o scheduler.Outcome) {
	busy := o.Status == http.StatusTooManyRequests || o.Status == http.StatusServiceUnavailable
	if o.Skipped || o.Status == 0 && !o.Failed {
		return
	}
	all, _ := c.Resolver.LookupNetIP(ctx, "ip", host) // it was looked up just now
	alike := 0
	for _, other := range all {
		if other.Is4() == addr.Is4() {
			alike++
		}
	}
	if c.Shared.Saw(addr, host, alike, o.Failed || busy) {
		c.Log.Info("address", "addr", addr.String(), "shared", c.Shared.Has(addr))
	}
}

// outcome counts the delays from the first byte of the answer: by then the server has seen the
// request, so that no two requests can arrive closer than the delay. They count from earlier if it
// is known how long a request is under way.
func (c *crawler) outcome(resp *fetch.Response) scheduler.Outcome {
	o := scheduler.Outcome{
		Start: resp.FirstByte, Took: resp.Wait(), Status: resp.Status,
	}
	if c.Cfg.Overrides.Of(weburl.Host(resp.URL)).Concurrency > 1 {
		o.Took = 0 // its slow pages are what the others do not wait for
	}
	if arrived := resp.WroteRequest.Add(c.Cfg.Arrival); c.Cfg.Arrival > 0 && !resp.WroteRequest.IsZero() && arrived.Before(o.Start) {
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
