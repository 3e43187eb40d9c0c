package satstore

import "github.com/spinneret-go/spinneret/satstore/internal/disk"

// maxDue is how many buckets of passed slots there are before those that follow move together. Only
// a bucket that no record has left takes others in: one that came back would meet its messages
// there again, which are merged already. So there are more, up to maxHeld, while somebody holds
// records of so many slots.
const (
	maxDue  = 64
	maxHeld = 8192
)

// newBucket makes a bucket and numbers it.
func (s *Store) newBucket(start, width int64) *bucket {
	b := &bucket{id: s.nextBucket, start: start, width: width}
	s.nextBucket++
	// Numbers have 16 bits, as there is one for each record in memory; ids of buckets have 64 and
	// are never used again, so that a block on disk cannot be taken for one of a later bucket.
	if n := len(s.spare); n > 0 {
		b.number, s.spare = s.spare[n-1], s.spare[:n-1]
		s.numbers[b.number] = b
	} else {
		b.number = uint16(len(s.numbers))
		s.numbers = append(s.numbers, b)
	}
	return b
}

// kill gives up a bucket whose records are all elsewhere.
func (s *Store) kill(b *bucket) {
	// Released, and not free: until the next checkpoint a crash goes back to a bucket that needs
	// its extents.
	for _, p := range []*part{&b.records, &b.messages} {
		for _, e := range p.extents {
			s.space.release(e.span())
		}
		p.buffer.clear(s.pool)
		*p = part{} // a flush that has some of it finds the bucket dead
	}
	s.numbers[b.number] = nil
	s.spare = append(s.spare, b.number)
	b.done, b.table, b.dead = nil, nil, true
}

// current returns the bucket that a record which is due at once goes to.
func (s *Store) current() *bucket {
	if n := len(s.due); n > 0 && (s.due[n-1].start == s.calendar.now || s.gathers()) {
		return s.due[n-1]
	}
	b := s.newBucket(s.calendar.now, 1)
	s.due = append(s.due, b)
	return b
}

// gathers reports whether the newest bucket that is due takes what is due after it. A walk would
// otherwise go through a bucket for each slot that a crawl was down, of which a year has thousands.
// It depends on nothing but the changes so far, as a replay has to come to the same.
func (s *Store) gathers() bool {
	n := len(s.due)
	return n >= maxDue && s.due[n-1].gone == 0
}

// target returns the bucket for a slot.
func (s *Store) target(slot int64) *bucket {
	if slot <= s.calendar.now {
		return s.current()
	}
	return s.calendar.at(min(slot, maxSlot))
}

// place appends a record to a bucket.
func (s *Store) place(b *bucket, e entry) {
	indexed := s.o.indexed()
	size := b.entrySize(e, indexed)
	s.fitPage(b, &b.records, size)
	// Nearly all entries can be made where they stay: that saves a copy of each.
	if room := b.records.buffer.extend(s.pool, size); room != nil {
		b.appendEntry(room, e, indexed)
	} else {
		s.scratch = b.appendEntry(s.scratch[:0], e, indexed)
		b.records.buffer.append(s.pool, s.scratch)
	}
	if indexed {
		s.places.set(e.seq, b.number)
	}
}

// deliver appends a message to the bucket that holds the record. One for a record that is gone is
// dropped.
func (s *Store) deliver(seq uint64, m message) {
	// A place of 0 stands for a record that is gone, and numbers[0] is nil.
	b := s.numbers[s.places.get(seq)]
	if b == nil {
		return
	}
	s.scratch = appendMessage(s.scratch[:0], seq, m)
	s.fitPage(b, &b.messages, len(s.scratch))
	b.messages.buffer.append(s.pool, s.scratch)
	// A record of a later pass will have all its messages read then, this one among them.
	if b.loaded && b.passOf(seq) <= b.pass {
		b.post(seq, message{m.kind, append([]byte(nil), m.payload...)})
	}
}

// leave marks that a record is no longer in a bucket that is due.
func (s *Store) leave(b *bucket, record uint64) {
	// The current slot's bucket stays, empty or not: what is added for at once goes there. A passed
	// one goes with its last record, at the same change in a replay.
	b.setDone(record)
	if b.left() == 0 && b.start < s.calendar.now {
		s.kill(b)
		s.forgetDue(b)
	}
}

func (s *Store) forgetDue(b *bucket) {
	for i, other := range s.due {
		if other == b {
			s.due = append(s.due[:i], s.due[i+1:]...)
			return
		}
	}
}

// move takes a record from a bucket that is due to the bucket of its next slot.
func (s *Store) move(b *bucket, record uint64, e entry) {
	e.slot = max(e.slot, s.calendar.now+1)
	s.place(s.target(e.slot), e)
	s.leave(b, record)
}

// drop takes a record out of the store.
func (s *Store) drop(b *bucket, record, seq uint64) {
	if s.o.indexed() {
		s.places.set(seq, 0)
	}
	s.records--
	s.leave(b, record)
}

// advance begins the next slot. A replay does exactly the same.
func (s *Store) advance() {
	b := s.calendar.advance()
	for i := 0; i < len(s.due); {
		if old := s.due[i]; old.left() == 0 {
			s.kill(old)
			s.forgetDue(old)
		} else {
			i++
		}
	}
	if b == nil {
		return
	}
	if s.gathers() {
		s.split = &split{bucket: b, together: true}
		return
	}
	s.due = append(s.due, b)
}

// A split is a bucket whose records have to find new places: a coarse one that has come near, or
// one that is due while too many others still are.
type split struct {
	bucket    *bucket
	together  bool   // they all go to the bucket that is current
	moved     uint64 // records
	forwarded uint64 // messages
}

// settle finishes the split that is under way, and all that are due. It requires all locks but
// dueMu, and may write a checkpoint in between.
func (s *Store) settle() error {
	for {
		if s.split != nil {
			if err := s.doSplit(); err != nil {
				return err
			}
		}
		b, more := s.calendar.settle()
		if !more {
			return nil
		}
		if b != nil {
			s.split = &split{bucket: b}
		}
	}
}

// doSplit moves records in their order, then messages after them: the bucket index knows by then
// where each one has to go. So it needs no memory, and a replay leads to the same places.
func (s *Store) doSplit() error {
	p := s.split
	c := cursor{s: s, bucket: p.bucket, async: true}
	defer c.close()
	for p.moved < p.bucket.records.count() {
		found, err := c.next(&p.bucket.records, p.moved)
		if err != nil {
			return err
		}
		if err := s.splitBlock(p, found); err != nil {
			return err
		}
	}
	for p.forwarded < p.bucket.messages.count() {
		found, err := c.next(&p.bucket.messages, p.forwarded)
		if err != nil {
			return err
		}
		if err := s.forwardBlock(p, found); err != nil {
			return err
		}
	}
	s.kill(p.bucket)
	s.split = nil
	return nil
}

func (s *Store) splitBlock(p *split, found block) error {
	d := disk.Decoder{B: found.raw}
	for i := range uint64(found.count) {
		e := p.bucket.takeEntry(&d, s.o.indexed())
		if d.Bad {
			return s.badEntry(p.bucket, &p.bucket.records, found.first+i)
		}
		// They moved before an error, or before a checkpoint in the midst of this split.
		if found.first+i < p.moved {
			continue
		}
		if s.wantsRelief() {
			if err := s.relieve(); err != nil {
				return err
			}
		}
		to := s.target(e.slot)
		if p.together {
			to = s.current()
		}
		if to.passes > 1 { // it is being read, and the pass for this one may be over
			to.expect(e.seq)
		}
		s.place(to, e)
		p.moved++
		s.stats.Split++
	}
	return nil
}

func (s *Store) forwardBlock(p *split, found block) error {
	d := disk.Decoder{B: found.raw}
	for i := range uint64(found.count) {
		seq, m := takeMessage(&d)
		if d.Bad {
			return s.badEntry(p.bucket, &p.bucket.messages, found.first+i)
		}
		if found.first+i < p.forwarded {
			continue
		}
		if s.wantsRelief() {
			if err := s.relieve(); err != nil {
				return err
			}
		}
		s.deliver(seq, m)
		p.forwarded++
	}
	return nil
}
