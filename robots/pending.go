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
	items map[string]*[]T // by origin
	count int
}

// Lookup is [Cache.Lookup] for an item with that URL. If the rules are not known, the item waits.
// It does not wait if there is an error, such as [ErrFull] if Max items are waiting already. If the
// rules are known, Lookup also returns the items that waited for them.
func (p *Pending[T]) Lookup(url string, item T, now time.Time) (answer Answer, ready []T, err error) {
	origin, err := rep.Origin(url)
	if err != nil {
		return Answer{}, nil, err
	}
	// No other call may release the item between the lookup and the parking.
	p.mu.Lock()
	defer p.mu.Unlock()
	answer, err = p.Cache.Lookup(url, now)
	switch {
	case err != nil:
		return answer, nil, err
	case answer.Known:
		return answer, p.remove(origin), nil
	case p.count >= p.limit():
		if answer.Request != nil {
			p.Cache.Abandon(*answer.Request)
		}
		return Answer{}, nil, ErrFull
	}
	items := p.items[origin]
	if items == nil {
		if answer.Request == nil {
			// A Load made this request, and Store would not learn when it ends. Take over its
			// flight.
			answer = p.Cache.relaunch(origin, now)
		}
		if p.items == nil {
			p.items = make(map[string]*[]T)
		}
		items = new([]T)
		p.items[strings.Clone(origin)] = items // do not keep a long URL in memory
	}
	*items = append(*items, item)
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
// waited, even if the rules are not known: whatever has superseded the request may be somebody
// else's.
func (p *Pending[T]) Store(req Request, resp Response, now time.Time) (Answer, []T, error) {
	// A Lookup that still saw the request in flight has parked its item by the time release gets
	// the lock. A later one does not park.
	answer, err := p.Cache.Store(req, resp, now)
	if err != nil || answer.Request != nil {
		return answer, nil, err
	}
	return answer, p.release(req.For), nil
}

// Abandon is [Cache.Abandon]. It also returns the items that waited.
func (p *Pending[T]) Abandon(req Request) []T {
	p.Cache.Abandon(req)
	return p.release(req.For)
}

// release removes and returns the items that wait for a robots.txt.
func (p *Pending[T]) release(file string) []T {
	origin, err := rep.Origin(file)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.remove(origin)
}

// remove is release for a caller that holds p.mu.
func (p *Pending[T]) remove(origin string) []T {
	items := p.items[origin]
	if items == nil {
		return nil
	}
	delete(p.items, origin)
	p.count -= len(*items)
	return *items
}

// Waiting returns a copy of the items that wait for the robots.txt of a URL's host.
func (p *Pending[T]) Waiting(url string) []T {
	origin, err := rep.Origin(url)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if items := p.items[origin]; items != nil {
		return slices.Clone(*items)
	}
	return nil
}

// Len returns how many items wait.
func (p *Pending[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}
