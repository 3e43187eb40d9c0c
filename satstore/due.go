package satstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// Due returns an iterator over the records that are due up to and including the unit of a time, and
// that were not handed out yet. The oldest unit comes first. Within a unit, records come in the
// order of arrival, except that those that arrive while the store moves earlier ones from a coarse
// bucket to finer ones, or out of a bucket with many deleted ones, may come before them. Records
// added during the iteration are included if they are due. The iterator ends when no record is left,
// when ctx ends, or at the first error, which it yields with a nil record.
//
// Damage does not end it. Due yields a [CorruptError] once for each damaged block, sets the block
// aside and continues with the records after it, or with the next call. Records that are set aside
// stay in the store, and their ids known, until Delete or [Repair]; the next Open reports them again. That
// includes those in damaged blocks that the store has to move before they are due. Damaged messages are
// lost; those that the disk cannot read only if it could not for a minute.
//
// Return every record with [Record.Reschedule] or [Record.Delete], in any order and from any goroutine,
// even many units later. Until its last record is returned, a unit takes a bit for each record that it
// had, in memory and in checkpoints. Records that were not returned are due again after a crash or
// Close. Time does not go back: after a call with a later time, an earlier one still yields what is
// already due. Only one Due can run at a time: another one is [ErrBusy], and so is the next unit while
// records of 49,744 past units are out. Due reads a few MiB ahead.
func (s *Store) Due(ctx context.Context, until time.Time) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		// If the other iteration is the caller's own, waiting would never end.
		if !s.walking.TryLock() {
			yield(nil, fmt.Errorf("%w: another one is running", ErrBusy))
			return
		}
		defer s.walking.Unlock()
		if s.cursor == nil {
			s.cursor = &cursor{s: s, from: math.MinInt64, extents: extent.NewReader(s.file, &s.mu, s.aheadOfDue)}
		}
		for {
			c, err := s.cursor.next(ctx, slotOf(until, s.o.Unit))
			switch {
			case err != nil:
				damage := errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrReadOnly)
				if !yield(nil, err) || !damage {
					return
				}
			case c == nil || !c.yieldRecords(ctx, yield):
				return
			}
		}
	}
}

// aheadOfDue returns the extents to read after the bucket that is due. Without it, each slot would
// begin by waiting for the disk. It requires that s.mu is held.
func (s *Store) aheadOfDue() []extent.Extent {
	if next := s.calendar.Peek(s.calendar.Now() + 1); next != nil {
		return next.records.Extents()
	}
	return nil
}

// A chunk is a block in memory with those of its records that are due.
type chunk struct {
	block
	work    []byte // a copy for callers to write into
	ids     []byte // memory for setIDs
	records []Record
	end     uint64 // number of the record after the block
	users   int    // records that are out, and the iterator; guarded by Store.mu
	mailed  uint64 // of the store when the block was read
	marked  bool   // some of the records were deleted by then, or had messages
}

// release counts users down, and reuses the memory after the last one. It requires that s.mu is
// held.
func (c *chunk) release(users int) {
	if c.users -= users; c.users == 0 {
		c.store.chunks.Put(&chunk{block: block{raw: c.raw}, work: c.work, ids: c.ids})
		c.raw, c.work = nil, nil
	}
}

// yieldRecords yields the records until ctx ends, and reports whether to go on.
func (c *chunk) yieldRecords(ctx context.Context, yield func(*Record, error) bool) bool {
	more, next := true, 0
	defer func() { c.handedOut(next) }() // also if the caller panics
	for more && next < len(c.records) && ctx.Err() == nil {
		r := &c.records[next]
		// Merge is called here and not when the block is read: it is the caller's code and must not
		// run under a lock, and records that are not handed out need no merging.
		var mail []message
		live := true
		if c.marked || c.mailed != c.store.mailed.Load() { // without messages, there is no need to look for them
			mail, live = c.store.takeMail(r, 0)
		}
		for _, m := range mail {
			r.Data = c.store.o.Merge(r.ID, r.Data, m.payload)
		}
		if len(mail) > 0 { // not before: Merge may panic
			_, live = c.store.takeMail(r, len(mail))
		}
		if next++; live {
			more = yield(r, nil)
		}
	}
	return more
}

// takeMail drops the messages that were merged into a record that is being handed out, and returns
// those that are there now. They wait until the record is returned if some were merged. It returns
// false if Store.Delete has removed the record since its block was read.
func (s *Store) takeMail(r *Record, merged int) (mail []message, live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places.get(r.seq) == 0 {
		r.bucket.setDone(r.record) // so that its space is freed
		r.markReturned()
		return nil, false
	}
	s.dropMail(r.bucket, r.seq, merged)
	return r.bucket.mail[r.seq], true
}

// handedOut records that the first n records are out and the others are not.
func (c *chunk) handedOut(n int) {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	// The next Due reads the others again. The bucket keeps their messages until they have moved.
	c.bucket.next = c.end
	if rest := len(c.records) - n; rest > 0 {
		c.bucket.next = c.records[n].record
		s.out -= int64(rest)
		c.users -= rest
	}
	c.release(1)
}

// A cursor goes through the buckets that are due. It holds no lock while it reads the disk, so
// buckets may disappear or become due during a read: each step looks again. Its read-ahead is kept
// from one Due to the next.
type cursor struct {
	s       *Store
	extents *extent.Reader
	from    int64 // slot before which all buckets are read
}

// next returns the next chunk that has records, or nil if none is due until a slot.
func (r *cursor) next(ctx context.Context, limit int64) (*chunk, error) {
	for {
		b, err := r.bucket(ctx, limit)
		if b == nil || err != nil {
			return nil, err
		}
		r.extents.Open(&b.records, b.id, extent.Records)
		found, err := r.extents.Next(b.next)
		if err != nil {
			if errors.Is(err, ErrCorrupt) {
				r.s.setAside(b, found)
			}
			return nil, err
		}
		c, err := r.s.newChunk(b, found, r.extents)
		if c != nil || err != nil {
			return c, err
		}
	}
}

// setAside continues after a block that cannot be read.
func (s *Store) setAside(b *bucket, lost extent.Block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.next = max(b.next, lost.First+uint64(lost.Count))
}

// bucket returns the bucket to read from, with its messages loaded, or nil if there is none.
func (r *cursor) bucket(ctx context.Context, limit int64) (*bucket, error) {
	s := r.s
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.idle()
		err := s.refusal()
		if n := len(s.damage); err == nil && n > 0 {
			err, s.damage = s.damage[0], s.damage[1:]
		}
		var b *bucket
		parts := uint64(1)
		spread := s.split != nil && len(s.split.into) > 0
		if b = r.unread(spread); b != nil {
			b.loaded = b.loaded || b.messages.Count() == 0
			parts = s.partsOfDue(b)
		}
		ready := b != nil && b.loaded
		if err == nil && spread {
			b, ready = nil, false // its records are due, but not moved yet
		}
		s.mu.Unlock()
		switch more := true; {
		case err != nil:
			return nil, err
		case ready:
			return b, nil
		case b != nil && parts > 1:
			err = s.spreadDue(ctx, b)
		case b != nil:
			err = s.readAgain(ctx, func(last bool) error { return s.loadMail(b, last) })
		default:
			more, err = s.advanceTo(ctx, limit)
			if !more && err == nil && !spread { // a spread may have ended since
				return nil, nil
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// unread returns the first bucket that is due and has records to read, or nil. There may be thousands
// before it whose records are out, so it begins where it found the last one: those are in order, and
// nothing is added to them. It requires that Store.mu is held.
func (r *cursor) unread(spread bool) *bucket {
	due, at := r.s.due, r.s.calendar.Now()
	first := sort.Search(len(due), func(i int) bool { return due[i].start >= r.from })
	var found *bucket
	if i := slices.IndexFunc(due[first:], (*bucket).unread); i >= 0 {
		found = due[first+i]
		at = found.start
	}
	if !spread { // which moves records to buckets that were empty
		r.from = at
	}
	return found
}

// maxParts bounds the number of buckets over which a bucket with too many messages is spread.
const maxParts = 256

// wakeAtEnd ends waits when ctx ends, until stop is called.
func (s *Store) wakeAtEnd(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		s.mu.Lock() // so that it does not come between the look at ctx and the wait
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
}

// awaitSplit waits for progress of a split, or for the end of ctx. It requires that s.mu is held, and
// releases it to wait.
func (s *Store) awaitSplit(ctx context.Context) {
	s.request(&s.splitter)
	if ctx.Err() == nil {
		s.wait()
	}
}

// partsOfDue returns the number of buckets over which to spread a bucket that is due, as messages have
// arrived since its slot began. It tolerates half of the buffers, since some parts of a spread get more
// than others. None of its records may have been handed out, as those must keep their positions.
func (s *Store) partsOfDue(b *bucket) uint64 {
	if b.loaded || b.mailBytes() <= s.o.Buffer/2 || !s.spreadable(b) {
		return 1
	}
	return min(s.partsOf(b), b.records.Count())
}

// spreadable reports whether a bucket that is due may be spread, once there is no other split.
func (s *Store) spreadable(b *bucket) bool {
	return b.next == 0 && len(b.done) == 0 && len(s.due)+maxParts < manifest.MaxDue
}

// spreadDue begins to spread a bucket that is due, or waits until it can.
func (s *Store) spreadDue(ctx context.Context, b *bucket) error {
	defer s.wakeAtEnd(ctx)()
	return s.change(wal.MaxSize(0), func() (survives bool, err error) {
		parts := s.partsOfDue(b)
		switch {
		case b.dead || parts < 2:
			return true, nil
		case s.split != nil:
			s.awaitSplit(ctx)
			return true, nil
		}
		return s.spreadOver(b, parts)
	})
}

// spreadOver begins to spread a bucket that is due. It requires that there is no other split.
func (s *Store) spreadOver(b *bucket, parts uint64) (survives bool, err error) {
	survives, err = s.logChange(&wal.Change{Kind: wal.Spread, Bucket: b.id, Count: parts})
	if err == nil {
		s.spread(b, parts)
	}
	return survives, err
}

// advanceTo begins the next slot in which something is due, up to a limit. It reports whether the
// caller should look again.
func (s *Store) advanceTo(ctx context.Context, limit int64) (more bool, err error) {
	defer s.wakeAtEnd(ctx)()
	err = s.change(wal.MaxSize(0), func() (survives bool, err error) {
		now, spread := s.calendar.Now(), s.split != nil && len(s.split.into) > 0
		if more = now < limit || spread; !more {
			return true, nil
		}
		if n := len(s.due); n+maxParts >= manifest.MaxDue {
			return true, fmt.Errorf("%w: records of %d past units are out: return some", ErrBusy, n)
		}
		to := s.reach(limit)
		parts := s.partsOf(s.calendar.Peek(to))
		if to == now || parts > 1 && s.split != nil {
			s.awaitSplit(ctx)
			return true, nil
		}
		// The log says only that a slot began, since a replay makes the same moves.
		survives, err = s.logChange(&wal.Change{Kind: wal.Advance, Slot: to, Count: parts})
		if err == nil {
			s.advance(to, parts)
		}
		return survives, err
	})
	return more, err
}

// reach returns how far time may advance towards a slot.
func (s *state) reach(slot int64) int64 {
	if s.split != nil {
		slot = min(slot, s.split.before()-1)
	}
	return s.calendar.Next(slot)
}

// partsOf returns the number of buckets over which to spread a bucket that may be nil, so that the
// messages of each take at most as much memory as a quarter of the buffers.
func (s *Store) partsOf(b *bucket) uint64 {
	if b == nil {
		return 1
	}
	return min(uint64(b.mailBytes()/(s.o.Buffer/4))+1, maxParts)
}

// newChunk returns the records of a block that are to be handed out, or nil if there are none.
func (s *Store) newChunk(b *bucket, found extent.Block, r *extent.Reader) (*chunk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return nil, err
	}
	if found.Count == 0 || b.dead {
		b.next = max(b.next, found.First) // the rest was gone at the time of the read
		return nil, nil
	}
	// Callers may write into their records, and the log needs to know what they changed. So there
	// are two copies of the block.
	c, _ := s.chunks.Get().(*chunk)
	if c == nil {
		c = &chunk{}
	}
	c.store, c.bucket, c.chunk, c.end = s, b, c, found.First+uint64(found.Count)
	c.raw, c.work = append(c.raw[:0], found.Raw...), append(c.work[:0], found.Raw...)
	bad, ok := c.read(found)
	if ok {
		ok = s.placed(c)
	}
	if !ok || len(c.records) == 0 {
		b.next = c.end
	}
	if !ok {
		return nil, r.Misfit(bad)
	}
	if len(c.records) == 0 {
		return nil, nil
	}
	c.setIDs()
	c.users = len(c.records) + 1
	s.out += int64(len(c.records))
	return c, nil
}

// read sets c.records to the entries that are to be handed out. It returns the first entry that
// cannot be decoded, if there is one.
func (c *chunk) read(found extent.Block) (bad uint64, ok bool) {
	b := c.bucket
	c.records = make([]Record, 0, found.Count)
	d := durable.Decoder{B: c.raw}
	for record := found.First; record < c.end; record++ {
		e := b.takeEntry(&d)
		if d.Bad {
			return record, false
		}
		if record < b.next || b.isDone(record) {
			continue
		}
		end := len(c.raw) - len(d.B)
		data := end - len(e.data)
		c.records = append(c.records, Record{
			Data: c.work[data:end:end], block: &c.block, record: record, seq: e.seq,
			at:     uint32(data - durable.UvarintSize(uint64(len(e.data))) - len(e.id)),
			idSize: uint32(len(e.id)), dataSize: uint32(len(e.data)),
		})
	}
	return found.First, true
}

// placed reports whether the bucket index says that each record of a chunk is here or deleted. If
// one were in another bucket, it would be handed out twice. That can only be damage. The index is
// much larger than a CPU cache. A loop that does nothing else fetches many of its lines at once, and
// the calls that follow then find them in the cache.
func (s *Store) placed(c *chunk) bool {
	deleted, strays := 0, 0
	for i := range c.records {
		switch s.places.get(c.records[i].seq) {
		case c.bucket.number:
		case 0:
			deleted++
		default:
			strays++
		}
	}
	c.marked, c.mailed = deleted > 0 || len(c.bucket.mail) > 0, s.mailed.Load()
	return strays == 0
}

// setIDs makes the ids of all records in one allocation.
func (c *chunk) setIDs() {
	c.ids = c.ids[:0]
	for i := range c.records {
		c.ids = append(c.ids, c.records[i].id()...)
	}
	ids := string(c.ids)
	for i := range c.records {
		r := &c.records[i]
		r.ID, ids = ids[:r.idSize], ids[r.idSize:]
	}
}
