package fetch

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/spinneret-go/spinneret/internal/content"
)

// smallBody is how much of a body, raw and again decoded, needs no reservation; most pages are
// smaller. All Gets together hold at most MaxMemory and, each, two buffers of this size, rounded
// up.
const smallBody = 64 << 10

// memoryPerBody is how many times its limit a body can take: its encoded form, and the decoded one
// while that is copied to a larger buffer. One more share is for the small bodies beside it.
const memoryPerBody = 3

// grown returns the memory for a body of up to limit bytes whose buffer grows with it, and is
// copied each time.
func grown(limit int64) int64 { return 2 * roundUp(limit+1) }

// errMemory says that a body would need more than what is left of MaxMemory.
var errMemory = errors.New("fetch: no memory for the body")

// budget is the memory that the bodies of a Client may use together. A body reserves it in steps, as
// it arrives: a slow server must not hold what its body may need but never will. Its methods are
// safe for concurrent use.
//
// Bodies that hold a part and wait for more must not wait for each other. So a step is granted only
// if what is left would do for any body. If it would not, the claim at the head of the queue gets
// all that its body may ever need, or waits. Such a body never waits again. When all of those have
// ended, at least one body's need is free, whatever the others hold: hence the next in line goes on.
// A body that holds memory stands before those that hold none, which may need even more than that.
//
// Small bodies may pass that queue, with memory that is set aside for them and for nobody else. So
// the large ones do not starve.
type budget struct {
	mu    sync.Mutex
	total int64 // without what is set aside
	free  int64 // of total
	most  int64 // any body's need, if a Request does not allow more
	aside int64 // free for small bodies
	small int64 // the most that a body may hold to be small
	queue []*claim
}

// claim is a body's wait for memory.
type claim struct {
	r          *reservation
	step, rest int64         // what the body needs now, and until its end
	ready      chan struct{} // closed once either is granted
}

// newBudget returns a budget of total bytes for bodies of up to limit bytes each.
func newBudget(total, limit int64) *budget {
	b := &budget{aside: total / (memoryPerBody + 1), small: total / 64}
	b.total = total - b.aside
	b.free = b.total
	b.most = min(memoryPerBody*roundUp(min(limit, total)+1)+content.MaxWindow, b.total)
	return b
}

// reserve makes r hold n bytes, or the whole budget if that is less, and waits for them if
// necessary. all is what its body may need until its end. The error says that ctx ended first.
func (b *budget) reserve(ctx context.Context, r *reservation, n, all int64) (waited bool, err error) {
	b.mu.Lock()
	all = min(max(n, all), b.total)
	if n = min(n, all); n <= r.n {
		b.mu.Unlock()
		return false, nil
	}
	c := &claim{r, n - r.n, all - r.n, make(chan struct{})}
	if c.rest > b.most {
		c.step = c.rest
	}
	at := slices.IndexFunc(b.queue, func(other *claim) bool { return r.n > 0 && other.r.n == 0 })
	if at < 0 {
		at = len(b.queue)
	}
	b.queue = slices.Insert(b.queue, at, c)
	b.grant()
	waited = slices.Contains(b.queue, c)
	b.mu.Unlock()
	select {
	case <-c.ready:
		return waited, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, c)
	if i < 0 { // it was granted meanwhile
		return waited, nil
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	b.grant() // one behind it may need less
	return true, errMemory
}

// grant requires that b.mu is held.
func (b *budget) grant() {
	head := true
	b.queue = slices.DeleteFunc(b.queue, func(c *claim) bool {
		granted := b.take(c, head)
		if head = head && granted; granted {
			close(c.ready)
		}
		return granted
	})
}

// take grants a claim if there is memory for it. It requires that b.mu is held.
func (b *budget) take(c *claim, head bool) bool {
	n := c.step
	switch {
	case head && n <= b.free-b.most:
	case c.r.n+n <= b.small && n <= b.aside:
		b.aside -= n
		c.r.aside += n
		c.r.n += n
		return true
	case head && c.rest <= b.free:
		n = c.rest
	default:
		return false
	}
	b.free -= n
	c.r.n += n
	return true
}

// reservation is what one response holds of a budget.
type reservation struct {
	budget *budget
	n      int64 // guarded by budget.mu while the body waits, and once its Get has returned
	aside  int64 // of n; likewise
}

// shrink returns what exceeds n bytes.
func (r *reservation) shrink(n int64) {
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	if r.n <= n {
		return
	}
	main := min(r.n-n, r.n-r.aside)
	r.budget.free += main
	r.budget.aside += r.n - n - main
	r.aside -= r.n - n - main
	r.n = n
	r.budget.grant()
}
