package satstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// Repaired is the result of [Repair].
type Repaired struct {
	Records  int64   // copied to the new store
	Messages int64   // copied to the new store
	Lost     int64   // records in damaged blocks, as far as known
	Stale    int64   // records not copied: the id index or a higher number shows that their ids were deleted
	Findings []error // the damage, each with file and offset; at most 100
}

// Repair copies everything readable from a damaged store to a new one. It does not change the old
// store. Both indexes are rebuilt, so damage to them loses nothing; nor does damage to one copy of
// the checkpoint. A damaged block loses its records. A record whose id was deleted stays deleted
// even if the message that says so is lost, as long as the id index is intact; without the index,
// it is copied unless its id was added again. A damaged group in the log loses the changes
// after it; so does a damaged block that a logged change refers to. Overdue records become due in
// the current unit.
func Repair(from, to string) (Repaired, error) {
	if err := vfs.MakeDir(to, 0o700); err != nil {
		return Repaired{}, fmt.Errorf("satstore: make directory: %w", err)
	}
	return repair(vfs.OS(from), vfs.OS(to), Options{})
}

func repair(from, to vfs.FS, o Options) (done Repaired, err error) {
	v := &salvage{}
	if err := v.open(from, o); err != nil {
		return done, fmt.Errorf("satstore: repair: %w", err)
	}
	defer func() { err = errors.Join(err, v.old.closeFiles()) }()
	o.Unit, o.test.shape = v.old.o.Unit, v.old.o.test.shape
	o.Start = timeOf(v.old.calendar.Now(), o.Unit)
	if v.fresh, err = open(to, o); err != nil {
		return done, err
	}
	if v.fresh.bucketID > 0 {
		return done, errors.Join(errors.New("satstore: repair: the new store is not empty"),
			v.fresh.Close())
	}
	v.all()
	done, err = v.done, v.err
	return done, errors.Join(err, v.fresh.Close())
}

// A salvage copies the readable data of an old store to a new one.
type salvage struct {
	old, fresh *Store
	ids        map[uint64]string // of the bucket's records that have messages
	doomed     map[uint64]bool   // those that a message deletes
	items      []Item            // to add
	numbers    []uint64          // of items, in the old store
	copied     []uint64          // numbers in the old store, by the number in the new one; if noIDs
	noIDs      bool              // the id index is damaged
	done       Repaired
	err        error // of the new store; it ends the repair
}

func (v *salvage) report(err error) {
	if err != nil && len(v.done.Findings) < maxFindings {
		v.done.Findings = append(v.done.Findings, err)
	}
}

// open loads the old store.
func (v *salvage) open(from vfs.FS, o Options) error {
	s, err := lockStore(from, o)
	if err != nil {
		return err
	}
	s.pool.SetLimit(1 << 50) // so that nothing is written
	v.old = s
	m, damage, err := manifest.Load(s.fs)
	v.report(damage)
	if err == nil {
		o.Unit = 0
		s.o, err = s.o.adopt(m)
	}
	if err == nil {
		err = s.adoptManifest(m)
	}
	if err == nil {
		s.file, err = extent.OpenDamaged(s.fs)
	}
	if err != nil {
		return errors.Join(err, s.closeFiles())
	}
	kept := v.done
	for b := range s.buckets {
		v.places(b)
	}
	v.done = kept // the damage will be found again
	if err := v.openIDs(m.IDs); err != nil {
		v.report(err)
		v.noIDs = true
	}
	v.report(s.replay(m.Log))
	if s.stats.Cut > 0 {
		v.report(disk.Corrupt(wal.FileName(s.lastLog), 0,
			"the end of the log is incomplete, as after a crash"))
	}
	return nil
}

// openIDs opens the id index if all of it is intact.
func (v *salvage) openIDs(state idset.State) error {
	ids, err := idset.Open(v.old.fs, state)
	if err != nil {
		return err
	}
	if err := ids.All(func(idset.Key, uint64) {}); err != nil {
		ids.Close()
		return err
	}
	v.old.ids = ids
	return nil
}

// places adds the records of a bucket to the bucket index, for messages in the log.
func (v *salvage) places(b *bucket) {
	v.entries(b, &b.records, func(record uint64, d *disk.Decoder) {
		if e := b.takeEntry(d); !d.Bad && !v.old.hasMoved(b, record) && e.seq < v.old.seq {
			v.old.places.set(e.seq, b.number)
		}
	})
}

// all copies the buckets one by one, so that only the ids of one are in memory. Those of a split
// are copied together: while records move, their messages are still in the bucket that is being
// split.
func (v *salvage) all() {
	p := v.old.split
	var parts []*bucket
	for b := range v.old.buckets {
		switch {
		case p.leadsTo(b):
			parts = append(parts, b)
		case p == nil || b != p.bucket:
			v.copy(b)
		}
	}
	if p != nil {
		v.copy(append(parts, p.bucket)...) // its messages are the latest
	}
}

// copy copies the records of some buckets, and then their messages. It skips entries that a split
// has moved elsewhere.
func (v *salvage) copy(buckets ...*bucket) {
	v.waiting(buckets)
	for _, b := range buckets {
		v.entries(b, &b.records, func(record uint64, d *disk.Decoder) {
			e := b.takeEntry(d)
			if !d.Bad && !v.old.hasMoved(b, record) && v.err == nil {
				v.add(e)
			}
		})
	}
	v.flush()
	for _, b := range buckets {
		forwarded := uint64(0)
		if p := v.old.split; p != nil && p.bucket == b {
			forwarded = p.forwarded
		}
		v.entries(b, &b.messages, func(message uint64, d *disk.Decoder) {
			seq, m := takeMessage(d)
			if !d.Bad && message >= forwarded && v.err == nil {
				v.send(seq, m)
			}
		})
	}
}

// waiting finds the records of some buckets that have messages, and those that a message deletes.
func (v *salvage) waiting(buckets []*bucket) {
	v.ids, v.doomed = map[uint64]string{}, map[uint64]bool{}
	kept := v.done
	for _, b := range buckets {
		v.entries(b, &b.messages, func(_ uint64, d *disk.Decoder) {
			if seq, m := takeMessage(d); !d.Bad {
				v.ids[seq] = ""
				v.doomed[seq] = v.doomed[seq] || m.delete
			}
		})
	}
	v.done = kept // the damage will be found again
}

func (v *salvage) add(e entry) {
	if v.doomed[e.seq] {
		return // its id may have been added again
	}
	if _, found := v.ids[e.seq]; found {
		v.ids[e.seq] = string(e.id)
	}
	v.items, v.numbers = append(v.items, v.old.item(e)), append(v.numbers, e.seq)
	if len(v.items) == copyBatch {
		v.flush()
	}
}

// flush adds the items, except for stale ones.
func (v *salvage) flush() {
	switch {
	case v.err != nil:
	case v.noIDs:
		v.err = v.addNewest()
	default:
		v.err = v.addLive()
	}
	v.items, v.numbers = v.items[:0], v.numbers[:0]
}

// addLive adds the items that the id index knows.
func (v *salvage) addLive() error {
	keys := make([]idset.Key, len(v.items))
	for i := range v.items {
		keys[i] = idset.KeyOf(v.items[i].ID)
	}
	live, err := v.old.ids.Find(keys)
	if err != nil {
		return err
	}
	kept := v.items[:0]
	for i, item := range v.items {
		if live[i] == v.numbers[i] {
			kept = append(kept, item)
		} else {
			v.skip(v.numbers[i])
		}
	}
	added, err := v.fresh.AddBatch(kept)
	v.done.Records += int64(added)
	return err
}

// addNewest adds the items without help from the id index. Of several records with one id, the one
// with the highest number is the live one.
func (v *salvage) addNewest() error {
	for i, item := range v.items {
		number, err := v.fresh.seqOf(idset.KeyOf(item.ID))
		if err != nil {
			return err
		}
		if number != idset.None {
			if v.copied[number] > v.numbers[i] {
				v.skip(v.numbers[i])
				continue
			}
			if err := v.fresh.Delete(item.ID); err != nil {
				return err
			}
			v.skip(v.copied[number])
			v.done.Records--
		}
		if _, err := v.fresh.Add(item.ID, item.At, item.Data); err != nil {
			return err
		}
		v.copied = append(v.copied, v.numbers[i])
		v.done.Records++
	}
	return nil
}

// skip records that a record is not in the new store, and so gets no messages.
func (v *salvage) skip(number uint64) {
	v.done.Stale++
	delete(v.ids, number)
}

func (v *salvage) send(seq uint64, m message) {
	if id := v.ids[seq]; id != "" && !m.delete {
		if v.err = v.fresh.Update(id, m.payload); v.err == nil {
			v.done.Messages++
		}
	}
}

// entries visits the readable entries of a part. After one that visit cannot decode, it
// skips the rest of the block.
func (v *salvage) entries(b *bucket, p *extent.Part, visit func(uint64, *disk.Decoder)) {
	magic := uint32(extent.Messages)
	if p == &b.records {
		magic = extent.Records
	}
	next := uint64(0)
	for _, e := range p.Extents() {
		data := make([]byte, e.Size)
		if err := v.old.file.Read(data, e); err != nil {
			v.report(err)
			v.lose(magic, uint64(e.Count))
		} else {
			v.blocks(b, magic, e, data, visit)
		}
		next = e.First + uint64(e.Count)
	}
	// Entries that a replay of the log added are in memory.
	r := extent.NewReader(v.old.file, nil, nil)
	r.Open(p, b.id, magic)
	for at := max(next, p.Count()-p.InMemory()); at < p.Count(); {
		found, err := r.Next(at)
		if err != nil {
			v.report(err)
			return
		}
		d := disk.Decoder{B: found.Raw}
		for at = found.First; at < found.First+uint64(found.Count); at++ {
			visit(at, &d)
		}
	}
}

// blocks visits the entries of an extent. After a damaged block it searches for the next one.
func (v *salvage) blocks(
	b *bucket, magic uint32, e extent.Extent, data []byte, visit func(uint64, *disk.Decoder),
) {
	next := e.First
	mark := binary.LittleEndian.AppendUint32(nil, magic)
	for at := 0; at < len(data); {
		found, size, reason := extent.Open(data[at:])
		whole := reason == "" && found.Bucket == b.id && found.Magic == magic
		if whole && found.First >= next && found.First < e.First+uint64(e.Count) {
			v.lose(magic, found.First-next)
			next = found.First + uint64(found.Count)
			d := disk.Decoder{B: found.Raw}
			for i := uint64(0); i < uint64(found.Count) && !d.Bad; i++ {
				visit(found.First+i, &d)
			}
			at += size
			continue
		}
		v.report(disk.Corrupt(extent.Name, e.Offset()+int64(at), "a damaged block: "+reason))
		n := -1
		if at+5 < len(data) {
			n = bytes.Index(data[at+5:], mark)
		}
		if n < 0 {
			break
		}
		at += n + 1 // the magic is 4 bytes into a block
	}
	if end := e.First + uint64(e.Count); next < end {
		v.lose(magic, end-next)
	}
}

func (v *salvage) lose(magic uint32, n uint64) {
	if magic == extent.Records {
		v.done.Lost += int64(n)
	}
}
