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
//	answer, err := pending.Lookup(url, item, now)
//	switch {
//	case err != nil:                  // not a URL of http or https, or ErrFull
//	case answer.Known:                // fetch it, if answer.Rules.Allowed(url)
//	case answer.Request != nil:       // item waits; make the request, then call Store
//	default:                          // item waits for a request that was made before
//	}
//
// Store or Abandon returns each waiting item once, so all requests must be passed to one of them.
type Pending[T any] struct {
	Cache *Cache

	// Max is how many items may wait. 0 means a million, negative means unlimited.
	Max int

	mu    sync.Mutex
	items map[string]*[]T // by origin
	count int
}

// Lookup is [Cache.Lookup] for an item with that URL. If the rules are not known, the item waits
// until Store returns it. It does not wait if there is an error, such as [ErrFull] if Max items are
// waiting already.
func (p *Pending[T]) Lookup(url string, item T, now time.Time) (Answer, error) {
	origin, err := rep.Origin(url)
	if err != nil {
		return Answer{}, err
	}
	// No other call may release the item between the lookup and the parking.
	p.mu.Lock()
	defer p.mu.Unlock()
	answer, err := p.Cache.Lookup(url, now)
	if err != nil || answer.Known {
		return answer, err
	}
	if p.count >= p.limit() {
		if answer.Request != nil {
			p.Cache.Abandon(*answer.Request)
		}
		return Answer{}, ErrFull
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
	return answer, nil
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

// Store is [Cache.Store]. It also returns the items that waited, if the rules are now known.
func (p *Pending[T]) Store(req Request, resp Response, now time.Time) (Answer, []T, error) {
	// A Lookup that still saw the request in flight has parked its item by the time release gets
	// the lock. A later one does not park.
	answer, err := p.Cache.Store(req, resp, now)
	if err != nil || !answer.Known {
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
