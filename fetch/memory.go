package fetch

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// smallBody is how much of a body, raw and again decoded, needs no reservation; most pages are
// smaller. All Gets together hold at most MaxMemory and, each, two buffers of this size, rounded
// up.
const smallBody = 64 << 10

// memoryPerBody is how many times its limit a body can take: its encoded form, and the decoded one
// while that is copied to a larger buffer.
const memoryPerBody = 3

// grown returns the memory for a body of up to limit bytes whose buffer grows with it, and is
// copied each time.
func grown(limit int64) int64 { return 2 * roundUp(limit+1) }

// errMemory says that a body would need more than what is left of MaxMemory.
var errMemory = errors.New("fetch: no memory for the body")

// budget is the memory that the bodies of a Client may use together. A Get reserves all that it may
// need in advance, and returns what it did not use. A Get with a reservation never waits again, so
// Gets cannot deadlock. Its methods are safe for concurrent use.
type budget struct {
	mu    sync.Mutex
	total int64
	free  int64
	queue []*claim // waiting, in order
}

type claim struct {
	n     int64
	ready chan struct{} // closed once it is granted
}

func newBudget(total int64) *budget { return &budget{total: total, free: total} }

// reserve takes n bytes, or the whole budget if that is less, and waits for them if necessary. It
// returns how many it got, or an error if ctx ended first.
func (b *budget) reserve(ctx context.Context, n int64) (got int64, waited bool, err error) {
	n = min(n, b.total)
	b.mu.Lock()
	if len(b.queue) == 0 && n <= b.free {
		b.free -= n
		b.mu.Unlock()
		return n, false, nil
	}
	c := &claim{n, make(chan struct{})}
	b.queue = append(b.queue, c)
	b.mu.Unlock()
	select {
	case <-c.ready:
		return n, true, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, c); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	} else {
		b.free += n // it was granted meanwhile
	}
	b.grant() // one behind it may need less
	return 0, true, errMemory
}

// grant requires that b.mu is held.
func (b *budget) grant() {
	for len(b.queue) > 0 && b.queue[0].n <= b.free {
		b.free -= b.queue[0].n
		close(b.queue[0].ready)
		b.queue = slices.Delete(b.queue, 0, 1)
	}
}

// reservation is what one response holds of a budget. The zero reservation holds nothing.
type reservation struct {
	budget *budget
	n      int64 // guarded by budget.mu once the response has left its Get
}

// shrink returns what exceeds n bytes.
func (r *reservation) shrink(n int64) {
	if r.budget == nil {
		return
	}
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	if r.n > n {
		r.budget.free += r.n - n
		r.n = n
		r.budget.grant()
	}
}
