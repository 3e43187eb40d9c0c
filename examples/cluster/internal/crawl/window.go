package crawl

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// A window records which items of its messages a partition of fetch has done. URLs are not done in the
// order in which they arrive, so a single sequence number cannot describe the progress. All messages
// up to low are done, and the stream may remove them; above, there is a bit for each item. The URLs
// themselves stay in the stream until they are done, which keeps the state small. A window is not safe
// for concurrent use.
type window struct {
	low   uint64 // all messages up to this one are done
	slots []slot // the messages after low, in order
	open  int    // items that are not done

	// Items that previous owners have done, of messages that this one has not read yet.
	before map[uint64][]uint64
	runs   []span // in order
}

// A slot is one message of a window. The sequences have gaps: partitions share a stream.
type slot struct {
	seq  uint64
	left int      // items that are not done
	n    int      // items
	done []uint64 // a bit for each; nil once all are done
}

// A span is a range of sequences in which all messages to the partition are done completely.
type span struct{ first, last uint64 }

// errOrder means that a message came again, or too late.
var errOrder = errors.New("crawl: messages out of order")

// errState means that the stored state of a partition cannot be read.
var errState = errors.New("crawl: state of fetch: corrupt")

// add adds the next message, of n items. It returns the places of the items to do.
func (w *window) add(seq uint64, n int) (places []int, err error) {
	last := w.low
	if len(w.slots) > 0 {
		last = w.slots[len(w.slots)-1].seq
	}
	if seq <= last {
		return nil, fmt.Errorf("%w: %d behind %d", errOrder, seq, last)
	}
	s := slot{seq: seq, n: n}
	if !w.ran(seq) { // if it ran, its items do not matter
		s.done = make([]uint64, (n+63)/64)
		copy(s.done, w.before[seq])
		for i := range n {
			if s.done[i/64]>>(i%64)&1 == 0 {
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
func (w *window) rereading() bool { return len(w.before) > 0 || len(w.runs) > 0 }

// ran reports whether previous owners have done a message completely. It must be called for one
// message after the other.
func (w *window) ran(seq uint64) bool {
	for len(w.runs) > 0 && w.runs[0].last < seq {
		w.runs = w.runs[1:]
	}
	if len(w.runs) == 0 || seq < w.runs[0].first {
		return false
	}
	if w.runs[0].first = seq + 1; seq == w.runs[0].last {
		w.runs = w.runs[1:]
	}
	return true
}

// finish marks an item as done.
func (w *window) finish(seq uint64, place int) {
	at, found := slices.BinarySearchFunc(w.slots, seq, func(s slot, seq uint64) int { return cmp.Compare(s.seq, seq) })
	if !found {
		return
	}
	s := &w.slots[at]
	if bit := uint64(1) << (place % 64); s.left > 0 && s.done[place/64]&bit == 0 {
		s.done[place/64] |= bit
		s.left--
		w.open--
	}
	if s.left == 0 {
		s.done = nil
	}
}

// slide moves low past the messages that are done.
func (w *window) slide() {
	for len(w.slots) > 0 && w.slots[0].left == 0 {
		w.low, w.slots = w.slots[0].seq, w.slots[1:]
	}
}

// For a message, appendDone writes the distance from the previous one, the number of words that
// follow, and in these the bits of its items. Instead of the number of words, allDone introduces the
// length of a span. A host with long delays can hold low back for days, while there are millions of
// messages that are done.
const allDone = 0

// appendDone appends which items after low are done.
func (w *window) appendDone(dst []byte) []byte {
	last := w.low
	for i := 0; i < len(w.slots); i++ {
		s := &w.slots[i]
		switch {
		case s.left == 0:
			for i+1 < len(w.slots) && w.slots[i+1].left == 0 {
				i++
			}
			dst = appendSpan(dst, s.seq-last, w.slots[i].seq-s.seq)
			last = w.slots[i].seq
		case s.left < s.n:
			dst = appendBits(dst, s.seq-last, s.done)
			last = s.seq
		}
	}
	// Messages that this owner has not read yet. The distance may wrap around, and back.
	for seq, done := range w.before {
		dst = appendBits(dst, seq-last, done)
		last = seq
	}
	for _, r := range w.runs {
		dst = appendSpan(dst, r.first-last, r.last-r.first)
		last = r.last
	}
	return dst
}

func appendSpan(dst []byte, distance, length uint64) []byte {
	dst = binary.AppendUvarint(dst, distance)
	dst = append(dst, allDone)
	return binary.AppendUvarint(dst, length)
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
func (w *window) restore(low uint64, done []byte) error {
	*w = window{low: low, before: map[uint64][]uint64{}}
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
			if last = first + number(); failed || last < first {
				return errState
			}
			w.runs = append(w.runs, span{first, last})
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
