package stage

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A Quota is the number of pages that a crawl may still fetch. The result of a visit is known only
// at its end, so a visit takes a place first and returns it if it got no page. The zero Quota
// has no limit. Its methods are safe for concurrent use.
type Quota struct {
	places chan struct{} // has an element for each page, and for each visit in flight; nil: no limit
	pages  atomic.Int64
}

// NewQuota returns a quota with a limit of pages; 0 means none.
func NewQuota(limit int64) *Quota {
	if limit <= 0 {
		return new(Quota)
	}
	return &Quota{places: make(chan struct{}, min(limit, math.MaxInt))} // its elements take no memory
}

// Take waits for a place. It returns false if ctx ends first.
func (q *Quota) Take(ctx context.Context) bool {
	if q.places == nil {
		return true
	}
	select {
	case q.places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Done ends a visit that has a place, and says whether it got a page. It returns true if that
// was the last one.
func (q *Quota) Done(page bool) (last bool) {
	switch {
	case q.places == nil:
		return false
	case page:
		return q.pages.Add(1) == int64(cap(q.places))
	}
	<-q.places
	return false
}

// Pages returns how many pages visits got.
func (q *Quota) Pages() int64 { return q.pages.Load() }

// Spent reports whether no page is left.
func (q *Quota) Spent() bool { return q.places != nil && q.pages.Load() >= int64(cap(q.places)) }

// Places bounds the visits in flight. Its methods are safe for concurrent use.
type Places struct {
	all    chan struct{} // has an element for each visit
	mu     sync.Mutex
	owners map[string]int // visits in flight
}

// NewPlaces returns Places for most visits.
func NewPlaces(most int) *Places {
	return &Places{all: make(chan struct{}, most), owners: map[string]int{}}
}

// Enter waits for a place.
func (p *Places) Enter() { p.all <- struct{}{} }

// Leave makes room for another visit.
func (p *Places) Leave() { <-p.all }

// An owner who has a few places gets more only if he has less than some for each that is free. That is
// three quarters of all for one who is alone, and the fewer the more owners there are, but one is always
// left for somebody else. Without that, owners of many slow hosts, each with its own address, would take
// the places of all others.
const fewPlaces, placesForFree = 2, 3

// PlaceAgain is when to claim a place again that an owner did not get.
const PlaceAgain = time.Second

// Claim counts a visit that has a place for the owner of its host, until release is called. It returns
// false if others need the place more.
func (p *Places) Claim(host string) (release func(), ok bool) {
	owner := siteOf(host)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owners[owner] >= fewPlaces+placesForFree*(cap(p.all)-len(p.all)) {
		return nil, false
	}
	p.owners[owner]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.owners[owner]--; p.owners[owner] == 0 {
			delete(p.owners, owner)
		}
	}, true
}
