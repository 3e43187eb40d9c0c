package satstore

import (
	"context"
	"iter"
	"slices"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// Due returns an iterator over the records that are due: those of the current slot and of slots
// before it that were not handed out yet, the oldest slot first. Within a slot they come in the
// order in which they were put there. What is added meanwhile for at once comes too. The walk ends
// when nothing is left for now, when ctx ends, whose error it then yields, or at the first error,
// which is yielded once with a nil record.
//
// Each record has to be given back: [Record.Reschedule] or [Record.Delete], in any order, by any
// goroutine, also slots later. After a crash, records that were not are due again. Only one Due can
// run at a time; it reads ahead in goroutines, some MiB and at its end those of the next slot.
func (s *Store) Due(ctx context.Context) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		// Waiting instead would be forever if the other walk is the caller's own.
		if !s.dueMu.TryLock() {
			yield(nil, ErrBusy)
			return
		}
		defer s.dueMu.Unlock()
		if s.reader == nil {
			s.reader = &reader{s: s, c: cursor{s: s, lock: &s.mu, async: true}}
		}
		for {
			c, err := s.reader.next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if c == nil || !c.hand(yield) {
				return
			}
		}
	}
}

// A chunk is a block that was read, with the records in it that are due.
type chunk struct {
	store   *Store
	bucket  *bucket
	raw     []byte // as it was read, for the diff that is logged
	work    []byte // a copy, for callers to write into
	records []Record
	mail    map[int][]message // by index of the record
	end     uint64            // the record after the block
	users   int               // records that are out, and the reader; guarded by Store.mu
}

// let says that some users have gone, and reuses the memory after the last one. It requires that
// s.mu is held.
func (c *chunk) let(users int) {
	if c.users -= users; c.users == 0 {
		c.store.chunks.Put(&chunk{raw: c.raw, work: c.work})
		c.raw, c.work = nil, nil
	}
}

// hand yields the records of a chunk and reports whether to go on.
func (c *chunk) hand(yield func(*Record, error) bool) bool {
	more, next := true, 0
	defer func() { c.handed(next) }() // also if the caller panics
	for more && next < len(c.records) {
		r := &c.records[next]
		// Here and not when the block was read: Merge is the caller's, who must not find us holding
		// a lock, and a record that is not handed out after all needs no merging.
		for _, m := range c.mail[next] {
			r.Data = c.store.o.Merge(r.ID, r.Data, m.payload)
		}
		next++
		more = yield(r, nil)
	}
	return more
}

// handed notes that the first n records of a chunk are out and the others are not.
func (c *chunk) handed(n int) {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	// Those that were not handed out are read again by the next walk. Their messages are, too: the
	// bucket's table keeps them until the record has moved.
	c.bucket.next = c.end
	if rest := len(c.records) - n; rest > 0 {
		c.bucket.next = c.records[n].record
		s.out -= int64(rest)
		c.users -= rest
	}
	c.let(1)
}

// A reader goes through the buckets that are due. It holds no lock while it reads the disk, so each
// step asks anew what is there: buckets may have been given up, or new ones be due, meanwhile.
// Between one Due and the next it keeps what it has read ahead.
type reader struct {
	s *Store
	c cursor
}

// next returns the next chunk that has records, or nil if there is none for now.
func (r *reader) next(ctx context.Context) (*chunk, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := r.bucket()
		if b == nil || err != nil {
			return nil, err
		}
		if b != r.c.bucket {
			r.c.bucket, r.c.extent = b, extent{}
		}
		if r.c.raw == nil {
			r.c.raw, r.c.spare = r.s.memory()
		}
		found, err := r.c.next(&b.records, b.next)
		if err != nil {
			return nil, err
		}
		c, err := r.s.fill(b, found, r.c.spare)
		if err != nil {
			return nil, err
		}
		if c != nil {
			r.c.raw, r.c.spare = nil, nil // they are the chunk's now
			return c, nil
		}
	}
}

// memory returns room for a block and a copy of it.
func (s *Store) memory() (raw, work []byte) {
	if c, ok := s.chunks.Get().(*chunk); ok {
		return c.raw, c.work
	}
	return make([]byte, 0, blockSize+4096), make([]byte, 0, blockSize+4096)
}

// bucket returns the bucket to read from, with its messages loaded, or nil if there is none.
func (r *reader) bucket() (*bucket, error) {
	s := r.s
	for {
		s.mu.Lock()
		err := s.refusal()
		unsettled := s.split != nil
		var b *bucket
		if i := slices.IndexFunc(s.due, (*bucket).unread); i >= 0 {
			b = s.due[i]
		}
		ready := b == nil || b.loaded && b.next < b.records.count()
		s.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case unsettled: // what failed in Advance may work by now
			err = s.makeRoom(false, 0)
		case ready:
			return b, nil
		default:
			err = s.loadMail(b)
		}
		if err != nil {
			return nil, err
		}
	}
}

// unread reports whether something was not handed out yet.
func (b *bucket) unread() bool {
	return b.next < b.records.count() || b.loaded && b.pass+1 < b.passes
}

// fill makes a chunk of the records of a block that are to be handed out in this pass. It returns
// nil if there are none.
func (s *Store) fill(b *bucket, found block, work []byte) (*chunk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil { // since the block was read
		return nil, err
	}
	if s.split != nil {
		return nil, nil // an Advance failed meanwhile, and what it began has to end before all else
	}
	if found.count == 0 || b.dead {
		b.next = b.records.count() // the rest of it is gone
		return nil, nil
	}
	// Callers may write into what they get, and the log wants to know what they changed: so there
	// are two copies of the block.
	c := &chunk{store: s, bucket: b, raw: found.raw, end: found.first + uint64(found.count)}
	c.work = append(work[:0], found.raw...)
	if err := c.read(found); err != nil {
		return nil, err
	}
	// A record that is where the index does not say would be handed out twice, or lose messages.
	// That can only be damage, and going on would spread it.
	if s.o.indexed() && !s.claim(c) {
		return nil, s.badEntry(b, &b.records, found.first)
	}
	s.keep(nil)
	if len(c.records) == 0 {
		b.next = c.end
		return nil, nil
	}
	c.users = len(c.records) + 1
	s.out += int64(len(c.records))
	return c, nil
}

// read makes records of those entries that are to be handed out.
func (c *chunk) read(found block) error {
	s, b := c.store, c.bucket
	c.records = make([]Record, 0, found.count)
	d := disk.Decoder{B: c.raw}
	for record := found.first; record < c.end; record++ {
		e := b.takeEntry(&d, s.o.indexed())
		if d.Bad {
			return s.badEntry(b, &b.records, record)
		}
		if record < b.next || b.isDone(record) || b.passes > 1 && b.passOf(e.seq) != b.pass {
			continue
		}
		c.records = append(c.records, Record{Slot: e.slot, chunk: c, record: record, seq: e.seq,
			idSize: uint32(len(e.id)), dataSize: uint32(len(e.data))})
		r := &c.records[len(c.records)-1]
		end := len(c.raw) - len(d.B)
		r.Data = c.work[end-len(e.data) : end : end]
		end -= len(e.data) + disk.UvarintSize(uint64(len(e.data)))
		r.at = uint32(end - len(e.id))
		r.ID = c.work[r.at:end:end]
	}
	return nil
}

// claim checks that the bucket index has the records of a chunk where they are, and drops those
// that were deleted. The index is much larger than a cache, and records come in any order: a loop
// that does nothing else has many of them on their way from memory at once, and Reschedule will
// find them there.
func (s *Store) claim(c *chunk) bool {
	b, strays := c.bucket, 0
	for i := range c.records {
		if s.places.get(c.records[i].seq) != b.number {
			strays++
		}
	}
	if strays > 0 {
		return false
	}
	if len(b.table) == 0 {
		return true
	}
	kept := c.records[:0]
	for _, r := range c.records {
		if m := b.table[r.seq]; m != nil && !s.collect(c, len(kept), m) {
			s.note(&change{kind: changeDrop, bucket: b.id, record: r.record}, nil)
			if s.drop(b, r.record, r.seq); b.dead {
				break // there was nothing left in it
			}
			continue
		}
		kept = append(kept, r)
	}
	c.records = kept
	return true
}

// collect puts the messages for the i-th record into the chunk. It returns false if the last word
// is that the record goes.
func (s *Store) collect(c *chunk, i int, m *mail) bool {
	m.taken = len(m.messages)
	for _, message := range m.messages {
		if message.kind == messageDelete {
			return false
		}
	}
	if c.mail == nil {
		c.mail = map[int][]message{}
	}
	c.mail[i] = slices.Clone(m.messages)
	s.stats.Merged += int64(len(m.messages))
	return true
}

// loadMail begins the next pass over a bucket. All messages for its records that are to be handed
// out in this pass come into a table. Records need not be sorted for that, as in the paper; and
// what does not fit into a quarter of the buffers takes more passes.
func (s *Store) loadMail(b *bucket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.dead {
		return nil
	}
	first := !b.loaded
	if first {
		size := int64(b.messages.frozen.bytes + b.messages.buffer.bytes)
		for _, e := range b.messages.extents {
			size += int64(e.size)
		}
		// Passes are fixed once the first one begins. What comes meanwhile has a sequence number
		// from fresh on and goes with the last pass, or it could miss its turn.
		b.passes = uint64(4*size/s.o.Buffer) + 1
		b.fresh, b.loaded = s.nextSeq, true
	} else {
		b.pass++
		b.next = 0
	}
	// Messages that came while a record was out stay here until it is given back, over all passes:
	// they are on disk, too, but there nothing tells them from those it was handed out with.
	for seq, m := range b.table {
		if len(m.messages) == m.taken { // nothing came since the record was handed out
			delete(b.table, seq)
		}
	}
	c := cursor{s: s, bucket: b}
	for at := uint64(0); at < b.messages.count(); {
		found, err := c.next(&b.messages, at)
		if err != nil {
			b.unload(first)
			return err
		}
		d := disk.Decoder{B: slices.Clone(found.raw)}
		for range found.count {
			seq, m := takeMessage(&d)
			if d.Bad {
				b.unload(first)
				return s.badEntry(b, &b.messages, at)
			}
			if b.passOf(seq) == b.pass {
				b.post(seq, m)
			}
			at++
		}
	}
	return nil
}

// unload takes back a pass that could not begin, so that whoever tries again does not have those
// messages twice that had been read.
func (b *bucket) unload(first bool) {
	for seq := range b.table {
		if b.passOf(seq) == b.pass {
			delete(b.table, seq)
		}
	}
	if first {
		b.loaded = false
		return
	}
	b.pass--
	b.next = b.records.count()
}
