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

// extra is what the root of a partition of fetch has besides. What the scheduler has learned is in
// chunks of the state if it is much.
type extra struct {
	done      []byte // see window.appendDone
	scheduler []byte // entries of scheduler.All; nil if it was never kept, or is in chunks
	recent    []byte // entries for what went wrong since; nil if nothing did
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

// How often what the scheduler has learned is kept whole. It grows with the unusual hosts: beyond
// maxLearned bytes it goes into chunks of its own, less often. What goes wrong meanwhile is
// kept at once, as entries of its own.
const (
	learnEvery  = 2 * time.Second
	learnSeldom = 30 * time.Second
	maxLearned  = 8 << 10
	maxRecent   = 512 // entries until all is kept anew
	learnChunk  = 256 << 10
)

// A memory is what a partition of fetch keeps of its scheduler.
type memory struct {
	at     time.Time // when all was kept
	whole  []byte    // as of then; nil if it is in chunks
	recent []scheduler.Entry
	due    time.Duration // until all is kept again
}

// learn keeps what the scheduler has learned, when it is time. It returns the chunks that no root
// names any more once the next one is stored.
func (m *memory) learn(ctx context.Context, f *fetcher) (old []engine.Chunk, err error) {
	if time.Since(m.at) < m.due && len(m.recent) < maxRecent {
		return nil, nil
	}
	now := time.Now()
	state, err := stage.AppendEntries(nil, f.queue.All(now))
	if err != nil {
		return nil, err
	}
	// The time that this took bounds how often it is done, however many unusual hosts there are.
	*m = memory{at: now, whole: state, due: max(learnEvery, 20*time.Since(now))}
	old = f.keeper.Root.Chunks
	f.keeper.Root.Chunks = nil
	if len(state) <= maxLearned {
		return old, nil
	}
	m.whole, m.due = nil, max(learnSeldom, m.due)
	// Each chunk has to be readable alone.
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

// commitAll keeps what the workers have done, until no more comes. All that has come while one
// value was on its way to the broker goes into the next one.
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
		// Workers that are not done yet may have sent some of these, so more may be counted here
		// than is with the broker. The last of them writes the root once more.
		root.Sent = f.out.sent()
		err = f.keeper.Store(ctx)
		// Only now may the workers go on: what they did cannot be forgotten any more.
		for _, r := range batch {
			if r.kept != nil {
				r.kept <- err
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
		f.kept.Store(root.Seq)
	}
	return nil
}

// gather returns a result with those that have come since.
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

// learned returns what the next owner must know of a visit that went wrong: a server that has sent
// the crawler away must not be asked again because a process died.
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
