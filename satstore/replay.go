package satstore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// replay repeats the changes of a log and of the logs that continue it.
func (s *Store) replay(log uint64) error {
	r := s.newReplayer()
	return r.run(s.fs, log, r.repeat)
}

func (s *Store) newReplayer() *replayer {
	return &replayer{
		s: s, splits: extent.NewReader(s.file, nil, nil), reader: extent.NewReader(s.file, nil, nil),
	}
}

func (r *replayer) run(fs vfs.FS, log uint64, repeat func(*wal.Change) error) error {
	s := r.s
	// The checkpoint may be from just before a due split began.
	s.startNextSplit()
	done, err := wal.Replay(fs, log, r.readAhead, repeat)
	s.stats.Replayed, s.stats.Cut = done.Changes, done.Cut
	s.lastLog = max(s.lastLog, done.Last)
	return err
}

// A replayer repeats changes. The data that a diff refers to is still on disk or in a buffer, since
// the space of a bucket is reused only after the next checkpoint.
//
// Callers return records in any order, and their buckets may be much larger than memory. So the
// replayer reads the old entries of many visits together, in the order of their positions.
type replayer struct {
	s      *Store
	reader *extent.Reader // of buckets that are due
	splits *extent.Reader // of the bucket that is being split
	old    oldBlock       // the last one that was read
	last   extent.Block   // position of the last one that load read, or failed to read
}

// An oldBlock is a block of a bucket, with the offsets of its entries.
type oldBlock struct {
	bucket uint64
	first  uint64
	raw    []byte
	ends   []uint32
}

// maxAhead bounds the memory for old entries that are read ahead, in bytes.
const maxAhead = 64 << 20

// readAhead sets the Old of visits to the old entries of their records. It leaves out those of buckets
// that do not exist yet, and what cannot be read: visit tries again.
func (r *replayer) readAhead(changes []wal.Change) {
	var visits []*wal.Change
	for i := range changes {
		if h := &changes[i]; h.Kind == wal.Move || h.Kind == wal.Drop {
			visits = append(visits, h)
		}
	}
	slices.SortFunc(visits, func(g, h *wal.Change) int {
		return cmp.Or(cmp.Compare(g.Bucket, h.Bucket), cmp.Compare(g.Record, h.Record))
	})
	buckets := map[uint64]*bucket{}
	for b := range r.s.buckets {
		buckets[b.id] = b
	}
	var memory []byte
	var lost extent.Block
	for n, size := 0, 0; n < len(visits) && size < maxAhead; n++ {
		h := visits[n]
		b := buckets[h.Bucket]
		if b == nil || h.Record >= b.records.Count() || lost.Has(h.Bucket, h.Record) {
			continue
		}
		raw, err := r.raw(b, h.Record)
		if err != nil {
			lost = r.last
			continue
		}
		if cap(memory)-len(memory) < len(raw) {
			memory = make([]byte, 0, max(256<<10, len(raw)))
		}
		at := len(memory)
		memory = append(memory, raw...)
		h.Old = memory[at:]
		size += len(raw)
	}
}

func (r *replayer) repeat(h *wal.Change) error {
	s := r.s
	if s.pool.Full(8) {
		r.relieve()
	}
	// As the methods do, but without their checks: the log has only changes that passed them.
	switch h.Kind {
	case wal.Update, wal.Again, wal.Delete:
		if s.unsure && s.bucketOf(h.Seq) == nil && s.places.get(h.Seq) != lostNumber {
			return wal.Misfit(fmt.Sprintf("a message for record %d, which is in a damaged block", h.Seq))
		}
	}
	switch h.Kind {
	case wal.Add:
		s.ids.Put(idset.KeyOf(h.ID), s.seq)
		s.add(h.Slot, []byte(h.ID), h.Data)
	case wal.Update, wal.Again:
		s.addMessage(h.Seq, message{payload: h.Data})
	case wal.Delete:
		s.remove(h.Seq)
		s.ids.Delete(h.Key)
	case wal.Advance:
		if h.Slot <= s.calendar.Now() || h.Slot > s.reach(h.Slot) || h.Count > maxParts {
			return wal.Misfit(fmt.Sprintf("unit %d cannot begin", h.Slot))
		}
		s.advance(h.Slot, h.Count)
	case wal.Spread:
		return r.spread(h)
	case wal.Split:
		return r.split(h.Count)
	case wal.Skip:
		return r.skip(h.Count)
	default:
		return r.visit(h)
	}
	return nil
}

// relieve writes all buffers without a checkpoint, which is impossible in the middle of a log. If
// that fails, for instance because the disk is full, it raises the limit of the buffers: a log is
// not much longer than they are.
func (r *replayer) relieve() {
	if r.s.write(r.s.takeAll()) != nil {
		r.s.pool.SetLimit(2 * r.s.pool.Limit())
	}
}

// spread repeats the beginning of a spread.
func (r *replayer) spread(h *wal.Change) error {
	for _, b := range r.s.due {
		if b.id == h.Bucket && r.s.split == nil && h.Count > 0 && h.Count <= maxParts && b.done == nil {
			r.s.spread(b, h.Count)
			return nil
		}
	}
	return wal.Misfit(fmt.Sprintf("bucket %d cannot be spread", h.Bucket))
}

// split repeats one step of a split.
func (r *replayer) split(count uint64) error {
	s := r.s
	for first := true; count > 0 || first; first = false {
		if s.split == nil {
			return wal.Misfit("no bucket is being split")
		}
		what := s.split.phase()
		if count == 0 && what != movesNothing {
			return wal.Misfit("a split ends before its last entry")
		}
		next, _, err := s.split.read(r.splits, what, count)
		if err != nil {
			return err
		}
		n := uint64(len(next.records) + len(next.messages))
		if n == 0 && count > 0 {
			return wal.Misfit("a split has no more entries")
		}
		s.moveEntries(next)
		count -= n
	}
	return nil
}

// skip repeats the loss of entries in a damaged block.
func (r *replayer) skip(count uint64) error {
	p := r.s.split
	if p == nil || count == 0 || count > p.left() {
		return wal.Misfit("no bucket with such damage is being split")
	}
	reason := fmt.Sprintf("%d entries of bucket %d were lost in a split", count, p.bucket.id)
	r.s.skipEntries(count, disk.Corrupt(extent.Name, 0, reason))
	return nil
}

// visit repeats the change of a record that was due.
func (r *replayer) visit(h *wal.Change) error {
	s := r.s
	b := r.bucket(h)
	if b == nil {
		return wal.Misfit(fmt.Sprintf("record %d of bucket %d is not due", h.Record, h.Bucket))
	}
	e, err := r.entry(b, h)
	if err != nil {
		return err
	}
	if h.Kind == wal.Drop {
		s.drop(b, h.Record, e.seq)
		s.ids.Delete(h.Key)
		return nil
	}
	data, ok := wal.ApplyDiff(e.data, h.Data)
	if !ok {
		return wal.Misfit("a diff does not fit its record")
	}
	s.move(b, h.Record, entry{e.seq, h.Slot, e.id, data})
	return nil
}

// bucket returns the bucket of a change, or nil if the record is not in it.
func (r *replayer) bucket(h *wal.Change) *bucket {
	for _, b := range slices.Backward(r.s.due) { // mostly the newest
		if b.id == h.Bucket && h.Record < b.records.Count() && !b.isDone(h.Record) {
			return b
		}
	}
	return nil
}

// entry returns the record of a visit, as it is in its bucket.
func (r *replayer) entry(b *bucket, h *wal.Change) (entry, error) {
	raw := h.Old
	if raw == nil {
		var err error
		if raw, err = r.raw(b, h.Record); err != nil {
			return entry{}, err
		}
	}
	return b.takeEntry(&disk.Decoder{B: raw}), nil
}

// raw returns the encoded form of a record. A block in a buffer may have grown since it was read.
func (r *replayer) raw(b *bucket, record uint64) ([]byte, error) {
	old := &r.old
	if old.bucket != b.id || record < old.first || record-old.first >= uint64(len(old.ends)) {
		if err := r.load(b, record); err != nil {
			return nil, err
		}
	}
	i := record - old.first // beyond the end if it is negative
	if i >= uint64(len(old.ends)) {
		return nil, wal.Misfit("the record is gone")
	}
	start := uint32(0)
	if i > 0 {
		start = old.ends[i-1]
	}
	return old.raw[start:old.ends[i]], nil
}

// load sets r.old to the block that has a record, or to the next one if that block is gone.
func (r *replayer) load(b *bucket, record uint64) error {
	r.old.ends = r.old.ends[:0]
	r.reader.Open(&b.records, b.id, extent.Records)
	found, err := r.reader.Next(record)
	r.last = extent.Block{Bucket: b.id, First: found.First, Count: found.Count}
	if err != nil {
		return err
	}
	r.old = oldBlock{b.id, found.First, append(r.old.raw[:0], found.Raw...), r.old.ends}
	d := disk.Decoder{B: found.Raw}
	for i := range uint64(found.Count) {
		if b.takeEntry(&d); d.Bad {
			r.old.ends = r.old.ends[:0]
			return r.reader.Misfit(found.First + i)
		}
		r.old.ends = append(r.old.ends, uint32(len(found.Raw)-len(d.B)))
	}
	return nil
}
