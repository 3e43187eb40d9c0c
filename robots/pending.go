package robots

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spinneret-go/spinneret/robots/internal/rep"
)

// Pending holds items that wait for a robots.txt, for crawlers that schedule their own requests for
// robots.txt. T is whatever the crawler queues for a URL. Its methods are safe for concurrent use.
// Cache must be set; do not change the fields after the first use.
//
//	answer, ready, err := pending.Lookup(url, item, now)
//	switch {
//	case err != nil:                  // not a URL of http or https, or ErrFull
//	case answer.Known:                // fetch it, if answer.Rules.Allowed(url)
//	case answer.Request != nil:       // item waits; make the request, then call Store
//	default:                          // item waits for a request that was made before
//	}
//
// Each item that waits comes out once: from Store or Abandon for a request to its host, or as ready
// from a Lookup that finds the rules known. Look it up again; that is cheap if the rules are known,
// and makes the next request if they are not, such as after a response that came too late. All
// requests must be passed to Store or Abandon.
type Pending[T any] struct {
	Cache *Cache

	// Max is how many items may wait. 0 means a million, negative means unlimited.
	Max int

	mu    sync.Mutex
	hosts map[string]*parked[T] // by origin
	count int
}

// parked is the items that wait for a host, and the last request for it that this Pending returned.
// Only the end of that request releases them. If a late response to an earlier one did, looking
// them up again would start a request beside the one in flight, to be superseded in turn.
type parked[T any] struct {
	flight uint64
	hop    int
	items  []T
}

// Lookup is [Cache.Lookup] for an item with that URL. If the rules are not known, the item waits.
// It does not wait if there is an error, such as [ErrFull] if Max items are waiting already. If the
// rules are known, Lookup also returns the items that waited for them.
//
// If the request in flight is that of a Load or of another Pending with the same Cache, nobody
// would report its end to this one. So Lookup returns it once more, and the first response counts.
func (p *Pending[T]) Lookup(url string, item T, now time.Time) (answer Answer, ready []T, err error) {
	origin, err := rep.Origin(url)
	if err != nil {
		return Answer{}, nil, err
	}
	// No other call may release the item between the lookup and the parking.
	p.mu.Lock()
	defer p.mu.Unlock()
	answer, out, err := p.Cache.lookup(origin, now, p.count < p.limit())
	switch {
	case err != nil:
		return answer, nil, err
	case answer.Known:
		return answer, p.remove(origin, out.Flight), nil
	}
	host := p.host(origin)
	if host.flight != out.Flight {
		answer.Request = &out
		host.flight, host.hop = out.Flight, out.Hop
	}
	host.items = append(host.items, item)
	p.count++
	return answer, nil, nil
}

func (p *Pending[T]) limit() int {
	switch {
	case p.Max == 0:
		return 1_000_000
	case p.Max < 0:
		return math.MaxInt
	}
	return p.Max
}

// Store is [Cache.Store]. Unless the answer is another Request, it also returns the items that
// waited for this one, even if the rules are not known: another request may have superseded it.
func (p *Pending[T]) Store(req Request, resp Response, now time.Time) (Answer, []T, error) {
	// A Lookup that still saw the request in flight has parked its item by the time release gets
	// the lock. A later one does not park.
	answer, err := p.Cache.Store(req, resp, now)
	if err != nil {
		return answer, nil, err
	}
	return answer, p.release(req, answer), nil
}

// Abandon is [Cache.Abandon]. It also returns the items that waited for the request.
func (p *Pending[T]) Abandon(req Request) []T {
	p.Cache.Abandon(req)
	return p.release(req, Answer{})
}

// release removes and returns the items that wait for a request which led to an answer, unless it
// is the next request. Items that wait for another request may go only if the rules are known, or
// if no request is in flight: looking them up again then starts none beside another.
func (p *Pending[T]) release(req Request, answer Answer) []T {
	origin, err := rep.Origin(req.For)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if next := answer.Request; next != nil { // not to be returned again, even if nothing waits yet
		host := p.host(origin)
		host.flight, host.hop = next.Flight, next.Hop
		return nil
	}
	host := p.hosts[origin]
	switch {
	case host == nil:
		return nil
	case req.Flight == host.flight && req.Hop >= host.hop:
		return p.remove(origin, 0)
	}
	out, found := p.Cache.InFlight(req.For)
	if found && !answer.Known {
		return nil
	}
	return p.remove(origin, out.Flight)
}

// host finds or makes what waits for a host. The caller holds p.mu.
func (p *Pending[T]) host(origin string) *parked[T] {
	if p.hosts == nil {
		p.hosts = make(map[string]*parked[T])
	}
	host := p.hosts[origin]
	if host == nil {
		host = new(parked[T])
		p.hosts[strings.Clone(origin)] = host // do not keep a long URL in memory
	}
	return host
}

// remove removes and returns the items that wait for a host. It remembers that this Pending has
// the request, if that is the one in flight: it is not to be returned again. The caller holds p.mu.
func (p *Pending[T]) remove(origin string, out uint64) []T {
	host := p.hosts[origin]
	if host == nil {
		return nil
	}
	if host.flight != out {
		delete(p.hosts, origin)
	}
	items := host.items
	host.items = nil
	p.count -= len(items)
	return items
}

// Waiting returns a copy of the items that wait for the robots.txt of a URL's host.
func (p *Pending[T]) Waiting(url string) []T {
	origin, err := rep.Origin(url)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if host := p.hosts[origin]; host != nil {
		return slices.Clone(host.items)
	}
	return nil
}

// Len returns how many items wait.
func (p *Pending[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}
