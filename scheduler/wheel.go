package scheduler

import (
	"math"
	"math/bits"
)

const (
	levelBits   = 6
	slotCount   = 1 << levelBits                   // per level, so that a word has a bit for each
	wheelLevels = (64 + levelBits - 1) / levelBits // enough for every time
)

// A wheel stores entries until they are due. It is a hierarchical timing wheel (Varghese and Lauck
// 1987) with ticks of one nanosecond, so that nothing fires early or late.
//
// The level of an entry is the highest digit, in base 64, in which its due time differs from the
// present. Its slot is the value of that digit. With two digits, and at 3.17:
//
//	due at 3.20, 3.63    level 0, slots 20 and 63
//	due at 4.00, 4.63    level 1, slot 4
//	due at 5.17          level 1, slot 5
//
// So the first slot in use on the lowest level in use has the entries that are due first. When time
// enters a slot, its entries move to lower levels, as those of slot 4 do at 4.00. An entry moves at
// most once per level, so the cost is constant. Entries that are due by then fire immediately.
type wheel struct {
	timers *timers // by the numbers of the entries

	// fire is called with each due entry, after it has left the wheel. It may insert, but not
	// remove: the entry might be in the list that is being iterated.
	fire func(uint32)

	present uint64              // position of a time after which nothing was due
	inUse   uint16              // a bit for each level in use
	used    [wheelLevels]uint64 // a bit for each slot in use
	slots   [wheelLevels][slotCount]slot
}

// A slot is a list in the order of insertion.
type slot struct {
	chain
	min int64 // no entry is due before it; exact unless something was removed
}

// position maps times to numbers in the same order.
func position(t int64) uint64 { return uint64(t) ^ 1<<63 }

// locate returns the level and the slot of a due time, which stay the same until time enters that
// slot.
func (w *wheel) locate(due int64) (level, digit int) {
	p := position(due)
	if diff := p ^ w.present; diff != 0 {
		level = (bits.Len64(diff) - 1) / levelBits
	}
	return level, int(p >> (level * levelBits) % slotCount)
}

// insert requires that entry i is not in the wheel, and that it is not due before the time of the
// last advance.
func (w *wheel) insert(i uint32) {
	due := w.timers.at(i).due
	level, digit := w.locate(due)
	s := &w.slots[level][digit]
	if s.head == 0 {
		s.min = due
		w.used[level] |= 1 << digit
		w.inUse |= 1 << level
	}
	s.min = min(s.min, due)
	s.push(w.timers, i)
}

// remove requires that entry i is in the wheel.
func (w *wheel) remove(i uint32) {
	level, digit := w.locate(w.timers.at(i).due)
	s := &w.slots[level][digit]
	if s.remove(w.timers, i); s.head == 0 {
		w.vacate(level, digit)
	}
}

// vacate empties a slot and returns the first entry of its list.
func (w *wheel) vacate(level, digit int) (head uint32) {
	head = w.slots[level][digit].head
	w.slots[level][digit] = slot{}
	w.used[level] &^= 1 << digit
	if w.used[level] == 0 {
		w.inUse &^= 1 << level
	}
	return head
}

// first returns the slot with the entries that are due first. It requires that the wheel is not
// empty.
func (w *wheel) first() (level, digit int) {
	level = bits.TrailingZeros16(w.inUse)
	return level, bits.TrailingZeros64(w.used[level])
}

// soonest returns the earliest time at which an entry may be due. After a removal it may be too
// early. For an empty wheel it is the largest time.
func (w *wheel) soonest() int64 {
	if w.inUse == 0 {
		return math.MaxInt64
	}
	level, digit := w.first()
	return w.slots[level][digit].min
}

// advance fires all entries that are due at now.
func (w *wheel) advance(now int64) {
	for w.inUse != 0 && w.soonest() <= now {
		level, digit := w.first()
		i := w.vacate(level, digit)
		w.enter(level, digit, now)
		for i != 0 {
			t := *w.timers.at(i) // a copy: fire may reuse the entry
			if t.due <= now {
				w.fire(i)
			} else {
				w.insert(i)
			}
			i = t.next
		}
	}
}

// enter sets the present to now, or to the last moment of the slot if that is earlier: within the
// slot, the positions of entries in other slots do not change.
func (w *wheel) enter(level, digit int, now int64) {
	width := level * levelBits
	slot := w.present>>width&^(slotCount-1) | uint64(digit)
	end := slot<<width | (1<<width - 1)
	w.present = min(end, position(now))
}
