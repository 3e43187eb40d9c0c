package crawl

import (
	"context"
	"encoding/binary"
	"maps"
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

// commitAll commits the results of the workers until f.done is closed. Results that arrive during a
// commit go into the next one together.
func (f *fetcher) commitAll(ctx context.Context) error {
	var learned memory
	for first := range f.done {
		batch := f.gather(first)
		f.mu.Lock()
		for _, r := range batch {
			if r.fate != "" {
				f.window.finish(r.task.seq, r.task.place)
				f.counts[string(r.fate)]++
			}
			learned.recent = append(learned.recent, r.learned...)
		}
		f.window.slide()
		root := &f.keeper.Root
		root.Seq, root.Open = f.window.low, f.window.open
		root.Marks = f.window.marks.Append(nil)
		done := f.window.appendDone(nil)
		f.doneSize.Store(int64(len(done)))
		root.Counts = maps.Clone(f.counts)
		if lost := f.window.head.Lost(); lost > 0 {
			root.Counts[engine.CountLost] = int64(lost)
		}
		f.mu.Unlock()
		old, err := learned.learn(ctx, f)
		if err != nil {
			return err
		}
		recent, err := stage.AppendEntries(nil, slices.Values(learned.recent))
		if err != nil {
			return err
		}
		root.Extra = extra{done, learned.whole, recent}.encode()
		// Unfinished workers may have counted messages that are not with the broker yet, so this
		// count may be ahead. The last of them writes the root again.
		root.Sent = f.out.sent()
		err = f.keeper.Store(ctx)
		// Only now may the workers continue: their results are durable.
		for _, r := range batch {
			if r.committed != nil {
				r.committed <- err
			}
		}
		if err != nil {
			return err
		}
		f.keeper.Drop(ctx, old)
		select {
		case f.room <- struct{}{}:
		default:
		}
		f.committed.Store(root.Seq)
	}
	return nil
}

// gather returns a result together with those that have arrived since.
func (f *fetcher) gather(first result) []result {
	batch := []result{first}
	for range cap(f.done) {
		select {
		case r, ok := <-f.done:
			if !ok {
				return batch
			}
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
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
