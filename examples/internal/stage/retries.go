package stage

import (
	"sync"
	"time"
)

// RetryWithin is how soon a page must be due again to count as a retry. Later ones are left to
// later days.
const RetryWithin = 24 * time.Hour

// Retries counts the pages that will be retried. The zero Retries expects none. Its methods are
// safe for concurrent use.
type Retries struct {
	mu   sync.Mutex
	due  map[int64]int // pages by minute, as the pages' clock shows it
	last time.Time     // when a visit last succeeded, in real time
}

const retrySlot = 60

// Expect records that a page is due again, in Unix time.
func (r *Retries) Expect(due int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due == nil {
		r.due = map[int64]int{}
	}
	r.due[due/retrySlot]++
}

// Begin records that such a page is being retried.
func (r *Retries) Begin(due int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := due / retrySlot
	if r.due[slot]--; r.due[slot] <= 0 {
		delete(r.due, slot)
	}
}

// Progress records that a visit succeeded.
func (r *Retries) Progress(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = now
}

// Expected returns how many pages are due again before a time, when the first one is, and when a
// visit last succeeded.
func (r *Retries) Expected(before time.Time) (n int, first, progress time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for slot, pages := range r.due {
		due := time.Unix((slot+1)*retrySlot, 0)
		if due.After(before) {
			continue
		}
		n += pages
		if first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return n, first, r.last
}
