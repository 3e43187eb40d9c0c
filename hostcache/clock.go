package hostcache

import (
	"bytes"
	"math"
	"time"
)

// A meta is what the cache keeps of an entry beside its value: five bytes for the millisecond since
// the epoch at which it expires, and one of flags.
type meta []byte

const (
	metaSize = 6

	never   = 1<<40 - 1 // the last millisecond, after 34 years
	forever = math.MaxInt64

	creditMask   = 7 // passes of the hand that the entry survives
	worthShift   = 3 // what it was at first; a use makes it one more than that
	maxWorth     = 4
	negativeFlag = 1 << 6
)

// metaOf takes the meta from the end of the bytes of an entry.
func metaOf(b []byte) meta { return b[len(b)-metaSize:] }

// set writes all of it.
func (m meta) set(expires uint64, worth byte, negative bool) {
	le.PutUint32(m, uint32(expires))
	m[4] = byte(expires >> 32)
	m[5] = worth<<worthShift | worth
	if negative {
		m[5] |= negativeFlag
	}
}

func (m meta) expires() uint64        { return uint64(le.Uint32(m)) | uint64(m[4])<<32 }
func (m meta) negative() bool         { return m[5]&negativeFlag != 0 }
func (m meta) expired(at uint64) bool { return m.expires() != never && m.expires() <= at }

func (m meta) credit() byte      { return m[5] & creditMask }
func (m meta) worth() byte       { return m[5] >> worthShift & creditMask }
func (m meta) use()              { m.setCredit(m.worth() + 1) }
func (m meta) setCredit(to byte) { m[5] = m[5]&^creditMask | to }

// worthOf returns how many passes of the hand an entry survives without being used: more of them
// the longer it took to get.
func worthOf(took time.Duration) byte {
	worth := byte(1)
	for limit := 10 * time.Millisecond; worth < maxWorth && took >= limit; limit *= 10 {
		worth++
	}
	return worth
}

// now returns the milliseconds since the epoch, rounded down.
func (c *Cache[V]) now() uint64 { return uint64(time.Since(c.epoch) / time.Millisecond) }

// deadline returns when something expires that lives that long from now, rounded up.
func (c *Cache[V]) deadline(ttl time.Duration) uint64 {
	since := time.Since(c.epoch)
	if ttl > math.MaxInt64-since-time.Millisecond {
		return never
	}
	return min(uint64((since+ttl+time.Millisecond-1)/time.Millisecond), never)
}

// A hand goes round the entries of a tree in the order of the keys, a bucket at a time. It is the
// hand of a clock (Corbató 1969) whose entries carry a credit instead of one bit: each pass takes
// one off, a use restores it, and what has none left when it has to make room is evicted. So what
// is used stays, what was dear to get stays longer, and what is new stays for a round. No list links
// the entries: the place of the hand is a key. That the order is that of the keys does no harm, as
// all entries wait a full round between two passes.
//
// Each pass pays for one unit of credit, and each unit was paid for by a write or a use; so
// eviction takes constant time, amortised.
type hand struct {
	from  []byte // the first key of the leaf that it is at
	place int    // in that leaf: the part of the hashes that it has passed, of allHashes
	skip  int    // records of the bucket behind that, which it has passed too
	walk  walk
	start []byte // scratch

	now   uint64
	need  int      // bytes to be freed
	left  int      // buckets to be passed
	drops []byte   // keys that are to be dropped, one behind the other
	ends  []uint32 // of those
}

// allHashes is the number of buckets in the biggest leaf. As buckets share the hashes evenly, a
// place keeps its meaning when a leaf is rewritten with more or fewer buckets.
const allHashes = 2 << maxLevel

// stride is how many buckets a hand passes at a time, since the way to the first of them is longer
// than that from one to the next.
const stride = 8

// step passes over some buckets, or fewer if it comes to the end, from where it goes back to the
// beginning: nothing is passed twice before it is dropped. If there are bytes to be freed, it stops
// when it has found as many. It leaves in drops what has expired, and of what has no credit left as
// much as is needed.
func (h *hand) step(t *tree, now uint64, need int) {
	h.drops, h.ends, h.now, h.need = h.drops[:0], h.ends[:0], now, need
	for h.left = stride; h.left > 0; h.left-- {
		if !h.walk.to(t, nil, h.from, h) {
			h.goTo(nil)
			return
		}
		begun := len(h.from) > 0 || h.place > 0 || h.skip > 0
		if !begun || need > 0 && h.need <= 0 {
			return
		}
	}
}

func (h *hand) goTo(from []byte) {
	h.from, h.place, h.skip = append(h.from[:0], from...), 0, 0
}

func (h *hand) atLeaf(w *walk, l leaf, from []byte) bool {
	h.start = w.start(h.start[:0])
	if bytes.Compare(h.from, h.start) < 0 {
		h.goTo(h.start)
	}
	share := allHashes >> (l.level + 1)
	for h.place < allHashes {
		bucket := (h.place + share - 1) / share
		if bucket < l.buckets() {
			begin, end := l.bound(bucket), l.bound(bucket+1)
			if stopped := h.over(w, l, begin, end, from); stopped {
				return true
			}
			h.place = (bucket + 1) * share
			if h.left -= b2i(begin < end); h.left <= 0 {
				return true
			}
		} else {
			h.place = allHashes
		}
	}
	if stopped := h.over(w, l, l.tailBegin(), l.end(), from); !stopped {
		h.leave(w)
	}
	return true
}

// over passes over the records in a part of a leaf, except for those whose keys are before from:
// when leaves have been joined meanwhile, a part of the new one has been passed. It reports whether
// it has stopped before the end.
func (h *hand) over(w *walk, l leaf, rec, end int, from []byte) (stopped bool) {
	enough := h.need <= 0
	for kept := 0; rec < end; rec += l.recSize(rec) {
		key := w.tree.key(l, rec)
		switch {
		case kept < h.skip || bytes.Compare(key, from) < 0:
			kept++
		case !enough && h.need <= 0:
			h.skip = kept
			return true
		case !h.visit(w.path, key, l.value(rec)):
			kept++
		}
	}
	h.skip = 0
	return false
}

func (h *hand) atEnd(w *walk, value []byte) bool {
	h.visit(w.path, nil, value)
	w.ended = true
	h.leave(w)
	return true
}

// leave goes on to what comes after the leaf or value at which the walk is.
func (h *hand) leave(w *walk) {
	h.from, _ = w.next(h.from[:0]) // at the end it is empty, which is the beginning
	h.place, h.skip = 0, 0
}

// visit passes over an entry, and reports whether it is to be dropped.
func (h *hand) visit(path, rest, value []byte) (drop bool) {
	m := metaOf(value)
	credit, evict := m.credit(), h.need > 0
	if m.expired(h.now) || evict && credit == 0 {
		h.need -= len(rest) + len(value)
		h.drops = append(append(h.drops, path...), rest...)
		h.ends = append(h.ends, uint32(len(h.drops)))
		return true
	}
	if evict {
		m.setCredit(credit - 1)
	}
	return false
}

// sweep is called for each write. It has one hand look for what has expired, in one bucket for each
// write, and another one make room, as long as the shard is over its budget. If one hand did both,
// it would pass over entries for either reason that it spares for the other one. It requires that
// s.mu is held.
func (s *shard[V]) sweep(now uint64) {
	if s.writes++; s.writes%stride == 0 {
		s.pass(&s.broom, now, 0)
	}
	for excess := s.excess(); excess > 0 && s.tree.count > 0; excess = s.excess() {
		s.pass(&s.clock, now, excess)
	}
}

// excess returns how many bytes the shard is over its budget. It requires that s.mu is held.
func (s *shard[V]) excess() int {
	if s.budget < 0 {
		return 0
	}
	return s.bytes() - s.budget
}

// pass moves a hand on. It requires that s.mu is held.
func (s *shard[V]) pass(h *hand, now uint64, need int) {
	h.step(&s.tree, now, need)
	begin := uint32(0)
	for _, end := range h.ends {
		key := h.drops[begin:end]
		begin = end
		b := s.tree.get(key)
		if metaOf(b).expired(now) {
			s.counts.Expired++
		} else {
			s.counts.Evicted++
		}
		s.drop(key, b)
	}
}
