package satstore

import (
	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// A state is what the log changes: where each record and each message is. Its methods are what
// the changes do, whether they are new or repeated from the log: from one state, the same changes
// lead to the same state, down to the number of each entry in its bucket. None of them can fail.
//
// Store.mu guards it.
type state struct {
	pool     *extent.Pool
	file     *extent.File
	calendar *calendar.Calendar[bucket]
	due      []*bucket // of slots up to now, the oldest first
	split    *split    // under way, or nil
	places   places
	numbers  []*bucket // by bucket.number; the first one stands for none
	spare    []uint16  // numbers that are not in use
	bucketID uint64    // of the next bucket
	seq      uint64    // of the next record
	records  int64
	scratch  []byte // for one entry
}

// newBucket makes a bucket and numbers it.
func (s *state) newBucket(start, width int64) *bucket {
	b := &bucket{id: s.bucketID, start: start, width: width}
	s.bucketID++
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
func (s *state) kill(b *bucket) {
	b.records.Clear(s.pool, s.file.Release)
	b.messages.Clear(s.pool, s.file.Release)
	s.numbers[b.number] = nil
	s.spare = append(s.spare, b.number)
	b.done, b.mail, b.dead = nil, nil, true
}

// current returns the bucket that a record which is due at once goes to.
func (s *state) current() *bucket {
	if n := len(s.due); n > 0 && s.due[n-1].start == s.calendar.Now() {
		return s.due[n-1]
	}
	b := s.newBucket(s.calendar.Now(), 1)
	s.due = append(s.due, b)
	return b
}

// place puts a record into the bucket of its slot.
func (s *state) place(e entry) {
	b := (*bucket)(nil)
	if e.slot <= s.calendar.Now() {
		b = s.current()
	} else {
		b = s.calendar.At(min(e.slot, calendar.MaxSlot+1))
	}
	s.placeIn(b, e)
}

func (s *state) placeIn(b *bucket, e entry) {
	s.scratch = b.place(s.pool, e, s.scratch)
	s.places.set(e.seq, b.number)
}

// add makes a new record.
func (s *state) add(slot int64, id, data []byte) {
	s.place(entry{s.seq, slot, id, data})
	s.seq++
	s.records++
}

// move takes a record from a bucket that is due to the bucket of a later slot.
func (s *state) move(b *bucket, record uint64, e entry) {
	e.slot = max(e.slot, s.calendar.Now()+1)
	s.place(e)
	s.leave(b, record)
}

// drop takes a record out of the store.
func (s *state) drop(b *bucket, record, seq uint64) {
	s.places.set(seq, 0)
	s.records--
	s.leave(b, record)
}

// leave marks that a record is no longer in a bucket that is due.
func (s *state) leave(b *bucket, record uint64) {
	// The current slot's bucket stays, empty or not: what is added for at once goes there. A
	// passed one goes with its last record, at the same change in a replay.
	b.setDone(record)
	if b.left() == 0 && b.start < s.calendar.Now() {
		s.kill(b)
		for i, other := range s.due {
			if other == b {
				s.due = append(s.due[:i], s.due[i+1:]...)
				break
			}
		}
	}
}

// deliver puts a message where the record is. One for a record that is gone is dropped.
func (s *state) deliver(seq uint64, m message) {
	b := s.numbers[s.places.get(seq)]
	if b == nil {
		return
	}
	if s.split.leadsTo(b) {
		// Older messages for the record may be in the bucket that is being split, and have to come
		// first.
		b = s.split.bucket
	}
	s.deliverTo(b, seq, m)
}

func (s *state) deliverTo(b *bucket, seq uint64, m message) {
	encoded := appendMessage(nil, seq, m)
	s.scratch = b.messages.Append(s.pool, len(encoded), s.scratch, func(dst []byte) []byte {
		return append(dst, encoded...)
	})
	if b.loaded {
		m.payload = append([]byte(nil), m.payload...)
		b.mail.post(seq, m)
	}
}

// advance begins a later slot. Its bucket is spread over several if parts says so.
func (s *state) advance(slot int64, parts uint64) {
	b := s.calendar.Advance(slot)
	kept := s.due[:0]
	for _, old := range s.due {
		if old.left() == 0 {
			s.kill(old)
		} else {
			kept = append(kept, old)
		}
	}
	s.due = kept
	switch {
	case b == nil:
	case parts > 1:
		s.split = &split{bucket: b}
		for range parts {
			into := s.newBucket(slot, 1)
			s.due, s.split.into = append(s.due, into), append(s.split.into, into)
		}
	default:
		s.due = append(s.due, b)
	}
	s.settle()
}

// settle begins the next split, if there is one to be made.
func (s *state) settle() {
	if s.split == nil {
		if b := s.calendar.Split(); b != nil {
			s.split = &split{bucket: b}
		}
	}
}

// A split is a bucket whose records have to find new places: one that has come near, and goes to
// the finer buckets of the calendar, or one with so many messages that they do not fit into
// memory, which is spread over several buckets of the same slot. Records move first, in their
// order, then messages: the bucket index knows by then where each one has to go. It takes many
// steps, each of which is a change of its own, and other changes come between them.
type split struct {
	bucket    *bucket
	into      []*bucket // if it is spread
	moved     uint64    // records
	forwarded uint64    // messages
}

// leadsTo reports whether records move to a bucket.
func (p *split) leadsTo(b *bucket) bool {
	return p != nil && b != p.bucket && b.start >= p.bucket.start &&
		b.start < p.bucket.start+p.bucket.width
}

// before returns the first slot that must not begin before the split is done.
func (p *split) before() int64 {
	if len(p.into) > 0 {
		return p.bucket.start + 1
	}
	return p.bucket.start
}

// A batch is some entries of the bucket that is being split, either records or messages.
type batch struct {
	records  []entry
	messages []sealed
}

// A sealed message is one with its address.
type sealed struct {
	seq uint64
	message
}

// read returns up to so many of the next entries, from the block that has the first of them. There
// are none if nothing is left.
func (p *split) read(r *extent.Reader, most uint64) (next batch, err error) {
	b := p.bucket
	if p.moved < b.records.Count() {
		err = eachRecord(r, b, p.moved, func(at uint64, e entry) bool {
			next.records = append(next.records, e)
			most--
			return most > 0
		})
	} else if p.forwarded < b.messages.Count() {
		err = eachMessage(r, b, p.forwarded, func(at, seq uint64, m message) bool {
			next.messages = append(next.messages, sealed{seq, m})
			most--
			return most > 0
		})
	}
	return next, err
}

// step moves entries, and ends the split after the last one.
func (s *state) step(next batch) {
	p := s.split
	for _, e := range next.records {
		if len(p.into) > 0 {
			s.placeIn(p.into[e.seq%uint64(len(p.into))], e)
		} else {
			s.place(e)
		}
	}
	for _, m := range next.messages {
		if b := s.numbers[s.places.get(m.seq)]; b != nil {
			s.deliverTo(b, m.seq, m.message)
		}
	}
	p.moved += uint64(len(next.records))
	p.forwarded += uint64(len(next.messages))
	if p.moved == p.bucket.records.Count() && p.forwarded == p.bucket.messages.Count() {
		s.kill(p.bucket)
		s.split = nil
		s.settle()
	}
}
