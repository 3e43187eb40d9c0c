package satstore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// replayAll repeats what the log says and writes a checkpoint of the outcome, so that no log is
// ever continued behind a torn end. If the disk is full, the store can be read, and Sync tries
// again.
func (s *Store) replayAll(m *manifest) error {
	// A checkpoint may have been written in the midst of a split: then it goes on before the log does.
	if err := s.settle(); err != nil {
		return err
	}
	if m.log > 0 {
		if err := s.replay(m.log); err != nil {
			return err
		}
	}
	// Until here nothing was noted, and no checkpoint written to make room: one in the midst of the
	// log would count changes of it that are still to come as done.
	s.live = true
	if err := s.checkpoint(); err != nil {
		if s.broken {
			return err
		}
		s.failed = err
	}
	return nil
}

// replay repeats the changes of a log.
func (s *Store) replay(number uint64) error {
	log, err := openLog(s.fs, number)
	if err != nil {
		return err
	}
	pending, err := disk.ReadFile(s.fs, pendingName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r := replayer{s: s, log: log, blocks: map[uint64][]*oldBlock{}}
	for {
		changes, err := log.next()
		if err != nil {
			return err
		}
		if changes == nil {
			return r.rest(pending)
		}
		if err := r.group(changes); err != nil {
			return err
		}
	}
}

// group repeats changes that were committed together.
func (r *replayer) group(changes []byte) error {
	s, d := r.s, disk.Decoder{B: changes}
	for len(d.B) > 0 {
		h := r.coder.take(&d, s.calendar.now)
		if d.Bad {
			return r.bad("a change that cannot be decoded")
		}
		if s.wantsRelief() {
			if err := s.relieve(); err != nil {
				return err
			}
		}
		if err := r.repeat(&h, &d); err != nil {
			return err
		}
		s.stats.Replayed++
	}
	return nil
}

// rest repeats what the log does not have: the changes of one half of the file that is mapped, and
// those of the other if it goes on from there.
func (r *replayer) rest(pending []byte) error {
	r.s.stats.Cut = int64(len(r.log.b) - r.log.at)
	for end := int64(r.log.at); ; {
		changes := pendingAfter(pending, r.log.number, end)
		if changes == nil {
			return nil
		}
		r.s.stats.Cut = 0 // it was being written, and is here
		if err := r.group(changes); err != nil {
			return err
		}
		end += groupHeader + int64(len(changes))
	}
}

// A replayer repeats changes. What a diff starts from is still where it was, or in a buffer: a
// bucket's extents are used again only after the next checkpoint.
type replayer struct {
	s      *Store
	log    *logReader
	coder  coder
	c      cursor
	blocks map[uint64][]*oldBlock // by bucket, in order
	kept   int
}

// An oldBlock is a block of a bucket that was due, with the places of its entries.
type oldBlock struct {
	first uint64
	raw   []byte
	ends  []uint32
}

// maxOldBlocks bounds the memory of a replay: 64 MiB.
const maxOldBlocks = 1 << 10

func (r *replayer) bad(reason string) error {
	return disk.Corrupt(r.log.name, int64(r.log.at), "before this: "+reason)
}

func (r *replayer) repeat(h *change, d *disk.Decoder) error {
	s := r.s
	switch h.kind {
	// What follows is what the methods do, without their checks: the log has only what passed them.
	case changeAdd:
		if s.o.indexed() {
			s.ids.Put(idset.KeyOf(string(h.id)), s.nextSeq)
		}
		s.add(h)
		return nil
	case changeMessage:
		s.deliver(h.seq, h.message)
		return nil
	case changeForget:
		s.ids.Delete(h.key)
		return nil
	case changeAdvance:
		s.advance()
		return s.settle()
	}
	b := r.bucket(h)
	if b == nil {
		return r.bad(fmt.Sprintf("record %d of bucket %d is not due", h.record, h.bucket))
	}
	e, err := r.entry(b, h.record)
	if err != nil {
		return err
	}
	switch h.kind {
	case changeDrop:
		s.drop(b, h.record, e.seq)
		return nil
	case changeDiff:
		var ok bool
		if h.data, d.B, ok = applyDiff(e.data, h.data); !ok {
			return r.bad("a diff that does not fit")
		}
	}
	s.move(b, h.record, entry{e.seq, h.slot, e.id, h.data})
	return nil
}

// bucket returns the bucket that a change is about, or nil if the record is not in it.
func (r *replayer) bucket(h *change) *bucket {
	for _, b := range slices.Backward(r.s.due) { // mostly the newest
		if b.id == h.bucket && h.record < b.records.count() && !b.isDone(h.record) {
			return b
		}
	}
	return nil
}

// entry returns a record of a bucket. Records come mostly in order, so blocks are kept.
func (r *replayer) entry(b *bucket, record uint64) (entry, error) {
	old := r.cached(b, record)
	if old == nil {
		var err error
		if old, err = r.load(b, record); err != nil {
			return entry{}, err
		}
	}
	i := record - old.first
	if i >= uint64(len(old.ends)) {
		return entry{}, r.bad("a record that is gone")
	}
	d := disk.Decoder{B: old.raw}
	if i > 0 {
		d.B = old.raw[old.ends[i-1]:]
	}
	return b.takeEntry(&d, r.s.o.indexed()), nil
}

// cached returns the block with a record, if it was read before. A block in memory may have grown
// since.
func (r *replayer) cached(b *bucket, record uint64) *oldBlock {
	blocks := r.blocks[b.id]
	i := sort.Search(len(blocks), func(i int) bool { return blocks[i].first > record }) - 1
	if i >= 0 && record < blocks[i].first+uint64(len(blocks[i].ends)) {
		return blocks[i]
	}
	return nil
}

func (r *replayer) load(b *bucket, record uint64) (*oldBlock, error) {
	if r.c.bucket != b {
		r.c = cursor{s: r.s, bucket: b, raw: r.c.raw, data: r.c.data}
	}
	found, err := r.c.next(&b.records, record)
	if err != nil {
		return nil, err
	}
	old := &oldBlock{first: found.first, raw: append([]byte(nil), found.raw...)}
	d := disk.Decoder{B: found.raw}
	for i := range uint64(found.count) {
		if b.takeEntry(&d, r.s.o.indexed()); d.Bad {
			return nil, r.s.badEntry(b, &b.records, found.first+i)
		}
		old.ends = append(old.ends, uint32(len(found.raw)-len(d.B)))
	}
	if r.kept++; r.kept > maxOldBlocks {
		clear(r.blocks)
		r.kept = 1
	}
	blocks := r.blocks[b.id]
	i, same := slices.BinarySearchFunc(blocks, old.first, func(o *oldBlock, first uint64) int {
		return cmp.Compare(o.first, first)
	})
	if same {
		blocks[i] = old
	} else {
		blocks = slices.Insert(blocks, i, old)
	}
	r.blocks[b.id] = blocks
	return old, nil
}
