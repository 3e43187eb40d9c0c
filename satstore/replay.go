package satstore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
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
		room: maxAhead, since: wal.Window,
	}
}

func (r *replayer) run(fs vfs.FS, log uint64, repeat func(*wal.Change) error) error {
	s := r.s
	// The checkpoint may be from just before a due split began.
	s.startNextSplit()
	done, err := wal.Replay(fs, log, r.begin, func(h *wal.Change) error {
		r.at++
		r.since++
		err := repeat(h)
		r.room += len(h.Old)
		h.Old = nil
		return err
	})
	s.stats.Replayed, s.stats.Cut = done.Changes, done.Cut
	s.lastLog = max(s.lastLog, done.Last)
	return err
}

// A replayer repeats changes. The data that a diff refers to is still on disk or in a buffer, since
// the space of a bucket is reused only after the next checkpoint.
//
// Callers return records in any order, and their buckets may be much larger than memory. So the
// replayer reads the old entries of many visits together, in the order of their positions. A bucket gets
// most of its records by splits, before its slot begins, and they are read after that.
type replayer struct {
	s      *Store
	reader *extent.Reader // of buckets that are due
	splits *extent.Reader // of the bucket that is being split
	old    oldBlock       // the last one that was read
	last   extent.Block   // position of the last one that load read, or failed to read

	window []wal.Change // the next changes of the log
	at     int          // of the change in it after the one that is repeated
	ahead  int          // up to which the old entries of visits were read
	far    int          // after the last change with an old entry
	room   int          // for old entries, in bytes
	grown  bool         // since they were read, a bucket has become due, or got its records
	since  int          // changes since then
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

// minAhead is how many changes are read ahead at least, even if most buckets have few visits.
const minAhead = 256

// begin notes the next changes of the log.
func (r *replayer) begin(changes []wal.Change) { r.window, r.at, r.ahead, r.far = changes, 0, 0, 0 }

// readAhead sets the Old of the next visits to the old entries of their records, as far as their memory
// allows. It leaves out records that are not there yet, and what cannot be read: visit tries again.
//
// It looks at twice as many changes as were repeated since the last time. So the work is linear in the
// length of the log, even if a bucket becomes due, and most visits become readable, after each few of them.
func (r *replayer) readAhead() {
	end := min(len(r.window), r.at+max(minAhead, 2*r.since))
	// Later ones make room: else each of the next visits would read a block of its own.
	for ; r.far > end && r.room < maxAhead/2; r.far-- {
		h := &r.window[r.far-1]
		r.room += len(h.Old)
		h.Old = nil
	}
	var visits []*wal.Change
	size := 0
	for r.ahead = r.at; r.ahead < end && size < r.room; r.ahead++ {
		h := &r.window[r.ahead]
		if h.Old != nil || h.Kind != wal.Move && h.Kind != wal.Drop {
			continue
		}
		if b := r.s.byID[h.Bucket]; b != nil && h.Record < b.records.Count() {
			size += int(b.records.Bytes() / int64(b.records.Count()))
			visits = append(visits, h)
		}
	}
	slices.SortFunc(visits, func(g, h *wal.Change) int {
		return cmp.Or(cmp.Compare(g.Bucket, h.Bucket), cmp.Compare(g.Record, h.Record))
	})
	var lost extent.Block
	for n := 0; n < len(visits) && r.room > 0; n++ {
		h := visits[n]
		if lost.Has(h.Bucket, h.Record) {
			continue
		}
		raw, err := r.raw(r.s.byID[h.Bucket], h.Record)
		if err != nil {
			lost = r.last
			continue
		}
		h.Old = slices.Clone(raw)
		r.room -= len(raw)
	}
	r.far = max(r.far, r.ahead)
	r.grown, r.since = false, 0
}

func (r *replayer) repeat(h *wal.Change) error {
	s := r.s
	if s.pool.Full(8) {
		r.relieve()
	}
	// As the methods do, but without their checks: the log has only changes that passed them.
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
		r.grown = true
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
	b := r.due(h.Bucket)
	if b != nil && r.s.split == nil && h.Count > 0 && h.Count <= maxParts && b.done == nil {
		r.s.spread(b, h.Count)
		return nil
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
		p := s.split
		s.moveEntries(next)
		r.grown = r.grown || s.split != p
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
	reason := fmt.Sprintf("%d entries of bucket %d could not be read when they were to move", count, p.bucket.id)
	r.s.skipEntries(count, durable.Corrupt(extent.Name, 0, reason))
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
		if h.Key != idset.KeyOf(string(e.id)) {
			return wal.Misfit(fmt.Sprintf("record %d of bucket %d has another id", h.Record, h.Bucket))
		}
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
	if b := r.due(h.Bucket); b != nil && h.Record < b.records.Count() && !b.isDone(h.Record) {
		return b
	}
	return nil
}

// due returns the bucket with an id if it is one of state.due, which may be many.
func (r *replayer) due(id uint64) *bucket {
	b := r.s.byID[id]
	if b == nil || b.start > r.s.calendar.Now() || r.s.split != nil && r.s.split.bucket == b {
		return nil
	}
	return b
}

// entry returns the record of a visit, as it is in its bucket.
func (r *replayer) entry(b *bucket, h *wal.Change) (entry, error) {
	if h.Old == nil && (r.grown || r.at > r.ahead) {
		r.at--
		r.readAhead()
		r.at++
	}
	raw := h.Old
	if raw == nil {
		var err error
		if raw, err = r.raw(b, h.Record); err != nil {
			return entry{}, err
		}
	}
	return b.takeEntry(&durable.Decoder{B: raw}), nil
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
	d := durable.Decoder{B: found.Raw}
	for i := range uint64(found.Count) {
		if b.takeEntry(&d); d.Bad {
			r.old.ends = r.old.ends[:0]
			return r.reader.Misfit(found.First + i)
		}
		r.old.ends = append(r.old.ends, uint32(len(found.Raw)-len(d.B)))
	}
	return nil
}
