package satstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// Repaired tells what [Repair] saved.
type Repaired struct {
	Records  int64   // that are in the new store
	Messages int64   // that are in it, for those records
	Lost     int64   // records that some damaged block had, as far as its header tells
	Findings []error // what was damaged, each with its file and offset; at most 100
}

// Repair makes a new store in the directory to of all that can be read of the damaged one in
// from, which it does not change. The indexes of ids and buckets are made anew, so damage to them
// costs nothing; nor does damage to one copy of the checkpoint. A damaged block costs its
// records. A damaged group in the log, or a damaged block that a change in it starts from, costs
// what was changed after it. Records of passed units are due in the current one.
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

// A salvage moves what can be read of an old store to a fresh one.
type salvage struct {
	old, fresh *Store
	ids        map[uint64]string // of a bucket's records that messages wait for
	doomed     map[uint64]bool   // of them, those that are to go
	items      []Item            // that are to be added
	done       Repaired
	err        error // of the fresh store, which ends everything
}

func (v *salvage) report(err error) {
	if err != nil && len(v.done.Findings) < maxFindings {
		v.done.Findings = append(v.done.Findings, err)
	}
}

// open brings the old store to its latest state, but for its index of ids.
func (v *salvage) open(from vfs.FS, o Options) error {
	s, err := lockStore(from, o)
	if err != nil {
		return err
	}
	s.pool.SetLimit(1 << 50) // nothing is written
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
	v.done = kept // what is damaged is found again
	v.report(s.replay(m.Log))
	if s.stats.Cut > 0 {
		v.report(disk.Corrupt(wal.FileName(s.lastLog), 0, "its end is not whole, as a crash leaves it"))
	}
	return nil
}

// places finds the records of a bucket, for messages in the log.
func (v *salvage) places(b *bucket) {
	v.entries(b, &b.records, func(record uint64, d *disk.Decoder) {
		if e := b.takeEntry(d); !d.Bad && !b.isDone(record) && e.seq < v.old.seq {
			v.old.places.set(e.seq, b.number)
		}
	})
}

// all moves records, and then the messages that wait for them, bucket by bucket: no more than one
// bucket's ids are in memory. What moved on in a split that was under way is passed over where it
// was.
func (v *salvage) all() {
	s := v.old
	for b := range s.buckets {
		v.waits(b)
		moved, forwarded := uint64(0), uint64(0)
		if s.split != nil && s.split.bucket == b {
			moved, forwarded = s.split.moved, s.split.forwarded
		}
		v.entries(b, &b.records, func(record uint64, d *disk.Decoder) {
			e := b.takeEntry(d)
			if !d.Bad && !b.isDone(record) && record >= moved && v.err == nil {
				v.add(e)
			}
		})
		v.flush()
		v.entries(b, &b.messages, func(message uint64, d *disk.Decoder) {
			seq, m := takeMessage(d)
			if !d.Bad && message >= forwarded && v.err == nil {
				v.send(seq, m)
			}
		})
	}
}

// waits finds out for which records of a bucket messages wait, and which of them are to go.
func (v *salvage) waits(b *bucket) {
	v.ids, v.doomed = map[uint64]string{}, map[uint64]bool{}
	kept := v.done
	v.entries(b, &b.messages, func(_ uint64, d *disk.Decoder) {
		if seq, m := takeMessage(d); !d.Bad {
			v.ids[seq] = ""
			v.doomed[seq] = v.doomed[seq] || m.delete
		}
	})
	v.done = kept // what is damaged is found again
}

func (v *salvage) add(e entry) {
	if v.doomed[e.seq] {
		return // its id may have been added again
	}
	if _, found := v.ids[e.seq]; found {
		v.ids[e.seq] = string(e.id)
	}
	if v.items = append(v.items, v.old.item(e)); len(v.items) == copyBatch {
		v.flush()
	}
}

func (v *salvage) flush() {
	if v.err != nil {
		return
	}
	added, err := v.fresh.AddBatch(v.items)
	v.done.Records += int64(added)
	v.items, v.err = v.items[:0], err
}

func (v *salvage) send(seq uint64, m message) {
	if id := v.ids[seq]; id != "" && !m.delete {
		if v.err = v.fresh.Update(id, m.payload); v.err == nil {
			v.done.Messages++
		}
	}
}

// entries visits all entries of a part that can be read. A visitor that cannot decode one ends the
// block.
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
	// What the log has added is in memory.
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

// blocks visits the entries of an extent. Behind a damaged block it looks for the next one.
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
