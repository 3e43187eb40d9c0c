package stage

import (
	"cmp"
	"errors"
	"net/netip"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/scheduler"
)

// MaxRetryAfter bounds how long a Retry-After is obeyed.
const MaxRetryAfter = 24 * time.Hour

// AskedToWait is the scheduler.Reason of a host whose Retry-After counts.
const AskedToWait = "its Retry-After"

// maxSpared is how many closed ports of a host a day do not count against it.
const maxSpared = 4

// PolitenessOptions set how polite a crawl is.
type PolitenessOptions struct {
	Delay     time.Duration            // between two requests to a host or address; 0 means none
	Backoff   time.Duration            // after a first failure; 0 means the scheduler's default
	Patience  time.Duration            // of a crawl that resumes: longer back-offs, of earlier failures, are forgotten; 0 means all are
	Overrides *Overrides               // for single hosts; nil means none, now and later
	Group     func(host string) string // of hosts that share a delay; nil means none
	Shared    *SharedAddrs             // addresses without a delay; nil means none
}

// A Politeness is the scheduler of a crawl. It translates robots.txt, overrides and the results of
// requests for the scheduler. Its methods are safe for concurrent use.
type Politeness struct {
	PolitenessOptions
	Queue *scheduler.Scheduler[Item]

	delays CrawlDelays
	spared Counts // closed ports, by day and host

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
	return options
}

// NewPoliteness makes a queue with the options of o.Scheduler polite.
func NewPoliteness(o PolitenessOptions, queue *scheduler.Scheduler[Item]) *Politeness {
	return &Politeness{PolitenessOptions: o, Queue: queue}
}

// Enqueue queues an item of a host at an address; the zero Addr means unknown.
func (p *Politeness) Enqueue(it Item, addr netip.Addr) error {
	host := weburl.Host(it.URL)
	known := p.delaysFor(host) // the queue may have forgotten them
	known.Addr = addr
	if p.Group != nil {
		known.Group = p.Group(host)
	}
	p.Queue.SetHost(host, known)
	return p.Queue.Add(scheduler.Task[Item]{Host: host, Item: it})
}

// delaysFor returns the delays of a host for the queue. A Crawl-delay that is not known is left alone: that of
// an earlier run counts until the rules are.
func (p *Politeness) delaysFor(host string) scheduler.Host {
	h := scheduler.Host{CrawlDelay: p.delays.Of(host)}
	if p.Overrides != nil {
		h.Delay = max(p.Overrides.Of(host).Delay, 1) // 1 cancels an old delay
	}
	return h
}

// Reloaded applies the overrides, which were read again, to the hosts in the queue.
func (p *Politeness) Reloaded() {
	for host := range p.Queue.Reasons() {
		p.Queue.SetHost(host, p.delaysFor(host))
	}
}

// SetDelay sets or cancels the Crawl-delay of a URL's server. It returns the delay of the host.
func (p *Politeness) SetDelay(url string, delay time.Duration) (longest time.Duration) {
	server, err := robotstxt.Locate(url)
	if err != nil {
		return 0 // no server has rules for it
	}
	host := weburl.Host(url)
	asked, wanted := p.delays.Set(host, server, delay), p.Overrides.Of(host).Delay
	p.Queue.SetHost(host, scheduler.Host{Delay: max(wanted, 1), CrawlDelay: max(asked, 1)}) // 1 cancels an earlier one
	return max(asked, wanted)
}

// delayOf returns the delay of a host, as far as it is known beforehand.
func (p *Politeness) delayOf(host string) time.Duration {
	return max(p.Delay, p.delays.Of(host), p.Overrides.Of(host).Delay)
}

// Pace returns the time between two visits of a host, given how long its last response took.
func (p *Politeness) Pace(host string, took time.Duration) time.Duration {
	if p.Delay == 0 { // the latency does not count then
		return max(p.delayOf(host), took)
	}
	return max(p.delayOf(host), scheduler.DefaultLatencyFactor*took)
}

// Outcome starts the delays at the first byte of the response: by then the server has seen the
// request, so no two requests can arrive closer than the delay. After the answer of a bot wall the host
// gets a back-off: more requests make a wall higher.
func (p *Politeness) Outcome(resp *fetch.Response, walled bool) scheduler.Outcome {
	o := scheduler.Outcome{
		Start: resp.FirstByte, Took: resp.Wait(), Status: resp.Status,
		Failed: walled,
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
	o := scheduler.Outcome{Start: time.Now(), Unknown: true}
	var failed *fetch.Error
	if errors.As(err, &failed) {
		o = p.charge(o, failed.URL, failed.Attempts)
	}
	return o
}

// Failure is Sent for a server in trouble, with a back-off that grows with each failure. A closed port says
// nothing about the pages of another port, and anybody can name any port. So a request for a robots.txt that
// finds one is no failure, for so many a day that it is no port scan: its server counts as unreachable for a
// while in any case.
func (p *Politeness) Failure(it Item, err error) scheduler.Outcome {
	o, host := p.Sent(err), weburl.Host(it.URL)
	closed := it.Robots != nil && (errors.Is(err, fetch.Connect) || errors.Is(err, fetch.ConnectTimeout))
	spared := closed && p.spared.Add(time.Now().UTC().Format(time.DateOnly)+" "+host, maxSpared)
	o.Failed, o.Unknown = !o.Skipped && !spared, spared
	return o
}
