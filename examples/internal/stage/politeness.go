package stage

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/scheduler"
)

// MaxRetryAfter bounds how long a Retry-After is obeyed.
const MaxRetryAfter = 24 * time.Hour

// spareEvery is how often a closed port does not count against its host.
const spareEvery = 30 * time.Second

// PolitenessOptions set how polite a crawl is.
type PolitenessOptions struct {
	Delay     time.Duration            // between two requests to a host or address; 0 means none
	Backoff   time.Duration            // after a first failure; 0 means the scheduler's default
	Arrival   time.Duration            // bound for a request to its server; 0 means unknown
	Overrides *Overrides               // for single hosts; nil means none, now and later
	Group     func(host string) string // of hosts that share a delay; nil means none
	Shared    *SharedAddrs             // addresses without a delay; nil means none
}

// A Politeness is the scheduler of a crawl. It translates robots.txt, overrides and the results of
// requests for the scheduler. Its methods are safe for concurrent use.
type Politeness struct {
	PolitenessOptions
	Queue *scheduler.Scheduler[Item]

	concurrency Concurrency
	lanes       Lanes
	delays      CrawlDelays
	ports       Ports

	saved map[entryOwner]uint32 // checksums of the entries in the file
}

// Scheduler returns the options of the queue, which has no bound of its own.
func (o PolitenessOptions) Scheduler() scheduler.Options {
	options := scheduler.Options{
		HostDelay: o.Delay,
		Backoff:   o.Backoff,
		MaxQueue:  -1, // the crawl bounds open items, waiting for robots.txt or not

		// Every worker ends its lease, however long an outage takes. A task whose lease counted as
		// lost could not be queued again, and its page would never end.
		LeaseTimeout: -1,
		Exempt:       o.Shared.Has,
	}
	if o.Delay == 0 { // 0 would mean the default
		options.HostDelay, options.LatencyFactor = -1, -1
		options.Backoff = cmp.Or(o.Backoff, scheduler.DefaultBackoff)
	}
	if o.Arrival > 0 {
		options.MaxPerAddr = 2 // a second one while the first is slow, but never two to a host
	}
	if o.Overrides != nil { // Begin restricts this to hosts that may have several requests
		options.MaxPerHost, options.MaxPerAddr = MaxConcurrency, MaxConcurrency
		options.MaxPerGroup, options.HostDelay = MaxConcurrency, max(o.Delay, 1)
	}
	return options
}

// NewPoliteness makes a queue with the options of o.Scheduler polite.
func NewPoliteness(o PolitenessOptions, queue *scheduler.Scheduler[Item]) *Politeness {
	return &Politeness{PolitenessOptions: o, Queue: queue}
}

// Enqueue queues an item of a host at an address; the zero Addr means unknown.
func (p *Politeness) Enqueue(it Item, addr netip.Addr) error {
	host := weburl.Host(it.URL)
	known := scheduler.Host{Addr: addr, Delay: p.ownDelay(host)} // the queue may have forgotten it
	if p.Group != nil {
		known.Group = p.Group(host)
	}
	p.Queue.SetHost(host, known)
	return p.Queue.Add(scheduler.Task[Item]{Host: host, Item: it})
}

// ownDelay returns the delay of a host besides that of all, for the queue.
func (p *Politeness) ownDelay(host string) time.Duration {
	if p.Overrides == nil {
		return p.delays.Of(host)
	}
	return max(p.Overrides.Of(host).Delay, p.delays.Of(host), 1) // 1 cancels an old delay
}

// Reloaded applies the overrides, which were read again, to the hosts in the queue.
func (p *Politeness) Reloaded() {
	for host := range p.Queue.Reasons() {
		p.Queue.SetHost(host, scheduler.Host{Delay: p.ownDelay(host)})
	}
}

// SetDelay sets or cancels the Crawl-delay of a URL's server. It returns the delay of the host.
func (p *Politeness) SetDelay(url string, delay time.Duration) (longest time.Duration) {
	server, err := robotstxt.Locate(url)
	if err != nil {
		return 0 // no server has rules for it
	}
	host := weburl.Host(url)
	longest = max(p.delays.Set(host, server, delay), p.Overrides.Of(host).Delay)
	p.Queue.SetHost(host, scheduler.Host{Delay: max(longest, 1)}) // 1 cancels an earlier one
	return longest
}

// Begin makes the delays count from when the request of a lease reaches its server. It does so if
// the travel time is known, so that a slow page does not hold up the other hosts of its address,
// and for a host that may have several requests in flight. If there are such hosts, arrivals at the
// others are not reported: the scheduler would then allow them several requests, too. addr is where
// the request goes. The caller ends the lease with done.
func (p *Politeness) Begin(
	ctx context.Context, lease *scheduler.Lease[Item], addr netip.Addr,
) (traced context.Context, done func(scheduler.Outcome)) {
	host := lease.Host()
	most := p.Overrides.Of(host).Concurrency
	if most <= 1 && (p.Arrival == 0 || p.Overrides != nil) {
		return ctx, lease.Done
	}
	key := host
	if !p.Shared.Has(addr) {
		key = addr.String()
	}
	visit := p.lanes.Enter(key, host, p.Delay, p.delayOf(host))
	arrived, leave := lease.Arrived, func() {}
	if most > 1 {
		arrived, leave = p.concurrency.Begin(host, most, arrived)
	}
	traced = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { visit.Wait(ctx) },
		WroteRequest: func(httptrace.WroteRequestInfo) {
			at := time.Now().Add(p.Arrival)
			visit.Arrived(at)
			arrived(at)
		},
	})
	return traced, func(o scheduler.Outcome) {
		lease.Done(o) // first: the server may have asked for a pause
		visit.Leave()
		leave()
	}
}

// delayOf returns the delay of a host, as far as it is known beforehand.
func (p *Politeness) delayOf(host string) time.Duration {
	return max(p.Delay, p.delays.Of(host), p.Overrides.Of(host).Delay)
}

// Pace returns the time between two visits of a host, given how long its last response took.
func (p *Politeness) Pace(host string, took time.Duration) time.Duration {
	delay := p.delayOf(host)
	switch {
	case p.Overrides.Of(host).Concurrency > 1: // no visit waits for another one
		return delay
	case p.Delay == 0: // neither does the latency count
		return max(delay, took)
	}
	return max(delay, scheduler.DefaultLatencyFactor*took)
}

// Outcome starts the delays at the first byte of the response: by then the server has seen the
// request, so no two requests can arrive closer than the delay. They start earlier if the time that
// a request takes to arrive is known. After the answer of a bot wall the host gets a back-off: more
// requests make a wall higher.
func (p *Politeness) Outcome(resp *fetch.Response, walled bool) scheduler.Outcome {
	p.ports.Answered(resp.URL)
	o := scheduler.Outcome{
		Start: resp.FirstByte, Took: resp.Wait(), Status: resp.Status,
		Failed: walled,
	}
	if p.Overrides.Of(weburl.Host(resp.URL)).Concurrency > 1 {
		o.Took = 0 // other requests do not wait for its slow pages
	}
	if arrived := resp.WroteRequest.Add(p.Arrival); p.Arrival > 0 && !resp.WroteRequest.IsZero() && arrived.Before(o.Start) {
		o.Start = arrived
	}
	if resp.RetryAfter > 0 {
		o.RetryAfter = resp.FirstByte.Add(min(resp.RetryAfter, MaxRetryAfter))
	}
	return p.charge(o, resp.URL, resp.Attempts)
}

// charge makes each of several attempts count: the host gets one delay for each request that it may
// have received.
func (p *Politeness) charge(o scheduler.Outcome, url string, attempts int) scheduler.Outcome {
	if attempts <= 1 {
		return o
	}
	rested := o.Start.Add(time.Duration(attempts) * p.delayOf(weburl.Host(url)))
	if o.RetryAfter.Before(rested) {
		o.RetryAfter = rested
	}
	return o
}

// Sent starts the delays now if the request may have been sent, for a visit that says nothing about
// the server.
func (p *Politeness) Sent(err error) scheduler.Outcome {
	for _, unsent := range []fetch.Kind{fetch.Blocked, fetch.BadURL, fetch.Resolve} {
		if errors.Is(err, unsent) {
			return scheduler.Outcome{Skipped: true}
		}
	}
	o := scheduler.Outcome{Start: time.Now()}
	var failed *fetch.Error
	if errors.As(err, &failed) {
		o = p.charge(o, failed.URL, failed.Attempts)
	}
	return o
}

// Failure is Sent for a server in trouble, with a back-off that grows with each failure. A closed
// port says nothing about the pages of another port, so it is no failure now and then, unless the host is
// in trouble anyway: what is no failure halves the back-off. The delays start all the same: anybody can
// make up names of an address, each with another port, for a port scan.
func (p *Politeness) Failure(url string, err error) scheduler.Outcome {
	o := p.Sent(err)
	closed := errors.Is(err, fetch.Connect) || errors.Is(err, fetch.ConnectTimeout)
	own := closed && p.ports.Refused(url, time.Now(), spareEvery) && p.Queue.Explain(weburl.Host(url)).Failures == 0
	o.Failed = !o.Skipped && !own
	return o
}

// Saw records a visit as evidence on whether unrelated hosts share an address. all are the
// addresses of the host. It reports whether the address has become shared, or is no longer so.
func (p *Politeness) Saw(
	host string, addr netip.Addr, all []netip.Addr, o scheduler.Outcome,
) (changed bool) {
	if o.Skipped || o.Status == 0 && !o.Failed {
		return false
	}
	alike := 1
	for _, other := range all { // a name server may repeat itself
		if other != addr && other.Is4() == addr.Is4() {
			alike++
		}
	}
	busy := o.Status == http.StatusTooManyRequests || o.Status == http.StatusServiceUnavailable
	return p.Shared.Saw(addr, host, alike, o.Failed || busy)
}
