package satstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// Repaired tells what [Repair] saved.
type Repaired struct {
	Records  int64   // that are in the new store
	Messages int64   // that are in it, for those records
	Lost     int64   // records that some damaged block had, as far as its header tells
	Findings []error // what was damaged, each with its file and offset; at most 100
}

// Repair makes a new store in the directory to of all that can be read of the damaged one in from,
// in which it uses free room at most. The indexes of ids and buckets are made anew, so damage to
// them costs nothing; nor does damage to one copy of the checkpoint. A damaged block costs its
// records. A damaged group in the log, or a damaged block that a change in it starts from, costs
// what was changed after it. Records of passed slots are due in the current one. Unit, Horizon,
// Radix and Mode are those of the old store.
func Repair(from, to string, o Options) (Repaired, error) {
	if err := vfs.MakeDir(to, 0o700); err != nil {
		return Repaired{}, fmt.Errorf("satstore: make directory: %w", err)
	}
	return repair(vfs.OS(from), vfs.OS(to), o)
}

func repair(from, to vfs.FS, o Options) (done Repaired, err error) {
	v := &salvage{}
	if err := v.open(from, o); err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, v.old.closeFiles()) }()
	o = v.old.o
	o.Start, o.exact = v.old.calendar.now, true
	if v.fresh, err = load(to, o); err != nil {
		return done, err
	}
	if v.fresh.nextBucket > 0 {
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
	codec      codec
	done       Repaired
	err        error // of the fresh store, which ends everything
}

func (v *salvage) report(err error) {
	if len(v.done.Findings) < maxFindings {
		v.done.Findings = append(v.done.Findings, err)
	}
}

// open brings the old store to its latest state, but for its index of ids.
func (v *salvage) open(from vfs.FS, o Options) error {
	o = o.withDefaults()
	lock, err := from.Lock(lockName)
	if err != nil {
		return fmt.Errorf("satstore: repair: %w", err)
	}
	s := newStore(from, o, lock)
	v.old = s
	b, err := disk.ReadFile(s.fs, checkpointName)
	var m *manifest
	for i := 0; i < 2 && err == nil && m == nil; i++ {
		var bad error
		if m, bad = unseal(b, i); bad != nil {
			v.report(bad)
		}
	}
	if err == nil && m == nil {
		err = v.done.Findings[0]
	}
	if err == nil {
		kept := m.options
		s.o.Unit, s.o.Horizon, s.o.Radix, s.o.Mode = kept.Unit, kept.Horizon, kept.Radix, kept.Mode
		err = s.adoptManifest(m)
	}
	if err == nil {
		s.data, err = s.fs.Open(dataName)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("satstore: repair: %w", err), s.closeFiles())
	}
	if s.o.indexed() {
		s.saved = savedPlaces{}
		kept := v.done
		s.eachBucket(v.places)
		v.done = kept // what is damaged is found again
	}
	if err := s.settle(); err != nil {
		v.report(err)
	} else if m.log > 0 {
		if err := s.replay(m.log); err != nil {
			v.report(err)
		}
	}
	return nil
}

// places finds the records of a bucket, for messages in the log.
func (v *salvage) places(b *bucket) {
	v.entries(b, &b.records, func(record uint64, d *disk.Decoder) {
		if e := b.takeEntry(d, true); !d.Bad && !b.isDone(record) && e.seq < v.old.nextSeq {
			v.old.places.set(e.seq, b.number)
		}
	})
}

// all moves records, and then the messages that wait for them, bucket by bucket: no more than one
// bucket's ids are in memory. What moved on in a split that was under way is passed over where it
// was.
func (v *salvage) all() {
	s := v.old
	s.eachBucket(func(b *bucket) {
		v.waits(b)
		moved, forwarded := uint64(0), uint64(0)
		if s.split != nil && s.split.bucket == b {
			moved, forwarded = s.split.moved, s.split.forwarded
		}
		v.entries(b, &b.records, func(record uint64, d *disk.Decoder) {
			e := b.takeEntry(d, s.o.indexed())
			if !d.Bad && !b.isDone(record) && record >= moved && v.err == nil {
				v.add(e)
			}
		})
		v.entries(b, &b.messages, func(message uint64, d *disk.Decoder) {
			seq, m := takeMessage(d)
			if !d.Bad && message >= forwarded && v.err == nil {
				v.send(seq, m)
			}
		})
	})
}

// waits finds out for which records of a bucket messages wait, and which of them are to go.
func (v *salvage) waits(b *bucket) {
	v.ids, v.doomed = map[uint64]string{}, map[uint64]bool{}
	kept := v.done
	v.entries(b, &b.messages, func(_ uint64, d *disk.Decoder) {
		if seq, m := takeMessage(d); !d.Bad {
			v.ids[seq] = ""
			if m.kind == messageDelete {
				v.doomed[seq] = true
			}
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
	added, err := v.fresh.AddBatch([]Item{{string(e.id), e.slot, e.data}})
	v.done.Records += int64(added)
	v.err = err
}

func (v *salvage) send(seq uint64, m message) {
	if id := v.ids[seq]; id != "" {
		if v.err = v.fresh.send(id, m); v.err == nil {
			v.done.Messages++
		}
	}
}

// entries visits all entries of a part that can be read. A visitor that cannot decode one ends the
// block.
func (v *salvage) entries(b *bucket, p *part, visit func(uint64, *disk.Decoder)) {
	for _, e := range p.extents {
		data, err := v.old.readExtent(nil, e)
		if err != nil {
			v.report(err)
			v.lose(p, b, uint64(e.count))
			continue
		}
		v.blocks(b, p, e, data, visit)
	}
	for at := p.disk; at < p.count(); {
		found, err := (&cursor{s: v.old, bucket: b}).next(p, at)
		if err != nil {
			v.report(err)
			return
		}
		d := disk.Decoder{B: found.raw}
		for ; at < found.first+uint64(found.count); at++ {
			visit(at, &d)
		}
	}
}

// blocks visits the entries of an extent. Behind a damaged block it looks for the next one.
func (v *salvage) blocks(b *bucket, p *part, e extent, data []byte, visit func(uint64, *disk.Decoder)) {
	next := e.first
	magic := binary.LittleEndian.AppendUint32(nil, p.magic(b))
	for at := 0; at < len(data); {
		found, size, reason := v.codec.decode(nil, data[at:])
		whole := reason == "" && found.bucket == b.id && found.magic == p.magic(b)
		if whole && found.first >= next {
			v.lose(p, b, found.first-next)
			next = found.first + uint64(found.count)
			d := disk.Decoder{B: found.raw}
			for i := uint64(0); i < uint64(found.count) && !d.Bad; i++ {
				visit(found.first+i, &d)
			}
			at += size
			continue
		}
		v.report(disk.Corrupt(dataName, e.offset()+int64(at), "a damaged block: "+reason))
		n := -1
		if at+5 < len(data) {
			n = bytes.Index(data[at+5:], magic)
		}
		if n < 0 {
			break
		}
		at += n + 1 // the magic is 4 bytes into a block
	}
	v.lose(p, b, e.first+uint64(e.count)-next)
}

func (v *salvage) lose(p *part, b *bucket, n uint64) {
	if p == &b.records {
		v.done.Lost += int64(n)
	}
}
