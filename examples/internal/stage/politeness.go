package stage

import (
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

// MaxRetryAfter is how long a server is believed that sends the crawler away.
const MaxRetryAfter = 24 * time.Hour

// spareEvery is how often a closed port is not held against its host.
const spareEvery = 30 * time.Second

// PolitenessOptions say how polite a crawl is.
type PolitenessOptions struct {
	Delay     time.Duration            // between two requests to a host or address; 0 means none
	Backoff   time.Duration            // after a first failure; 0 means the scheduler's default
	Arrival   time.Duration            // of a request at its server, at most; 0 means that it is not known
	Overrides *Overrides               // for single hosts; nil means none, now and later
	Group     func(host string) string // of hosts that share a delay; nil means none
	Shared    *SharedAddrs             // addresses without a delay; nil means none
}

// A Politeness is what a crawl owes to servers. It makes the scheduler and tells it what servers
// ask for and what became of each request. Its methods are safe for concurrent use.
type Politeness struct {
	PolitenessOptions
	Queue *scheduler.Scheduler[Item]

	several Several
	lanes   Lanes
	delays  CrawlDelays
	ports   Ports
}

// NewPoliteness makes a queue that is as polite as o says, and has no bound of its own.
func NewPoliteness(o PolitenessOptions) *Politeness {
	options := scheduler.Options{
		HostDelay: o.Delay,
		Backoff:   o.Backoff,
		MaxQueue:  -1, // the crawl bounds all open items, those that wait for a robots.txt too

		// Every worker gives its lease back, after an outage of any length. One that counted as
		// lost meanwhile could not be queued again, and its page would never end.
		LeaseTimeout: -1,
		Exempt:       o.Shared.Has,
	}
	if o.Delay == 0 { // none, where 0 would mean the default
		options.HostDelay, options.LatencyFactor = -1, -1
	}
	if o.Arrival > 0 {
		options.MaxPerAddr = 2 // while the first request is slow, but never two to a host
	}
	if o.Overrides != nil { // Begin lets only hosts that may have them have several requests
		options.MaxPerHost, options.MaxPerAddr = MaxConcurrency, MaxConcurrency
		options.MaxPerGroup, options.HostDelay = MaxConcurrency, max(o.Delay, 1)
	}
	return &Politeness{PolitenessOptions: o, Queue: scheduler.New[Item](options)}
}

// Enqueue queues an item at a host that may live at an address; the zero Addr is not known.
func (p *Politeness) Enqueue(it Item, addr netip.Addr) error {
	host := weburl.Host(it.URL)
	known := scheduler.Host{Addr: addr, Delay: p.delays.Of(host)} // the queue may have forgotten it
	if p.Group != nil {
		known.Group = p.Group(host)
	}
	if p.Overrides != nil { // 1 lifts a delay that is gone
		known.Delay = max(p.Overrides.Of(host).Delay, known.Delay, 1)
	}
	p.Queue.SetHost(host, known)
	return p.Queue.Add(scheduler.Task[Item]{Host: host, Item: it})
}

// SetDelay keeps the Crawl-delay of a URL's server, or lifts one that it asks for no longer. It
// returns the delay of the host.
func (p *Politeness) SetDelay(url string, delay time.Duration) (longest time.Duration) {
	server, err := robotstxt.Locate(url)
	if err != nil {
		return 0 // no server has rules for it
	}
	host := weburl.Host(url)
	longest = max(p.delays.Set(host, server, delay), p.Overrides.Of(host).Delay)
	p.Queue.SetHost(host, scheduler.Host{Delay: max(longest, 1)}) // 1 lifts an earlier one
	return longest
}

// Begin makes the delays count from when the request of a lease reaches its server: if it is known
// how long that takes, so that a slow page does not hold up the other hosts of its address, and for
// a host that may have several requests under way. Where there are such hosts, the scheduler lets
// others have several as well once it is told that their requests arrive: so it is not. addr is
// where the request goes. The caller ends the lease by done.
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
		arrived, leave = p.several.Begin(host, most, arrived)
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

// Outcome counts the delays from the first byte of the answer: by then the server has seen the
// request, so that no two requests can arrive closer than the delay. They count from earlier if it
// is known how long a request is under way.
func (p *Politeness) Outcome(resp *fetch.Response) scheduler.Outcome {
	p.ports.Answered(resp.URL)
	o := scheduler.Outcome{
		Start: resp.FirstByte, Took: resp.Wait(), Status: resp.Status,
	}
	if p.Overrides.Of(weburl.Host(resp.URL)).Concurrency > 1 {
		o.Took = 0 // its slow pages are what the others do not wait for
	}
	if arrived := resp.WroteRequest.Add(p.Arrival); p.Arrival > 0 && !resp.WroteRequest.IsZero() && arrived.Before(o.Start) {
		o.Start = arrived
	}
	if resp.RetryAfter > 0 {
		o.RetryAfter = resp.FirstByte.Add(min(resp.RetryAfter, MaxRetryAfter))
	}
	return p.charge(o, resp.URL, resp.Attempts)
}

// charge has each of several attempts count: the host has a delay of rest for each request that it
// may have got.
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

// Sent counts the delays from now if the request may have been sent, for a visit that says nothing
// about the server.
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

// Failure is Sent for a server in trouble, which is left alone for longer with each failure. A port
// where nobody listens is no server: it says nothing about the pages of another port, and neither
// success nor failure would be right. So the visit did not take place, but not so often that it
// were a scan.
func (p *Politeness) Failure(url string, err error) scheduler.Outcome {
	o := p.Sent(err)
	closed := errors.Is(err, fetch.Connect) || errors.Is(err, fetch.ConnectTimeout)
	if closed && p.ports.Refused(url, time.Now(), spareEvery) {
		return scheduler.Outcome{Skipped: true}
	}
	o.Failed = !o.Skipped
	return o
}

// Saw notes a visit as evidence on whether unrelated hosts share an address. all are the addresses
// of the host. It reports whether the address is now shared, or no longer so.
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

// Append appends what the queue knows of hosts, for the Restore of a later crawl.
func (p *Politeness) Append(dst []byte) ([]byte, error) {
	return AppendEntries(dst, p.Queue.All(time.Now()))
}

// Restore makes the queue as polite as the one whose state was saved. If the state is damaged, that
// holds for what comes before the damage. In any case, and also for no state at all, hosts count as
// just visited: the visits before a crash are not on record.
func (p *Politeness) Restore(state []byte) error {
	if err := p.Queue.Restore(scheduler.Entry{}, time.Now()); err != nil {
		return err
	}
	for entry, err := range Entries[scheduler.Entry](state) {
		if err == nil {
			err = p.Queue.Restore(entry, time.Now())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
