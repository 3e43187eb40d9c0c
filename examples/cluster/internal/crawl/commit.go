package crawl

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/scheduler"
)

// extra is the additional content of the root of a partition of fetch. What the scheduler has learned
// is in the chunks of the state.
type extra struct {
	Done   []byte // see window.appendDone
	Recent []byte // entries of the scheduler for failures since the chunks were written
}

// The state of the scheduler grows with the number of unusual hosts, so it is saved seldom. Failures
// in between are saved immediately, as separate entries.
const (
	learnEvery = 30 * time.Second
	maxRecent  = 512 // entries until everything is saved again
	learnChunk = 256 << 10
)

// A memory is what a partition of fetch saves of its scheduler.
type memory struct {
	at     time.Time // when everything was saved
	recent []scheduler.Entry
	due    time.Duration // until everything is saved again
}

// learn saves the state of the scheduler when it is time. It returns the chunks that are unused
// once the next root is stored.
func (m *memory) learn(ctx context.Context, f *fetcher) (old []engine.Chunk, err error) {
	if time.Since(m.at) < m.due && len(m.recent) < maxRecent {
		return nil, nil
	}
	now := time.Now()
	old, f.keeper.Root.Chunks = f.keeper.Root.Chunks, nil
	// Each chunk must be readable on its own.
	var part []scheduler.Entry
	size := 0
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		data, err := stage.AppendEntries(nil, slices.Values(part))
		if part, size = part[:0], 0; err != nil {
			return err
		}
		return f.keeper.AddChunk(ctx, data)
	}
	for e := range f.queue.All(now) {
		part = append(part, e)
		if size += len(e.Host) + 100; size > learnChunk {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	// The longer this takes, the less often it is done, however many unusual hosts there are.
	*m = memory{at: now, due: max(learnEvery, 20*time.Since(now))}
	return old, flush()
}

// A committer collects the results of the workers of a partition and commits them together.
type committer struct {
	*fetcher
	learned memory
	dirty   bool // there is a result that is not committed
	missed  bool // a tick has come during a commit

	// What is being committed: the result, and the chunks that it makes unused.
	pending <-chan error // nil if nothing is
	old     []engine.Chunk
	asking  []chan<- error // workers that wait for it
	waiting []chan<- error // workers that wait for the next one
}

// commitAll commits the results of the workers until f.done is closed. A result waits for others,
// unless a worker waits for it: what a server has asked for must not be forgotten.
func (f *fetcher) commitAll(ctx context.Context) error {
	c := &committer{fetcher: f}
	due, open := f.post.Ticked(), true
	for open || c.dirty || c.pending != nil {
		f.reportIdle(!c.dirty && c.pending == nil)
		done := f.done
		if f.out.Full() || c.missed || !open {
			done = nil // the workers wait, too: a killed process would repeat all that is not committed
		}
		ticked := false
		select {
		case r, ok := <-done:
			if open = ok; ok {
				c.collect(r)
			}
		case <-due:
			due, ticked = f.post.Ticked(), true
		case err := <-c.pending:
			if err := c.committed(ctx, err); err != nil {
				return err
			}
			ticked = c.missed
		case <-ctx.Done():
			release(c.asking, ctx.Err())
			release(c.waiting, ctx.Err())
			return ctx.Err()
		}
		c.missed = ticked && c.pending != nil
		f.overdue.Store(c.missed)
		hurry := !open || len(c.waiting) > 0
		if c.dirty && c.pending == nil && (ticked || hurry || f.out.Full()) {
			if err := c.commit(ctx, hurry); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportIdle tells the member whether the partition has anything to do.
func (f *fetcher) reportIdle(clean bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claim.Report(clean && f.window.open == 0 && f.lag == 0)
}

// collect takes a result, and those that have arrived since.
func (c *committer) collect(r result) {
	c.dirty = true
	for more := true; more; {
		c.mu.Lock()
		if r.fate != "" {
			c.window.finish(r.task.seq, r.task.place)
			c.counts[string(r.fate)]++
		}
		c.mu.Unlock()
		c.learned.recent = append(c.learned.recent, r.learned...)
		for _, s := range r.items {
			c.out.Put(s.To, s.Part, s.item)
		}
		if r.committed != nil {
			c.waiting = append(c.waiting, r.committed)
		}
		select {
		case r, more = <-c.done:
		default:
			more = false
		}
	}
}

// release lets workers continue.
func release(workers []chan<- error, err error) {
	for _, committed := range workers {
		committed <- err
	}
}

// commit begins to store the root of the partition.
func (c *committer) commit(ctx context.Context, urgent bool) (err error) {
	root := &c.keeper.Root
	c.mu.Lock()
	c.window.slide()
	root.Seq, root.Open, root.Lag = c.window.low, c.window.open, c.lag
	done := c.window.appendDone(nil)
	c.doneSize.Store(int64(len(done)))
	root.Counts = engine.Counted(c.counts)
	c.mu.Unlock()
	if c.old, err = c.learned.learn(ctx, c.fetcher); err != nil {
		return err
	}
	recent, err := stage.AppendEntries(nil, slices.Values(c.learned.recent))
	if err != nil {
		return err
	}
	if root.Extra, err = json.Marshal(extra{done, recent}); err != nil {
		return err
	}
	c.dirty, c.asking, c.waiting = false, c.waiting, nil
	c.pending = c.post.Commit(c.keeper, &c.out, urgent)
	return nil
}

// committed ends a commit.
func (c *committer) committed(ctx context.Context, err error) error {
	release(c.asking, err)
	c.pending, c.asking = nil, nil
	if err != nil {
		return err
	}
	c.keeper.Drop(ctx, c.old)
	select {
	case c.room <- struct{}{}:
	default:
	}
	c.fetcher.committed.Store(c.keeper.Root.Seq)
	return nil
}

// skip counts a link that is not followed.
func (f *fetcher) skip(why stage.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[string(why)]++
}

// learned returns what the next owner must know about a failed visit. The death of a process must
// not lead to an early request to a server that asked for patience.
func learned(host string, addr netip.Addr, o scheduler.Outcome) []scheduler.Entry {
	bad := o.Failed || o.Status == http.StatusTooManyRequests ||
		o.Status == http.StatusServiceUnavailable
	if o.Skipped || !bad && o.RetryAfter.IsZero() {
		return nil
	}
	entry := scheduler.Entry{Host: host, RetryAfter: o.RetryAfter}
	if bad {
		entry.Failures = 1
	}
	if o.RetryAfter.IsZero() || !addr.IsValid() {
		return []scheduler.Entry{entry}
	}
	return []scheduler.Entry{entry, {Addr: addr, RetryAfter: o.RetryAfter}}
}
