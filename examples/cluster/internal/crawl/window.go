package crawl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A window records which items of its stream a partition of fetch has done. URLs are not done in
// the order in which they arrive, so a single sequence number cannot describe the progress. All
// messages up to low are done, and the stream may delete them; above, there is a bit for each item.
// The URLs themselves stay in the stream until they are done, which keeps the state small. A window
// is not safe for concurrent use.
type window struct {
	low   uint64        // all messages up to this one are done
	marks message.Marks // those at low
	slots []slot        // the messages after low, in order
	head  message.Marks // those after the last slot
	open  int           // items that are not done

	// Items that previous owners have done, of messages that this one has not read yet.
	before map[uint64][]uint64
	runs   []span // in order
}

// A slot is one message of a window.
type slot struct {
	msg  []header
	left int      // items that are not done
	n    int      // items
	done []uint64 // a bit for each; nil once all are done
}

// A header is a parcel without its n items.
type header struct {
	message.Parcel
	n int
}

// A span is a number of consecutive messages that are done completely.
type span struct{ first, n uint64 }

// errOrder means that a stream has a gap: the broker has lost messages.
var errOrder = errors.New("crawl: messages out of order")

// errState means that the stored state of a partition cannot be read.
var errState = errors.New("crawl: state of fetch: corrupt")

// add adds the next message. It returns the places of the items to do, counted through all parcels:
// none if the message is ignored.
func (w *window) add(seq uint64, m *message.Message) (places []int, err error) {
	// The stream has deleted the missing messages, or the broker has lost them: they cannot be
	// done.
	if len(w.slots) == 0 && seq > w.low+1 {
		maps.DeleteFunc(w.before, func(old uint64, _ []uint64) bool { return old < seq })
		w.low = seq - 1
	}
	for w.low+uint64(len(w.slots))+1 < seq {
		delete(w.before, w.low+uint64(len(w.slots))+1)
		w.slots = append(w.slots, slot{})
	}
	if seq != w.low+uint64(len(w.slots))+1 {
		return nil, fmt.Errorf("%w: %d behind %d", errOrder, seq, w.low+uint64(len(w.slots)))
	}
	var s slot
	var taken []int
	for _, p := range m.Parcels {
		n := len(p.Items)
		p.Items = nil
		s.msg = append(s.msg, header{p, n})
		for i := w.head.Take(p, n); i < n; i++ {
			taken = append(taken, s.n+i)
		}
		s.n += n
	}
	if !w.ran(seq) { // if it ran, its items do not matter
		kept := w.before[seq]
		s.done = make([]uint64, (s.n+63)/64)
		for i := range s.done {
			s.done[i] = math.MaxUint64
		}
		for _, i := range taken {
			if i/64 >= len(kept) || kept[i/64]>>(i%64)&1 == 0 {
				s.done[i/64] &^= 1 << (i % 64)
				places = append(places, i)
			}
		}
		w.open += len(places)
	}
	if s.left = len(places); s.left == 0 {
		s.done = nil
	}
	delete(w.before, seq)
	w.slots = append(w.slots, s)
	return places, nil
}

// rereading reports whether previous owners have done items of messages that are still to be read.
// Reading them only shrinks the stored state.
func (w *window) rereading() bool {
	return len(w.before) > 0 || len(w.runs) > 0 && w.runs[len(w.runs)-1].n > 0
}

// ran reports whether previous owners have done a message completely. It must be called for one
// message after the other.
func (w *window) ran(seq uint64) bool {
	for len(w.runs) > 0 {
		r := &w.runs[0]
		if seq < r.first {
			return false
		}
		if seq-r.first < r.n {
			r.first, r.n = seq+1, r.n-(seq+1-r.first)
			return true
		}
		w.runs = w.runs[1:]
	}
	return false
}

// finish marks an item as done.
func (w *window) finish(seq uint64, place int) {
	if seq <= w.low || seq > w.low+uint64(len(w.slots)) {
		return
	}
	s := &w.slots[seq-w.low-1]
	if bit := uint64(1) << (place % 64); s.left > 0 && s.done[place/64]&bit == 0 {
		s.done[place/64] |= bit
		s.left--
		w.open--
	}
	if s.left == 0 {
		s.done = nil
	}
}

// slide moves low past the messages that are done, and reports whether it moved.
func (w *window) slide() bool {
	n := 0
	for n < len(w.slots) && w.slots[n].left == 0 {
		for _, h := range w.slots[n].msg {
			w.marks.Take(h.Parcel, h.n)
		}
		n++
	}
	w.low += uint64(n)
	w.slots = w.slots[n:]
	return n > 0
}

// For a message, appendDone writes the distance from the previous one, the number of words that
// follow, and in these the bits of its items. Instead of the number of words, allDone introduces a
// count of consecutive messages that are done completely. A host with long delays can hold low back
// for days, while there are millions of those.
const allDone = 0

// appendDone appends which items after low are done.
func (w *window) appendDone(dst []byte) []byte {
	last := w.low
	for i := 0; i < len(w.slots); i++ {
		s := &w.slots[i]
		seq := w.low + uint64(i) + 1
		switch {
		case s.left == 0:
			run := 1
			for i+1 < len(w.slots) && w.slots[i+1].left == 0 {
				run, i = run+1, i+1
			}
			dst = binary.AppendUvarint(dst, seq-last)
			dst = append(dst, allDone)
			dst = binary.AppendUvarint(dst, uint64(run))
			last = seq + uint64(run) - 1
		case s.left < s.n:
			dst = appendBits(dst, seq-last, s.done)
			last = seq
		}
	}
	// Messages that this owner has not read yet. The distance may wrap around, and back.
	for seq, done := range w.before {
		dst = appendBits(dst, seq-last, done)
		last = seq
	}
	for _, r := range w.runs {
		if r.n == 0 {
			continue // the whole span was read
		}
		dst = binary.AppendUvarint(dst, r.first-last)
		dst = append(dst, allDone)
		dst = binary.AppendUvarint(dst, r.n)
		last = r.first + r.n - 1
	}
	return dst
}

func appendBits(dst []byte, distance uint64, done []uint64) []byte {
	dst = binary.AppendUvarint(dst, distance)
	dst = binary.AppendUvarint(dst, uint64(len(done)))
	for _, word := range done {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	return dst
}

// restore restores a stored window.
func (w *window) restore(low uint64, marks message.Marks, done []byte) error {
	*w = window{low: low, marks: marks, head: marks.Clone(), before: map[uint64][]uint64{}}
	failed := false
	number := func() uint64 {
		v, n := binary.Uvarint(done)
		if n <= 0 {
			failed, done = true, nil
			return 0
		}
		done = done[n:]
		return v
	}
	for last := low; len(done) > 0; {
		first, words := last+number(), number()
		if words == allDone {
			r := span{first, number()}
			if last = first + r.n - 1; failed || r.n == 0 || last < first {
				return errState
			}
			w.runs = append(w.runs, r)
			continue
		}
		if failed || words > uint64(len(done))/8 {
			return errState
		}
		set := make([]uint64, words)
		for i := range set {
			set[i], done = binary.LittleEndian.Uint64(done), done[8:]
		}
		w.before[first] = set
		last = first
	}
	return nil
}
