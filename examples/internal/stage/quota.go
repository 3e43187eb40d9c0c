package stage

import (
	"context"
	"sync"
)

// A Quota is how many pages a crawl may still get. What a visit brings is known when it is over, so
// a visit takes a place first and gives it back if it brought no page. The zero Quota has no limit.
// Its methods are safe for concurrent use.
type Quota struct {
	limit int64
	freed chan struct{} // holds a value when a place may be free

	mu    sync.Mutex
	taken int64 // by pages, and by visits under way
	pages int64
}

// NewQuota returns the quota of a crawl that may get so many pages; 0 is no limit.
func NewQuota(limit int64) Quota { return Quota{limit: limit, freed: make(chan struct{}, 1)} }

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
			Wake(q.freed) // for the next one who waits
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

// Done says whether a visit that has a place brought a page. It returns true if that was the last
// one.
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

// Places bounds how many visits are under way: it has an element for each.
type Places chan struct{}

// Enter waits for a place.
func (p Places) Enter() { p <- struct{}{} }

// Leave makes room for another visit.
func (p Places) Leave() { <-p }
