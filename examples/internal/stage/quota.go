package stage

import (
	"context"
	"sync"
)

// A Quota is the number of pages that a crawl may still fetch. The result of a visit is known only
// at its end, so a visit takes a place first and returns it if it got no page. The zero Quota
// has no limit. Its methods are safe for concurrent use.
type Quota struct {
	limit int64
	freed chan struct{} // holds a value when a place may be free

	mu    sync.Mutex
	taken int64 // by pages, and by visits in flight
	pages int64
}

// NewQuota returns a quota with a limit of pages; 0 means none.
func NewQuota(limit int64) *Quota { return &Quota{limit: limit, freed: make(chan struct{}, 1)} }

// Take waits for a place. It returns false if ctx ends first.
func (q *Quota) Take(ctx context.Context) bool {
	for q.limit > 0 {
		q.mu.Lock()
		free := q.taken < q.limit
		if free {
			q.taken++
		}
		more := q.taken < q.limit
		q.mu.Unlock()
		switch {
		case free && more:
			Wake(q.freed) // for the next waiter
			return true
		case free:
			return true
		}
		select {
		case <-q.freed:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Done ends a visit that has a place, and says whether it got a page. It returns true if that
// was the last one.
func (q *Quota) Done(page bool) (last bool) {
	if q.limit <= 0 {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if page {
		q.pages++
		return q.pages == q.limit
	}
	q.taken--
	Wake(q.freed)
	return false
}

// Spent reports whether no page is left.
func (q *Quota) Spent() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit > 0 && q.pages >= q.limit
}

// Places bounds the visits in flight: it has an element for each.
type Places chan struct{}

// Enter waits for a place.
func (p Places) Enter() { p <- struct{}{} }

// Leave makes room for another visit.
func (p Places) Leave() { <-p }
