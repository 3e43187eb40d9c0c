package crawl

import (
	"context"
	"encoding/binary"
	"maps"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// extra is what the root of a partition of fetch has besides.
type extra struct {
	done      []byte // see window.appendDone
	scheduler []byte // entries of scheduler.All; nil if it was never kept
}

func (e extra) encode() []byte {
	data := binary.AppendUvarint(nil, uint64(len(e.done)))
	data = append(data, e.done...)
	return append(data, e.scheduler...)
}

func decodeExtra(data []byte) (extra, error) {
	if data == nil {
		return extra{}, nil
	}
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return extra{}, errState
	}
	e := extra{done: data[n:][:size], scheduler: data[n:][size:]}
	if len(e.scheduler) == 0 {
		e.scheduler = nil
	}
	return e, nil
}

// learnEvery is how often what the scheduler has learned is kept.
const learnEvery = 2 * time.Second

// maxLearned bounds what is kept of that. It grows with the number of unusual hosts; beyond, a new
// owner has to learn again what a host is like.
const maxLearned = 128 << 10

// commitAll keeps what the workers have done, until no more comes. All that has come while one
// value was on its way to the broker goes into the next one.
func (f *fetcher) commitAll(ctx context.Context) error {
	var learned time.Time
	var scheduled []byte
	for first := range f.done {
		batch := f.gather(first)
		f.mu.Lock()
		for _, r := range batch {
			if r.fate != "" {
				f.window.finish(r.task.seq, r.task.place)
				f.counts[string(r.fate)]++
			}
		}
		f.window.slide()
		// A Retry-After of the last moments may be lost with the process. It would take a look at all
		// unusual hosts for each page to keep it.
		if time.Since(learned) > learnEvery {
			state, err := stage.AppendEntries(nil, f.queue.All(time.Now()))
			if err == nil && len(state) <= maxLearned {
				scheduled = state
			}
			learned = time.Now()
		}
		root := &f.keeper.Root
		root.Seq, root.Open = f.window.low, f.window.open
		root.Marks = f.window.marks.Append(nil)
		done := f.window.appendDone(nil)
		f.doneSize.Store(int64(len(done)))
		root.Extra = extra{done, scheduled}.encode()
		root.Counts = maps.Clone(f.counts)
		if lost := f.window.head.Lost(); lost > 0 {
			root.Counts[engine.CountLost] = int64(lost)
		}
		f.mu.Unlock()
		// Workers that are not done yet may have sent some of these, so more may be counted here
		// than is with the broker. The last of them writes the root once more.
		root.Sent = f.out.sent()
		err := f.keeper.Store(ctx)
		// Only now may the workers go on: what they did cannot be forgotten any more.
		for _, r := range batch {
			if r.kept != nil {
				r.kept <- err
			}
		}
		if err != nil {
			return err
		}
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
