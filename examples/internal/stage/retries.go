package stage

import (
	"sync"
	"time"
)

// RetryWithin is how soon a page has to be due again to count as a retry. What is put off for
// longer is another day's work.
const RetryWithin = 24 * time.Hour

// Retries knows when pages are tried again that brought nothing. The zero retries expects none. Its
// methods are safe for concurrent use.
type Retries struct {
	mu   sync.Mutex
	due  map[int64]int // pages by minute, as the pages' clock shows it
	last time.Time     // when a visit last brought what it should, by the world's clock
}

const retrySlot = 60

// Expect notes that a page is due again, in Unix time.
func (r *Retries) Expect(due int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due == nil {
		r.due = map[int64]int{}
	}
	r.due[due/retrySlot]++
}

// Begin notes that such a page is tried.
func (r *Retries) Begin(due int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := due / retrySlot
	if r.due[slot]--; r.due[slot] <= 0 {
		delete(r.due, slot)
	}
}

// Progress notes that a visit brought what it should.
func (r *Retries) Progress(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = now
}

// Expected returns how many pages are due again before a time, when the first one is, and when a
// visit last brought what it should.
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
