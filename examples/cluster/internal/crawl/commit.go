package crawl

import (
	"context"
	"encoding/binary"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/scheduler"
)

// extra is the additional content of the root of a partition of fetch. If the scheduler has learned
// much, that is in chunks of the state instead.
type extra struct {
	done      []byte // see window.appendDone
	scheduler []byte // entries of scheduler.All; nil if never saved, or in chunks
	recent    []byte // entries for failures since then; nil if there were none
}

func (e extra) encode() []byte {
	var data []byte
	for _, part := range [][]byte{e.done, e.scheduler, e.recent} {
		data = binary.AppendUvarint(data, uint64(len(part)))
		data = append(data, part...)
	}
	return data
}

func decodeExtra(data []byte) (e extra, err error) {
	if data == nil {
		return extra{}, nil
	}
	for _, part := range []*[]byte{&e.done, &e.scheduler, &e.recent} {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return extra{}, errState
		}
		if size > 0 {
			*part = data[n:][:size]
		}
		data = data[n+int(size):]
	}
	if len(data) > 0 {
		return extra{}, errState
	}
	return e, nil
}

// How often the whole state of the scheduler is saved. It grows with the number of unusual hosts:
// beyond maxLearned bytes it goes into chunks of its own, less often. Failures in between are saved
// immediately, as separate entries.
const (
	learnEvery  = 2 * time.Second
	learnSeldom = 30 * time.Second
	maxLearned  = 8 << 10
	maxRecent   = 512 // entries until everything is saved again
	learnChunk  = 256 << 10
)

// A memory is what a partition of fetch saves of its scheduler.
type memory struct {
	at     time.Time // when everything was saved
	whole  []byte    // the state then; nil if it is in chunks
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
	state, err := stage.AppendEntries(nil, f.queue.All(now))
	if err != nil {
		return nil, err
	}
	// The longer this takes, the less often it is done, however many unusual hosts there are.
	*m = memory{at: now, whole: state, due: max(learnEvery, 20*time.Since(now))}
	old = f.keeper.Root.Chunks
	f.keeper.Root.Chunks = nil
	if len(state) <= maxLearned {
		return old, nil
	}
	m.whole, m.due = nil, max(learnSeldom, m.due)
	// Each chunk must be readable on its own.
	var part []scheduler.Entry
	size := 0
	flush := func() error {
		data, err := stage.AppendEntries(nil, slices.Values(part))
		part, size = part[:0], 0
		if err != nil {
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
	return old, flush()
}

// A committer collects the results of the workers of a partition and commits them together.
type committer struct {
	*fetcher
	learned memory
	dirty   time.Time      // since when there is a result that is not committed; zero: there is none
	waiting []chan<- error // workers that wait until their result is committed
}

// commitAll commits the results of the workers until f.done is closed. A result waits for others,
// unless a worker waits for it: what a server has asked for must not be forgotten.
func (f *fetcher) commitAll(ctx context.Context) error {
	c := &committer{fetcher: f}
	ticks := time.NewTicker(min(f.opts.Every, tendEvery))
	defer ticks.Stop()
	for open := true; open; {
		f.reportIdle(c.dirty.IsZero())
		done := f.done
		if f.out.Full() {
			done = nil // the workers wait, too
		}
		select {
		case r, ok := <-done:
			if open = ok; ok {
				c.collect(r)
			}
		case <-f.out.Moved():
			c.changed()
		case <-ticks.C:
		case <-ctx.Done():
			c.answer(ctx.Err())
			return ctx.Err()
		}
		if c.dirty.IsZero() || open && len(c.waiting) == 0 && !f.out.Full() && time.Since(c.dirty) < f.opts.Every {
			continue
		}
		if err := c.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reportIdle tells the member whether the partition has anything to do.
func (f *fetcher) reportIdle(clean bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claim.Report(clean && f.window.open == 0 && f.window.low >= f.last && f.out.Empty())
}

// changed notes that there is something to commit.
func (c *committer) changed() {
	if c.dirty.IsZero() {
		c.dirty = time.Now()
	}
}

// collect takes a result, and those that have arrived since.
func (c *committer) collect(r result) {
	c.changed()
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

// answer lets the workers continue.
func (c *committer) answer(err error) {
	for _, committed := range c.waiting {
		committed <- err
	}
	c.waiting = nil
}

// commit stores the root of the partition.
func (c *committer) commit(ctx context.Context) error {
	c.dirty = time.Time{}
	root := &c.keeper.Root
	c.mu.Lock()
	c.window.slide()
	root.Seq, root.Open = c.window.low, c.window.open
	root.Last, root.Full = c.last, c.share
	root.Marks = c.window.marks.Append(nil)
	done := c.window.appendDone(nil)
	c.doneSize.Store(int64(len(done)))
	root.Counts = engine.Counted(c.counts, &c.window.head)
	c.mu.Unlock()
	old, err := c.learned.learn(ctx, c.fetcher)
	if err != nil {
		return err
	}
	recent, err := stage.AppendEntries(nil, slices.Values(c.learned.recent))
	if err != nil {
		return err
	}
	root.Extra = extra{done, c.learned.whole, recent}.encode()
	err = c.keeper.Commit(ctx, c.out)
	c.answer(err)
	if err != nil {
		return err
	}
	c.keeper.Drop(ctx, old)
	select {
	case c.room <- struct{}{}:
	default:
	}
	c.committed.Store(root.Seq)
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
