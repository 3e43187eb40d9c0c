package satstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// Due returns an iterator over the records that are due up to and including the unit of a time, and
// that were not handed out yet. The oldest unit comes first; within a unit, records come in the
// order of arrival. Records added during the iteration are included if they are due. The iterator
// ends when no record is left, when ctx ends, or at the first error, which it yields with a nil
// record.
//
// Damage does not end it. Due yields a [CorruptError] once for each damaged block, sets the block
// aside and continues with the records after it, or with the next call. Records that are set aside
// stay in the store, and their ids known, until [Repair]; the next Open reports them again. Damaged
// messages are lost.
//
// Return every record with [Record.Reschedule] or [Record.Delete], in any order and from any
// goroutine, even many units later. Records that were not returned are due again after a crash or
// Close. Time does not go back: after a call with a later time, an earlier one still yields what
// is already due. Only one Due can run at a time. It reads a few MiB ahead.
func (s *Store) Due(ctx context.Context, until time.Time) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		// If the other iteration is the caller's own, waiting would never end.
		if !s.walking.TryLock() {
			yield(nil, ErrBusy)
			return
		}
		defer s.walking.Unlock()
		if s.cursor == nil {
			s.cursor = &cursor{s: s, extents: extent.NewReader(s.file, &s.mu, s.aheadOfDue)}
		}
		for {
			c, err := s.cursor.next(ctx, slotOf(until, s.o.Unit))
			switch {
			case err != nil:
				damage := errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrReadOnly)
				if !yield(nil, err) || !damage {
					return
				}
			case c == nil || !c.yieldRecords(yield):
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
	mail    bool   // some of the records may have messages
	end     uint64 // number of the record after the block
	users   int    // records that are out, and the iterator; guarded by Store.mu
}

// release counts users down, and reuses the memory after the last one. It requires that s.mu is
// held.
func (c *chunk) release(users int) {
	if c.users -= users; c.users == 0 {
		c.store.chunks.Put(&chunk{block: block{raw: c.raw}, work: c.work, ids: c.ids})
		c.raw, c.work = nil, nil
	}
}

// yieldRecords yields the records and reports whether to go on.
func (c *chunk) yieldRecords(yield func(*Record, error) bool) bool {
	more, next := true, 0
	defer func() { c.handedOut(next) }() // also if the caller panics
	for more && next < len(c.records) {
		r := &c.records[next]
		// Merge is called here and not when the block is read: it is the caller's code and must not
		// run under a lock, and records that are not handed out need no merging.
		if c.mail {
			for _, m := range c.store.takeMail(r) {
				r.Data = c.store.o.Merge(r.ID, r.Data, m.payload)
			}
		}
		next++
		more = yield(r, nil)
	}
	return more
}

// takeMail returns the messages for a record that is being handed out. Those that arrive later wait
// until it is returned.
func (s *Store) takeMail(r *Record) []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := r.bucket.mail[r.seq].all()
	delete(r.bucket.mail, r.seq)
	s.stats.Merged += int64(len(taken))
	return taken
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
}

// next returns the next chunk that has records, or nil if none is due until a slot.
func (r *cursor) next(ctx context.Context, limit int64) (*chunk, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := r.bucket(limit)
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
func (r *cursor) bucket(limit int64) (*bucket, error) {
	s := r.s
	for {
		s.mu.Lock()
		s.idle()
		err := s.refusal()
		if n := len(s.damage); err == nil && n > 0 {
			err, s.damage = s.damage[0], s.damage[1:]
		}
		var b *bucket
		if i := slices.IndexFunc(s.due, (*bucket).unread); i >= 0 {
			b = s.due[i]
			b.loaded = b.loaded || b.messages.Count() == 0
		}
		ready := b != nil && b.loaded
		if p := s.split; err == nil && p != nil && len(p.into) > 0 {
			b, ready = nil, false // its records are due, but not moved yet
		}
		s.mu.Unlock()
		switch more := true; {
		case err != nil:
			return nil, err
		case ready:
			return b, nil
		case b != nil:
			err = s.loadMail(b)
		default:
			more, err = s.advanceTo(limit)
			if !more && err == nil {
				return nil, nil
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// maxParts bounds the number of buckets over which a bucket with too many messages is spread.
const maxParts = 256

// advanceTo begins the next slot in which something is due, up to a limit. It reports whether the
// caller should look again.
func (s *Store) advanceTo(limit int64) (more bool, err error) {
	err = s.change(wal.MaxSize(0), func() (survives bool, err error) {
		now, spread := s.calendar.Now(), s.split != nil && len(s.split.into) > 0
		if more = now < limit || spread; !more {
			return true, nil
		}
		if n := len(s.due); n+maxParts >= manifest.MaxDue {
			return true, fmt.Errorf("satstore: records of %d past units are out: return some", n)
		}
		to := s.reach(limit)
		parts := s.partsOf(to)
		if to == now || parts > 1 && s.split != nil {
			s.request(&s.splitter)
			s.wait()
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

// partsOf returns the number of buckets over which to spread the bucket of a slot, so that the
// messages of each take at most as much memory as a quarter of the buffers.
func (s *Store) partsOf(slot int64) uint64 {
	b := s.calendar.Peek(slot)
	if b == nil {
		return 1
	}
	return min(uint64(b.mailBytes()/(s.o.Buffer/4))+1, maxParts)
}

// loadMail reads the messages for a bucket that is due. It holds no lock while it reads. Messages
// that are damaged are lost, and the error says so.
func (s *Store) loadMail(b *bucket) error {
	var mail mailbox
	var damage []error
	r := extent.NewReader(s.file, &s.mu, nil)
	for read := uint64(0); ; {
		s.mu.Lock()
		count := b.messages.Count()
		if b.dead || read == count {
			b.mail, b.loaded = mail, true
			s.mu.Unlock()
			return errors.Join(damage...)
		}
		s.mu.Unlock()
		_, err := walkMessages(r, b, read, count, keepDamage(&damage), func(_, seq uint64, m message) bool {
			if !m.delete {
				mail.post(seq, m)
			}
			return true
		})
		if err != nil {
			return err
		}
		read = count
	}
}

// newChunk returns the records of a block that are to be handed out, or nil if there are none.
func (s *Store) newChunk(b *bucket, found extent.Block, r *extent.Reader) (*chunk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return nil, err
	}
	if found.Count == 0 || b.dead {
		b.next = b.records.Count() // the rest is gone
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
		ok = s.keepLive(c)
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
	c.users, c.mail = len(c.records)+1, len(b.mail) > 0
	s.out += int64(len(c.records))
	return c, nil
}

// read sets c.records to the entries that are to be handed out. It returns the first entry that
// cannot be decoded, if there is one.
func (c *chunk) read(found extent.Block) (bad uint64, ok bool) {
	b := c.bucket
	c.records = make([]Record, 0, found.Count)
	d := disk.Decoder{B: c.raw}
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
			at:     uint32(data - disk.UvarintSize(uint64(len(e.data))) - len(e.id)),
			idSize: uint32(len(e.id)), dataSize: uint32(len(e.data)),
		})
	}
	return found.First, true
}

// keepLive removes the records of a chunk that were deleted, according to the bucket index. It
// returns false if the index says that one is in another bucket: it would be handed out twice. This
// can only be damage. The index is much larger than a CPU cache. A loop that does nothing else
// fetches many of its lines at once, and Reschedule then finds them in the cache.
func (s *Store) keepLive(c *chunk) bool {
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
	if deleted > 0 {
		c.records = slices.DeleteFunc(c.records, func(r Record) bool {
			return s.places.get(r.seq) == 0
		})
	}
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
