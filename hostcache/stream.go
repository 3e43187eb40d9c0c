package hostcache

import (
	"bytes"
	"iter"
)

// A stream yields the entries of a scan, with values that were decoded when the batch was copied,
// under the lock of the tree if it has one: later, they may have been dropped.
type stream[E any] struct {
	scan   *scan
	fill   func(*stream[E]) bool
	values []E
	at     int // in values and in the items of the scan
}

// newStream returns a stream of the keys with a prefix. Whoever locks is asked to do so around
// each batch.
func newStream[E any](t *tree, prefix []byte, decode func([]byte) E, lock, unlock func()) *stream[E] {
	fill := func(s *stream[E]) bool {
		lock()
		defer unlock()
		if !s.scan.fill(t) {
			return false
		}
		for _, it := range s.scan.items {
			s.values = append(s.values, decode(s.scan.value(it, t.width)))
		}
		return true
	}
	return &stream[E]{scan: newScan(prefix), fill: fill}
}

// more reports whether there is a current entry, after it has got a batch if need be.
func (s *stream[E]) more() bool {
	if s.at < len(s.values) {
		return true
	}
	s.at, s.values = 0, s.values[:0]
	return s.fill(s)
}

// key returns the key of the current entry, good until the next call of more.
func (s *stream[E]) key() []byte { return s.scan.key(s.scan.items[s.at]) }

// merge returns the entries of all streams, in the order of the keys. A key is good until the next
// one.
func merge[E any](streams []*stream[E]) iter.Seq2[[]byte, E] {
	return func(yield func([]byte, E) bool) {
		var h heap[E]
		for _, s := range streams {
			if s.more() {
				h = append(h, s)
			}
		}
		for i := len(h)/2 - 1; i >= 0; i-- {
			h.sink(i)
		}
		for len(h) > 0 {
			s := h[0]
			if !yield(s.key(), s.values[s.at]) {
				return
			}
			s.at++
			if !s.more() {
				h[0] = h[len(h)-1]
				h = h[:len(h)-1]
			}
			h.sink(0)
		}
	}
}

// A heap has the stream with the least current key first.
type heap[E any] []*stream[E]

// sink moves a stream down to where no stream below it comes first.
func (h heap[E]) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if bytes.Compare(h[child].key(), h[least].key()) < 0 {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
