package idset

import (
	"encoding/binary"
	"runtime"
	"slices"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// segmentEntries is the number of entries that a merge writes to a segment: 48 MiB, a fraction of a
// second of work. It is a variable for tests.
var segmentEntries int64 = 2 << 20

// Step merges one segment if there is anything to merge, and reports whether there is more to do.
// It takes a fraction of a second, and returns early when stop is closed.
//
// Once all merges are done, each run is more than twice as long as the next newer one. Only one
// Step may run at a time. It does not block look-ups.
func (x *Set) Step(stop <-chan struct{}) (more bool, err error) {
	x.mu.Lock()
	out := x.plan()
	var inputs []*run
	oldest := false
	if out != nil {
		at := slices.Index(x.runs, out)
		inputs = slices.Clone(x.runs[at-out.merges : at])
		oldest = at == out.merges
	}
	x.mu.Unlock()
	if out == nil {
		return false, nil
	}
	// Only this method changes the fields of the inputs, so it needs no lock to read them.
	made, low, done, err := x.mergeSegment(inputs, oldest, stop)
	if err != nil || made == nil && !done {
		return false, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if made != nil {
		out.segments = append(slices.Clip(out.segments), made)
	}
	for _, r := range inputs {
		x.consume(r, low, done)
	}
	if done {
		at := slices.Index(x.runs, out)
		x.runs = slices.Delete(x.runs, at-out.merges, at)
		if out.merges = 0; len(out.segments) == 0 {
			x.runs = slices.DeleteFunc(x.runs, func(r *run) bool { return r == out })
		}
	}
	return true, nil
}

// plan returns the output of the merge to continue, or nil. It prefers the newest runs: they are
// the shortest, so merging them reduces the number of runs soonest. It requires that x.mu is held.
func (x *Set) plan() *run {
	for i, r := range slices.Backward(x.runs) {
		if r.merges > 0 {
			return r
		}
		from, most := i, r.count()
		for from > 0 && x.runs[from-1].merges == 0 && x.runs[from-1].count() <= 2*most {
			from--
			most += x.runs[from].count()
		}
		if from < i {
			out := &run{merges: i + 1 - from}
			x.runs = slices.Insert(x.runs, i+1, out)
			return out
		}
	}
	return nil
}

// mergeSegment merges the lowest entries of some runs, which come oldest first. It returns the
// first remaining key, or done if there is none. The segment is nil if it would be empty.
func (x *Set) mergeSegment(inputs []*run, oldest bool, stop <-chan struct{}) (
	made *segment, low Key, done bool, err error,
) {
	most := int64(0)
	sources := []source{}
	for _, r := range slices.Backward(inputs) {
		most += r.count()
		sources = append(sources, r.from(r.low))
	}
	m, err := newMerger(sources)
	if err != nil {
		return nil, low, false, err
	}
	w, err := createSegment(x.fs, x.nextFile(), min(most, segmentEntries))
	if err != nil {
		return nil, low, false, err
	}
	for err == nil && m.more() && w.count < segmentEntries {
		if m.value&deleted == 0 || !oldest { // the oldest run has nothing to hide
			w.add(m.key, m.value)
		}
		err = m.next()
		if w.left > 0 {
			continue
		}
		runtime.Gosched() // callers wait for at most one block
		if isClosed(stop) {
			durable.Discard(x.fs, w.name(), w.file)
			return nil, low, false, nil
		}
	}
	if err != nil || w.count == 0 {
		durable.Discard(x.fs, w.name(), w.file)
		return nil, low, err == nil, err
	}
	made, err = w.finish()
	return made, m.key, !m.more(), err
}

func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// consume drops the segments of a run whose entries are all below low, or all of them.
func (x *Set) consume(r *run, low Key, all bool) {
	gone := 0
	for i, s := range r.segments {
		last := i+1 == len(r.segments)
		if all || !last && compareKeys(r.segments[i+1].firsts[0], low) <= 0 {
			_ = s.file.Close() // it was opened for reading
			x.obsolete = append(x.obsolete, s.name())
			gone = i + 1
		}
	}
	r.segments, r.low = slices.Clone(r.segments[gone:]), low
}

// A source gives entries in order.
type source interface {
	// next returns false after the last entry.
	next() (key Key, value uint64, more bool, err error)
}

// memory is a source of entries that are not in a run yet.
type memory struct {
	keys   []Key
	values []uint64
}

func (m *memory) add(key Key, value uint64) {
	m.keys, m.values = append(m.keys, key), append(m.values, value)
}

func (m *memory) next() (key Key, value uint64, more bool, err error) {
	if len(m.keys) == 0 {
		return key, 0, false, nil
	}
	key, value = m.keys[0], m.values[0]
	m.keys, m.values = m.keys[1:], m.values[1:]
	return key, value, true, nil
}

// A reader is a source of the entries of a run.
type reader struct {
	segments []*segment
	block    int64 // the next one of the first segment
	buf      []byte
	rest     []byte // entries of the block before it
	low      Key    // entries below it are skipped
}

// from returns a reader of the entries from a key on.
func (r *run) from(low Key) *reader {
	segments := r.segments
	for len(segments) > 1 && compareKeys(segments[1].firsts[0], low) <= 0 {
		segments = segments[1:]
	}
	rd := &reader{segments: segments, low: low}
	if len(segments) > 0 {
		rd.block = segments[0].blockOf(low)
	}
	return rd
}

func (r *reader) next() (key Key, value uint64, more bool, err error) {
	for {
		if len(r.rest) == 0 {
			if len(r.segments) > 0 && r.block == r.segments[0].blocks() {
				r.segments, r.block = r.segments[1:], 0
			}
			if len(r.segments) == 0 {
				return key, 0, false, nil
			}
			if r.rest, err = r.segments[0].read(r.buf, r.block); err != nil {
				return key, 0, false, err
			}
			r.buf = r.rest[:0]
			r.block++
		}
		copy(key[:], r.rest)
		value = binary.LittleEndian.Uint64(r.rest[KeySize:])
		if r.rest = r.rest[entrySize:]; compareKeys(key, r.low) >= 0 {
			return key, value, true, nil
		}
	}
}

// A merger merges sources, the newest source first. If several have a key, it gives the newest
// entry.
type merger struct {
	key   Key // of the current entry
	value uint64
	heads []head // at most a dozen, so a heap would not be faster
}

type head struct {
	source
	key   Key
	value uint64
}

func newMerger(sources []source) (*merger, error) {
	m := &merger{}
	for _, s := range sources {
		h := head{source: s}
		more, err := h.step()
		if err != nil {
			return nil, err
		}
		if more {
			m.heads = append(m.heads, h)
		}
	}
	m.least()
	return m, nil
}

func (h *head) step() (more bool, err error) {
	h.key, h.value, more, err = h.next()
	return more, err
}

// more reports whether there is a current entry.
func (m *merger) more() bool { return len(m.heads) > 0 }

// least sets the current entry to the one with the smallest key.
func (m *merger) least() {
	for i, h := range m.heads {
		if i == 0 || compareKeys(h.key, m.key) < 0 {
			m.key, m.value = h.key, h.value
		}
	}
}

// next advances to the next key.
func (m *merger) next() error {
	key := m.key
	heads := m.heads[:0]
	for _, h := range m.heads {
		more := true
		if h.key == key {
			var err error
			if more, err = h.step(); err != nil {
				return err
			}
		}
		if more {
			heads = append(heads, h)
		}
	}
	m.heads = heads
	m.least()
	return nil
}
