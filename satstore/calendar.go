package satstore

// maxFlat is how many buckets of one width there may be. Beyond, mixed radix takes over: slots that
// are near have buckets of their own, those further away share them, and a shared one is split when
// it comes near. A minute over 400 days so needs 400 buckets and not 576,000.
const (
	maxFlat        = 512
	maxFlatHorizon = 50_000 // where Options.Radix wants it so
)

// A calendar maps slots to buckets that are not due yet.
type calendar struct {
	horizon  int64
	now      int64
	levels   []level // the finest first
	overflow *bucket // from the end of the last level on; nil if it has no records
	create   func(start, width int64) *bucket
}

// A level covers the slots from the end of the level before it, or from now, to its own end. That is
// a multiple of the next level's width, of its own for the last one, so no bucket lies in two levels.
// It only moves on, by one bucket of the next level, which is split then.
type level struct {
	width int64
	keep  int64 // slots ahead that the level covers at least, as far as there are coarser ones
	end   int64
	ring  []*bucket // by number of the bucket, modulo the length; nil if it has no records
}

func newCalendar(o Options, now int64) *calendar {
	c := &calendar{horizon: o.Horizon, now: now}
	// Each level but the last covers at least so many slots as one bucket of the next is wide, or a
	// bucket could come near before the one behind it has been split.
	radix := int64(o.Radix)
	width := int64(1)
	for o.Radix > 1 && o.Horizon/width > max(maxFlat, radix) {
		c.levels = append(c.levels, level{width: width, keep: radix * width})
		width *= radix
	}
	c.levels = append(c.levels, level{width: width, keep: o.Horizon})
	for i := range c.levels {
		l := &c.levels[i]
		// One more for the bucket that is begun, one for the one that ends behind the last slot; and
		// a split moves the end on by all that a coarser bucket is divided into.
		size := l.keep/l.width + 2
		if i+1 < len(c.levels) {
			size += radix
		}
		l.ring = make([]*bucket, size)
	}
	c.reset(now)
	return c
}

// reset places the ends of the levels around now. No bucket may have a record.
func (c *calendar) reset(now int64) {
	c.now = now
	end := c.topEnd()
	for i := len(c.levels) - 1; i >= 0; i-- {
		c.levels[i].end = end
		if i > 0 { // the finer ones end where one of these begins
			end = min(end, ceilTo(now+1+c.levels[i-1].keep, c.levels[i].width))
		}
	}
}

func (c *calendar) top() *level { return &c.levels[len(c.levels)-1] }

func (c *calendar) topEnd() int64 { return ceilTo(c.now+1+c.horizon, c.top().width) }

func ceilTo(a, width int64) int64 { return -floorDiv(-a, width) * width }

// at returns the bucket for a slot later than now, which it makes if need be.
func (c *calendar) at(slot int64) *bucket {
	for i := range c.levels {
		l := &c.levels[i]
		if slot >= l.end {
			continue
		}
		n := floorDiv(slot, l.width)
		b := &l.ring[l.index(n)]
		if *b == nil {
			*b = c.create(n*l.width, l.width)
		}
		return *b
	}
	if c.overflow == nil {
		c.overflow = c.create(c.top().end, 0)
	}
	return c.overflow
}

func (l *level) index(n int64) int {
	// Slots before 1970 are negative, and so is what % makes of them.
	i := int(n % int64(len(l.ring)))
	if i < 0 {
		i += len(l.ring)
	}
	return i
}

// take removes the bucket that begins at a slot from its level, and returns nil if there is none.
func (l *level) take(start int64) *bucket {
	// The place is free from now on, as the ring soon needs it for a slot one turn later.
	b := &l.ring[l.index(floorDiv(start, l.width))]
	taken := *b
	*b = nil
	return taken
}

// advance makes the next slot the current one and returns its bucket, or nil.
func (c *calendar) advance() *bucket {
	c.now++
	return c.levels[0].take(c.now)
}

// next returns the bucket of the next slot, or nil.
func (c *calendar) next() *bucket {
	l := &c.levels[0]
	if c.now+1 >= l.end {
		return nil
	}
	return l.ring[l.index(floorDiv(c.now+1, l.width))]
}

// settle moves the ends of the levels on by one step, if they are due to move, and returns the
// bucket whose records have to find new places. It returns false if nothing is left to do.
func (c *calendar) settle() (split *bucket, more bool) {
	if end := c.topEnd(); c.overflow == nil {
		c.top().end = max(c.top().end, end)
	} else if c.top().end-c.now <= max(c.horizon/2, 1) {
		// Not at each slot, as records that stay beyond are written again each time; but before the
		// end is reached, as the next slot has to be covered.
		split, c.overflow = c.overflow, nil
		c.top().end = end
		return split, true
	}
	// The coarsest first: what it gives to the level below may have to go on from there at once.
	for i := len(c.levels) - 2; i >= 0; i-- {
		l, coarser := &c.levels[i], &c.levels[i+1]
		if l.end-c.now <= l.keep && l.end < coarser.end {
			split = coarser.take(l.end)
			l.end += coarser.width
			return split, true
		}
	}
	return nil, false
}

// all yields each bucket that has records, in the order of their slots.
func (c *calendar) all(yield func(*bucket) bool) {
	start := c.now + 1
	for i := range c.levels {
		l := &c.levels[i]
		for n := floorDiv(start, l.width); n*l.width < l.end; n++ {
			if b := l.ring[l.index(n)]; b != nil && !yield(b) {
				return
			}
		}
		start = l.end
	}
	if c.overflow != nil {
		yield(c.overflow)
	}
}

// put takes a bucket that was read from a checkpoint, and reports whether it has a place.
func (c *calendar) put(b *bucket) bool {
	if b.width == 0 {
		fits := c.overflow == nil && b.start <= c.top().end
		c.overflow = b
		return fits
	}
	start := c.now + 1
	for i := range c.levels {
		l := &c.levels[i]
		if l.width == b.width && b.start >= start && b.start < l.end && b.start%l.width == 0 {
			place := &l.ring[l.index(floorDiv(b.start, l.width))]
			free := *place == nil
			*place = b
			return free
		}
		start = l.end
	}
	return false
}
