package crawl

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A window is what a partition of fetch remembers of its stream: which items of which messages are
// done. URLs are done in another order than they come, so one sequence does not say how far the
// partition is. Below low all is done, and the stream may forget it; above, there is a bit for each
// item. The URLs themselves stay in the stream until they are done, so that the state is small. A
// window is not safe for concurrent use.
type window struct {
	low    uint64        // all messages up to this one are done
	marks  message.Marks // as they were at low
	slots  []slot        // the messages behind low, in order
	head   message.Marks // as they are behind the last slot
	before map[uint64][]uint64
	open   int // items that are not done
}

// A slot is one message of a window.
type slot struct {
	msg  message.Message // without its items
	left int             // items that are not done
	n    int             // items
	done []uint64        // a bit for each
}

// errOrder says that a stream has a gap, which the broker must have lost.
var errOrder = errors.New("crawl: messages out of order")

// add takes in the next message. It returns the places of the items that are to be done: none if
// the message is left out.
func (w *window) add(seq uint64, m *message.Message) (places []int, err error) {
	// What is missing was forgotten by the stream or lost by the broker: there is nothing to be
	// done.
	for w.low+uint64(len(w.slots))+1 < seq {
		w.slots = append(w.slots, slot{})
	}
	if seq != w.low+uint64(len(w.slots))+1 {
		return nil, fmt.Errorf("%w: %d behind %d", errOrder, seq, w.low+uint64(len(w.slots)))
	}
	s := slot{msg: *m}
	s.msg.Items = nil
	if w.head.Take(m) {
		s.n = len(m.Items)
		s.done = make([]uint64, (s.n+63)/64)
		if kept := w.before[seq]; len(kept) == len(s.done) {
			s.done = kept
		}
		for i := range s.n {
			if s.done[i/64]>>(i%64)&1 == 0 {
				places = append(places, i)
			}
		}
		s.left = len(places)
		w.open += s.left
	}
	delete(w.before, seq)
	w.slots = append(w.slots, s)
	return places, nil
}

// finish notes that an item is done.
func (w *window) finish(seq uint64, place int) {
	if seq <= w.low || seq > w.low+uint64(len(w.slots)) {
		return
	}
	s := &w.slots[seq-w.low-1]
	if bit := uint64(1) << (place % 64); s.done[place/64]&bit == 0 {
		s.done[place/64] |= bit
		s.left--
		w.open--
	}
}

// slide moves low behind the messages that are done, and reports whether it moved.
func (w *window) slide() bool {
	n := 0
	for n < len(w.slots) && w.slots[n].left == 0 {
		w.marks.Take(&w.slots[n].msg)
		n++
	}
	w.low += uint64(n)
	w.slots = w.slots[n:]
	return n > 0
}

// appendDone appends which items behind low are done.
func (w *window) appendDone(dst []byte) []byte {
	last := w.low
	for i := range w.slots {
		s := &w.slots[i]
		if s.left == s.n {
			continue
		}
		seq := w.low + uint64(i) + 1
		dst = binary.AppendUvarint(dst, seq-last)
		dst = binary.AppendUvarint(dst, uint64(len(s.done)))
		for _, word := range s.done {
			dst = binary.LittleEndian.AppendUint64(dst, word)
		}
		last = seq
	}
	for seq, done := range w.before { // messages that this owner has not read again yet
		dst = binary.AppendUvarint(dst, seq-last) // may wrap around, and back again
		dst = binary.AppendUvarint(dst, uint64(len(done)))
		for _, word := range done {
			dst = binary.LittleEndian.AppendUint64(dst, word)
		}
		last = seq
	}
	return dst
}

// restore makes the window as it was when low, marks and done were kept.
func (w *window) restore(low uint64, marks message.Marks, done []byte) error {
	*w = window{low: low, marks: marks, head: marks.Clone(), before: map[uint64][]uint64{}}
	for last := low; len(done) > 0; {
		step, n := binary.Uvarint(done)
		words, m := binary.Uvarint(done[max(n, 0):])
		if n <= 0 || m <= 0 || words > uint64(len(done)-n-m)/8 {
			return errors.New("crawl: state of fetch: corrupt")
		}
		done = done[n+m:]
		set := make([]uint64, words)
		for i := range set {
			set[i], done = binary.LittleEndian.Uint64(done), done[8:]
		}
		last += step
		w.before[last] = set
	}
	return nil
}
