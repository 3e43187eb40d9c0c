package satstore

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// A state is what changes modify: the place of each record and each message. New changes and a
// replay call the same methods. The same changes produce the same state, including the number of
// each entry in its bucket. None of the methods can fail.
//
// Store.mu guards it.
type state struct {
	pool       *extent.Pool
	file       *extent.File
	calendar   *calendar.Calendar[bucket]
	due        []*bucket // for slots up to now, the oldest first
	split      *split    // in progress, or nil
	aside      []*bucket // that have records in blocks which a split could not read
	places     places
	numbers    []*bucket // by bucket.number; number 0 is not used
	byID       map[uint64]*bucket
	spare      []uint16 // numbers that are not in use
	generation uint32   // of the next checkpoint
	bucketID   uint64   // of the next bucket
	seq        uint64   // of the next record
	records    int64
	waiting    int64         // bytes of messages in memory
	mailed     atomic.Uint64 // counts messages for records in buckets that are due
	damage     []error       // found by splits and with messages, for Due to report
	scratch    []byte        // for one entry
}

// newBucket makes a bucket with an id and a number.
func (s *state) newBucket(start, width int64) *bucket {
	b := &bucket{id: s.bucketID, start: start, width: width}
	s.bucketID++
	// Numbers have 16 bits, because the bucket index has one per record, and are reused. Ids have
	// 64 bits and are not reused, so an old block on disk is never mistaken for one of a later
	// bucket.
	if n := len(s.spare); n > 0 {
		b.number, s.spare = s.spare[n-1], s.spare[:n-1]
		s.numbers[b.number] = b
	} else {
		b.number = uint16(len(s.numbers))
		s.numbers = append(s.numbers, b)
	}
	s.byID[b.id] = b
	return b
}

// dropBucket frees a bucket whose records have all moved or gone. Entries of the bucket index may
// keep its number after a crash, but only for records whose ids are unknown. Nobody looks them up.
func (s *state) dropBucket(b *bucket) {
	s.emptyBucket(b)
	s.spare = append(s.spare, b.number)
}

// bucketOf returns the bucket of a record, or nil if the record is gone.
func (s *state) bucketOf(seq uint64) *bucket { return s.numbers[s.places.get(seq)] }

func (s *state) emptyBucket(b *bucket) {
	s.waiting -= b.mail.size()
	b.records.Clear(s.pool, s.file.Release)
	b.messages.Clear(s.pool, s.file.Release)
	s.numbers[b.number] = nil
	delete(s.byID, b.id)
	b.mail, b.dead = nil, true // a caller may return a record a second time, so done stays
}

// currentBucket returns the bucket for records that are due now.
func (s *state) currentBucket() *bucket {
	// While the bucket of this slot is being spread, new records come after all of its own.
	if n := len(s.due); n > 0 && s.due[n-1].start == s.calendar.Now() &&
		(s.split == nil || !slices.Contains(s.split.into, s.due[n-1])) {
		return s.due[n-1]
	}
	b := s.newBucket(s.calendar.Now(), 1)
	s.due = append(s.due, b)
	return b
}

// place appends a record to the bucket of its slot.
func (s *state) place(e entry) { s.placeIn(s.bucketFor(e.slot), e) }

// bucketFor returns the bucket for new records of a slot.
func (s *state) bucketFor(slot int64) *bucket {
	if slot <= s.calendar.Now() {
		return s.currentBucket()
	}
	return s.calendar.At(min(slot, calendar.MaxSlot+1))
}

func (s *state) placeIn(b *bucket, e entry) {
	s.scratch = b.place(s.pool, e, s.scratch)
	if e.seq == noRecord {
		b.holes = true
	} else {
		s.places.set(e.seq, b.number)
	}
}

// add adds a new record.
func (s *state) add(slot int64, id, data []byte) {
	s.place(entry{s.seq, slot, id, data})
	s.seq++
	s.records++
}

// move moves a record from a bucket that is due to the bucket of a later slot.
func (s *state) move(b *bucket, record uint64, e entry) {
	e.slot = max(e.slot, s.calendar.Now()+1)
	s.place(e)
	s.markGone(b, record)
}

// drop removes a record from a bucket that is due.
func (s *state) drop(b *bucket, record, seq uint64) {
	s.places.set(seq, 0)
	s.records--
	s.markGone(b, record)
}

// remove removes a record, wherever it is. Its entry stays until its bucket is read, perhaps for a
// year. Until then the bucket index says that the record is gone, and the message says so to
// recovery and to readers of a view.
func (s *state) remove(seq uint64) {
	b := s.bucketOf(seq)
	if b == nil {
		return
	}
	s.addMessageTo(b, seq, message{delete: true})
	s.places.set(seq, 0)
	s.records--
	b.gone++
	if i := slices.Index(s.aside, b); i >= 0 {
		if b.left() == 0 {
			s.dropBucket(b)
			s.aside = slices.Delete(s.aside, i, i+1)
		}
		return
	}
	s.dropIfPast(b)
	s.dropMail(b, seq, len(b.mail[seq]))
	if s.split == nil && b.start > s.calendar.Now() && b.wasteful() {
		s.rewrite(b)
	}
}

// isAside reports whether a bucket has only records that a split could not read.
func (s *state) isAside(b *bucket) bool { return slices.Contains(s.aside, b) }

// minGone is how many deleted records a bucket may have without being rewritten.
const minGone = 256

// wasteful reports whether most records of a bucket were deleted. Unless it is rewritten then, a record
// that is deleted and added again takes space each time.
func (b *bucket) wasteful() bool { return b.gone > minGone && b.gone > b.left() }

// rewrite begins to move the records of a bucket of the calendar to a new one.
func (s *state) rewrite(b *bucket) {
	s.calendar.Take(b.start)
	s.split = &split{bucket: b}
}

// markGone records that a record is no longer in a bucket that is due.
func (s *state) markGone(b *bucket, record uint64) {
	b.setDone(record)
	b.gone++
	s.dropIfPast(b)
}

// dropIfPast drops a bucket of a past slot with its last record, at the same change in a replay.
// The bucket of the current slot stays even if it is empty, for records that are due now.
func (s *state) dropIfPast(b *bucket) {
	if b.left() > 0 || b.start > s.calendar.Now() || s.split.leadsTo(b) { // more may come
		return
	}
	i, last := slices.Index(s.due, b), len(s.due)-1
	if i >= 0 && (i < last || b.start < s.calendar.Now()) { // it is not being spread
		s.dropBucket(b)
		s.due = slices.Delete(s.due, i, i+1)
	}
}

// advance begins a later slot. If parts is more than 1, its bucket is spread over that many.
func (s *state) advance(slot int64, parts uint64) {
	b := s.calendar.Advance(slot)
	kept := s.due[:0]
	for _, old := range s.due {
		if old.left() == 0 {
			s.dropBucket(old)
		} else {
			kept = append(kept, old)
		}
	}
	s.due = kept
	switch {
	case b == nil:
	default:
		s.due = append(s.due, b)
		if parts > 1 {
			s.spread(b, parts)
		}
	}
	s.startNextSplit()
}

// spread begins to spread a bucket that is due, none of whose records was handed out, over others that
// take its place: several if it has many messages, or one if it is wasteful.
func (s *state) spread(b *bucket, parts uint64) {
	s.split = &split{bucket: b}
	for range parts {
		s.split.into = append(s.split.into, s.newBucket(b.start, 1))
	}
	at := slices.Index(s.due, b)
	s.due = slices.Replace(s.due, at, at+1, s.split.into...)
}

// startNextSplit begins the next split if one is due. Buckets that became wasteful during the last one
// come after those that have come near.
func (s *state) startNextSplit() {
	if s.split != nil {
		return
	}
	if b := s.calendar.Split(); b != nil {
		s.split = &split{bucket: b}
		return
	}
	for b := range s.calendar.All {
		if b.wasteful() {
			s.rewrite(b)
			return
		}
	}
}

// A split moves the records of a bucket to other ones. Either the bucket has come near, and its
// records go to finer buckets of the calendar; or most of them were deleted, and the others go to
// a new bucket like it; or its messages do not fit in memory, and it is spread over several buckets
// of the same slot. Records move first, in order. Messages follow, as
// the bucket index then knows where each record is. A split takes many steps. Each is a separate
// change, with other changes between them.
//
// A split skips what it cannot read. Then its bucket is set aside at the end, with the records that it
// could not move: their ids and their space stay in use. Only Delete ends them, or Repair, which reads
// them once more. Damaged messages are lost.
type split struct {
	bucket    *bucket
	into      []*bucket // over which it is spread; empty for a split to finer buckets
	moved     uint64    // records that have moved, or were skipped
	forwarded uint64    // messages that have moved
}

// leadsTo reports whether records may move to a bucket.
func (p *split) leadsTo(b *bucket) bool {
	if p != nil && len(p.into) > 0 {
		return slices.Contains(p.into, b)
	}
	return p != nil && b != p.bucket && b.start >= p.bucket.start &&
		b.start < p.bucket.start+p.bucket.width
}

// hasMoved reports whether a record of a bucket is no longer there, although its entry is.
func (s *state) hasMoved(b *bucket, record uint64) bool {
	if s.split != nil && s.split.bucket == b && b.done == nil {
		return record < s.split.moved
	}
	return b.isDone(record)
}

// before returns the first slot that must not begin until the split is done.
func (p *split) before() int64 {
	if len(p.into) > 0 {
		return p.bucket.start + 1
	}
	return p.bucket.start
}

// A batch is some entries of the bucket being split: either records or messages.
type batch struct {
	records  []entry
	messages []sealed
}

// A sealed message has the number of its record.
type sealed struct {
	seq uint64
	message
}

// A phase of a split says what moves next.
type phase int

const (
	movesRecords phase = iota
	movesMessages
	movesNothing // all have moved
)

// phase must be called with the lock of the state: messages arrive during a split, and the flusher
// moves entries to the disk.
func (p *split) phase() phase {
	switch {
	case p.moved < p.bucket.records.Count():
		return movesRecords
	case p.forwarded < p.bucket.messages.Count():
		return movesMessages
	}
	return movesNothing
}

// left returns how many entries are left to move in this phase.
func (p *split) left() uint64 {
	if p.phase() == movesRecords {
		return p.bucket.records.Count() - p.moved
	}
	return p.bucket.messages.Count() - p.forwarded
}

// read returns the next entries of a phase, all from one block and not more than most. If those
// cannot be read, it returns an error, and how many they are if that is known. Only the goroutine
// that moves entries may call it.
func (p *split) read(
	r *extent.Reader, what phase, most uint64,
) (next batch, lost uint64, err error) {
	var got walked
	switch to := uint64(math.MaxUint64); what {
	case movesRecords:
		r.Open(&p.bucket.records, p.bucket.id, extent.Records)
		got, err = walkBlock(r, p.moved, to, p.bucket.takeRecords(p.moved, func(_ uint64, e entry) bool {
			next.records = append(next.records, e)
			return uint64(len(next.records)) < most
		}))
	case movesMessages:
		r.Open(&p.bucket.messages, p.bucket.id, extent.Messages)
		got, err = walkBlock(r, p.forwarded, to, takeMessages(p.forwarded, func(_, seq uint64, m message) bool {
			next.messages = append(next.messages, sealed{seq, m})
			return uint64(len(next.messages)) < most
		}))
	}
	if len(next.records)+len(next.messages) > 0 {
		return next, 0, nil // those before an invalid entry come first
	}
	return next, got.lost, err
}

// moveEntries moves a batch, and ends the split after the last one.
func (s *state) moveEntries(next batch) {
	p := s.split
	for i, e := range next.records {
		if p.bucket.done != nil {
			p.bucket.setDone(p.moved + uint64(i))
		}
		if s.places.get(e.seq) == 0 && e.seq != noRecord {
			continue // it was deleted
		}
		p.bucket.gone++
		if n := uint64(len(p.into)); n > 0 { // each gets a range, so that the order of arrival stays
			s.placeIn(p.into[(p.moved+uint64(i))*n/p.bucket.records.Count()], e)
		} else {
			s.place(e)
		}
	}
	for _, m := range next.messages {
		if b := s.bucketOf(m.seq); b != nil && b != p.bucket { // it was not deleted, and was read
			s.addMessageTo(b, m.seq, m.message)
		}
	}
	p.moved += uint64(len(next.records))
	p.forwarded += uint64(len(next.messages))
	s.endSplit()
}

// skipEntries gives up damaged entries that a split should move next. It keeps their damage for
// Due.
func (s *state) skipEntries(n uint64, damage error) {
	p := s.split
	if p.phase() == movesRecords {
		p.bucket.markDone(p.moved)
		p.moved += n
	} else {
		p.forwarded += n
	}
	s.keepDamage(damage)
	s.endSplit()
}

// keepDamage keeps damage for Due, up to a limit.
func (s *state) keepDamage(found ...error) {
	room := max(0, maxFindings-len(s.damage))
	s.damage = append(s.damage, found[:min(room, len(found))]...)
}

// endSplit drops the bucket of a split that has nothing left to move, and begins the next split.
func (s *state) endSplit() {
	p := s.split
	if p.phase() != movesNothing {
		return
	}
	if p.bucket.left() > 0 {
		p.bucket.markDone(p.moved)
		s.aside = append(s.aside, p.bucket)
	} else {
		s.dropBucket(p.bucket)
	}
	s.split = nil
	for _, b := range p.into {
		s.dropIfPast(b)
	}
	s.startNextSplit()
}
