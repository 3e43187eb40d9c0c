package main

import (
	"fmt"
	"sync"
	"time"
)

// retryWithin is how soon a page has to be due again to count as a retry. What is put off for
// longer is another day's work.
const retryWithin = 24 * time.Hour

// retries knows when pages are tried again that brought nothing. The zero retries expects none. Its
// methods are safe for concurrent use.
type retries struct {
	mu   sync.Mutex
	due  map[int64]int // pages by minute, as the pages' clock shows it
	last time.Time     // when a visit last brought what it should, by the world's clock
}

const retrySlot = 60

// expect notes that a page is due again, in Unix time.
func (r *retries) expect(due int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due == nil {
		r.due = map[int64]int{}
	}
	r.due[due/retrySlot]++
}

// begin notes that such a page is tried.
func (r *retries) begin(due int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := due / retrySlot
	if r.due[slot]--; r.due[slot] <= 0 {
		delete(r.due, slot)
	}
}

// progress notes that a visit brought what it should.
func (r *retries) progress(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = now
}

// expected returns how many pages are due again before a time, when the first one is, and when a
// visit last brought what it should.
func (r *retries) expected(before time.Time) (n int, first, progress time.Time) {
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

// retrySoon reports whether a retry is worth waiting for: one that is due before the crawl has been
// without progress for as long as -wait says.
func (c *crawler) retrySoon() bool {
	now := c.clock.now()
	n, first, progress := c.retries.expected(now.Add(c.clock.shown(c.cfg.wait)))
	if n == 0 {
		return false
	}
	return !time.Now().Add(c.clock.until(first)).After(progress.Add(c.cfg.wait))
}

// retriesLeft says how many retries are still to come, or "".
func (c *crawler) retriesLeft() string {
	n, first, _ := c.retries.expected(c.clock.now().Add(retryWithin))
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d retries, the first at %s: the same command makes them then",
		n, moment(first))
}
