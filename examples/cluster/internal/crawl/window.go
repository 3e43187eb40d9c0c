package crawl

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// maxWindow bounds the items in the memory of a partition of fetch. Those that are not done are stored
// with its progress at each commit, in at most six bytes each, which stays below the size limit of the
// broker's messages.
const maxWindow = 1 << 16

// maxPlaces is more than the items of any message.
const maxPlaces = 1 << 20

// A window records which items of the messages to a partition of fetch are still to be done. URLs are not
// done in the order in which they arrive, so a single sequence number cannot describe the progress. All
// messages up to high were read, and of these only those with items to do are kept. The URLs themselves
// stay in the stream until they are done, which keeps the state small: a new owner reads them again. A
// window is not safe for concurrent use.
type window struct {
	high  uint64 // the last message that was read, here or by a previous owner
	last  uint64 // the last one that was read here
	open  int    // items to do, of messages that were read here
	slots []slot // the messages that were read here, in order; some may be done

	// Messages with items to do that only previous owners have read, in order.
	before []slot
}

// A slot is one message of a window. The sequences have gaps: partitions share a stream.
type slot struct {
	seq  uint64
	n    int   // items; 0 if this owner has not read it
	open []int // the places of those that are to be done, in order; nil before this owner has read it means all
}

// errOrder means that a message came again, or too late.
var errOrder = errors.New("crawl: messages out of order")

// errState means that the stored state of a partition cannot be read.
var errState = errors.New("crawl: state of fetch: corrupt")

// add adds the next message, of n items. It returns the places of the items to do.
func (w *window) add(seq uint64, n int) (places []int, err error) {
	if seq <= w.last {
		return nil, fmt.Errorf("%w: %d behind %d", errOrder, seq, w.last)
	}
	for len(w.before) > 0 && w.before[0].seq < seq {
		w.before = w.before[1:] // it is gone
	}
	known, reread := slot{}, len(w.before) > 0 && w.before[0].seq == seq
	if reread {
		known, w.before = w.before[0], w.before[1:]
	}
	for place := range n {
		_, open := slices.BinarySearch(known.open, place)
		if open || known.open == nil && (reread || seq > w.high) {
			places = append(places, place)
		}
	}
	if len(places) > 0 {
		w.slots = append(w.slots, slot{seq, n, slices.Clone(places)})
		w.open += len(places)
	}
	w.last, w.high = seq, max(w.high, seq)
	return places, nil
}

// finish marks an item as done.
func (w *window) finish(seq uint64, place int) {
	at, found := slices.BinarySearchFunc(w.slots, seq, func(s slot, seq uint64) int { return cmp.Compare(s.seq, seq) })
	if !found {
		return
	}
	s := &w.slots[at]
	if i, open := slices.BinarySearch(s.open, place); open {
		s.open = slices.Delete(s.open, i, i+1)
		w.open--
	}
}

// appendOpen appends which items are to be done, and returns the message up to which all are done: the
// stream may remove these. The distance of that message to the last one that was read comes first; then,
// for each message with items to do, its distance from the previous one, and the number of the items with
// the distances of their places. Instead of the number, 0 stands for all.
func (w *window) appendOpen(dst []byte) (low uint64, _ []byte) {
	w.slots = slices.DeleteFunc(w.slots, func(s slot) bool { return len(s.open) == 0 })
	low = w.high
	for _, first := range [][]slot{w.before, w.slots} {
		if len(first) > 0 {
			low = first[0].seq - 1
		}
	}
	dst = binary.AppendUvarint(dst, w.high-low)
	last := low
	for _, slots := range [][]slot{w.slots, w.before} {
		for _, s := range slots {
			dst = binary.AppendUvarint(dst, s.seq-last)
			if last = s.seq; len(s.open) == s.n {
				s.open = nil
			}
			dst = binary.AppendUvarint(dst, uint64(len(s.open)))
			before := -1
			for _, place := range s.open {
				dst = binary.AppendUvarint(dst, uint64(place-before))
				before = place
			}
		}
	}
	return low, dst
}

// restore restores a stored window.
func (w *window) restore(low uint64, open []byte) error {
	*w = window{high: low, last: low}
	failed := false
	number := func(least, most uint64) uint64 {
		v, n := binary.Uvarint(open)
		if n <= 0 || v < least || v > most {
			failed, open = true, nil
			return 0
		}
		open = open[n:]
		return v
	}
	if len(open) > 0 {
		w.high += number(0, ^low)
	}
	for last := low; len(open) > 0; {
		s := slot{seq: last + number(1, w.high-last)}
		last = s.seq
		place := -1
		for range number(0, uint64(len(open))) {
			place += int(number(1, maxPlaces))
			s.open = append(s.open, place)
		}
		w.before = append(w.before, s)
	}
	if failed {
		return errState
	}
	return nil
}
