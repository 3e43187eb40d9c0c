// Package calendar maps slots, which number units of time, to buckets.
//
// It is a hierarchical timing wheel. Near slots have a bucket each. Slots further away share
// buckets: one of the second level covers 64 slots, one of each further level 256 times as many. A
// few hundred buckets cover all of time. A shared bucket is split when it comes near: the caller
// moves its content to buckets of the level below.
package calendar

// MaxSlot bounds slots, on both sides of 0.
const MaxSlot = 1 << 44

// A Shape says how many slots share a bucket: 1, 1<<First, then 1<<More times as many with each
// level.
type Shape struct{ First, More uint8 }

// Default is the shape for hours and minutes: 64 to 128 slots of their own, then 256 to 512
// buckets of 64 slots each, which are two years of hours.
var Default = Shape{6, 8}

// A Calendar maps slots later than now to buckets. It is not safe for concurrent use.
type Calendar[B any] struct {
	now    int64
	levels []level[B] // the finest first
	create func(start, width int64) *B
}

// A level covers the slots from the end of the level before it, or from now, to its own end. The
// end is a multiple of the next level's width, so no bucket lies in two levels. It advances by one
// bucket of the next level at a time, which is then split.
type level[B any] struct {
	shift uint8 // a bucket has 1<<shift slots
	end   int64
	ring  []*B // by number of the bucket, modulo the length; nil if there is no bucket
	used  int  // buckets in ring
}

// New returns an empty calendar. It calls create for each bucket it needs, with the first slot and
// the number of slots.
func New[B any](shape Shape, now int64, create func(start, width int64) *B) *Calendar[B] {
	c := &Calendar[B]{now: now, create: create}
	for shift, more := uint8(0), shape.First; ; shift, more = shift+more, shape.More {
		// A level has from one to two times as many slots as one bucket of the next level. That is
		// how much time there is for a split.
		size := 4 << more
		last := shift+more > 45
		if last {
			size = int(max(4, int64(4*MaxSlot)>>shift))
		}
		c.levels = append(c.levels, level[B]{shift, 2 * MaxSlot, make([]*B, size), 0})
		if last {
			break
		}
	}
	for i := len(c.levels) - 2; i >= 0; i-- {
		c.levels[i].end = c.target(i)
	}
	return c
}

// Now returns the current slot.
func (c *Calendar[B]) Now() int64 { return c.now }

func (l *level[B]) width() int64 { return 1 << l.shift }

func (l *level[B]) place(slot int64) **B {
	return &l.ring[slot>>l.shift&int64(len(l.ring)-1)]
}

// take removes and returns the bucket of a slot, or returns nil.
func (l *level[B]) take(slot int64) *B {
	b := l.place(slot)
	taken := *b
	if *b = nil; taken != nil {
		l.used--
	}
	return taken
}

// target returns where a level should end: one bucket of the next level ahead at least.
func (c *Calendar[B]) target(level int) int64 {
	coarser := &c.levels[level+1]
	return min(ceilTo(c.now+1+coarser.width(), coarser.width()), coarser.end)
}

func ceilTo(a, width int64) int64 { return (a + width - 1) &^ (width - 1) }

// At returns the bucket of a slot later than now and up to MaxSlot+1.
func (c *Calendar[B]) At(slot int64) *B {
	i := 0
	for slot >= c.levels[i].end {
		i++
	}
	l := &c.levels[i]
	b := l.place(slot)
	if *b == nil {
		*b = c.create(slot&^(l.width()-1), l.width())
		l.used++
	}
	return *b
}

// Peek returns the bucket of a slot after now, if it has one of its own, or nil.
func (c *Calendar[B]) Peek(slot int64) *B {
	if l := &c.levels[0]; slot > c.now && slot < l.end {
		return *l.place(slot)
	}
	return nil
}

// Next returns how far Advance may go: to the next slot that has a bucket of its own, or towards
// limit if there is none. It returns now if a bucket has to be split first.
func (c *Calendar[B]) Next(limit int64) int64 {
	reach := int64(MaxSlot) // without a bucket, time may skip whole levels
	c.All(func(_ *B, next int64) bool {
		if reach = next; c.levels[0].used == 0 {
			reach = max(c.levels[0].end-1, next-c.levels[1].width()) // there is time for the split
		}
		return false
	})
	return max(c.now, min(reach, limit))
}

// Advance makes a slot that Next returned the current one. It returns its bucket, or nil. The
// caller must call Split next.
func (c *Calendar[B]) Advance(to int64) *B {
	c.now = to
	var due *B
	if to < c.levels[0].end {
		due = c.levels[0].take(to)
	}
	// Levels that were skipped have no bucket. The coarsest come first, since none may end before
	// the one below it.
	for i := len(c.levels) - 2; i >= 0; i-- {
		l := &c.levels[i]
		l.end = max(l.end, ceilTo(to+1, c.levels[i+1].width()))
	}
	return due
}

// Split advances the levels and returns a bucket whose content must move, or nil. The caller calls
// Split again once all of it has moved.
func (c *Calendar[B]) Split() *B {
	// The coarsest come first: content that moves one level down may have to move on from there.
	for i := len(c.levels) - 2; i >= 0; i-- {
		l, coarser := &c.levels[i], &c.levels[i+1]
		for target := c.target(i); l.end < target; {
			if coarser.used == 0 {
				l.end = target
				break
			}
			b := coarser.take(l.end)
			if l.end += coarser.width(); b != nil {
				return b
			}
		}
	}
	return nil
}

// All yields each bucket with its first slot, in the order of these.
func (c *Calendar[B]) All(yield func(b *B, start int64) bool) {
	start := c.now + 1
	for i := range c.levels {
		l, left := &c.levels[i], c.levels[i].used
		for slot := start &^ (l.width() - 1); left > 0 && slot < l.end; slot += l.width() {
			if b := *l.place(slot); b != nil {
				if left--; !yield(b, slot) {
					return
				}
			}
		}
		start = l.end
	}
}

// Ends returns where the levels end, for a checkpoint. They depend on which splits were made.
func (c *Calendar[B]) Ends() (ends []int64) {
	for i := range c.levels[1:] {
		ends = append(ends, c.levels[i].end)
	}
	return ends
}

// SetEnds restores what Ends returned, in an empty calendar with the same current slot. It reports
// whether the ends are possible.
func (c *Calendar[B]) SetEnds(ends []int64) bool {
	fits := len(ends) == len(c.levels)-1
	for i := len(ends) - 1; fits && i >= 0; i-- {
		end, coarser := ends[i], &c.levels[i+1]
		fits = end > c.now && end <= c.target(i) && end%coarser.width() == 0
		c.levels[i].end = end
	}
	return fits
}

// Put restores a bucket. It reports whether the calendar can contain it.
func (c *Calendar[B]) Put(b *B, start, width int64) bool {
	from := c.now + 1
	for i := range c.levels {
		l := &c.levels[i]
		if l.width() == width && start >= from && start < l.end && start%width == 0 {
			place := l.place(start)
			free := *place == nil
			*place = b
			l.used++
			return free
		}
		from = l.end
	}
	return false
}

// Take removes the bucket that begins at a slot after now, whose content will move to new buckets.
func (c *Calendar[B]) Take(start int64) {
	i := 0
	for start >= c.levels[i].end {
		i++
	}
	c.levels[i].take(start)
}

// Fits reports whether a bucket that is being split can have come from the calendar.
func (c *Calendar[B]) Fits(start, width int64) bool {
	for i := range c.levels {
		if l := &c.levels[i]; l.width() == width {
			return start > c.now && start%width == 0 && start < l.end
		}
	}
	return false
}
