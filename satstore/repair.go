package satstore

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
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
// store, but makes its file lock if a copy came without; with that, it may be on a disk that can only
// be read. Both indexes are rebuilt, so damage to them loses nothing; nor does damage to one copy of the
// checkpoint. A damaged block loses its records. A
// record whose id was deleted stays deleted even if the message that says so is lost, as long as the
// id index is intact; without the index, it is copied unless its id was added again. A damaged group
// in the log loses the changes after it. If the log moves records between buckets and a block of those
// is damaged, or one that was lost before had messages, the visits that follow in the log are lost,
// but not the additions, messages and deletions; Findings say where, and how many. Overdue records
// become due in the current unit.
func Repair(from, to string) (Repaired, error) {
	files, err := vfs.OpenDir(to, 0o700)
	if err != nil {
		return Repaired{}, fmt.Errorf("satstore: make directory: %w", err)
	}
	if from, err = filepath.Abs(from); err != nil {
		return Repaired{}, fmt.Errorf("satstore: repair: %w", err)
	}
	return repair(vfs.Shared{OS: vfs.OS(from)}, files, Options{})
}

func repair(from, to vfs.FS, o Options) (done Repaired, err error) {
	lock, err := to.Lock(lockName)
	if errors.Is(err, vfs.ErrLocked) {
		err = ErrLocked
	}
	if err != nil {
		return done, fmt.Errorf("satstore: repair: the new store: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	names, err := to.List()
	if err == nil && slices.Contains(names, spillName) {
		err = fmt.Errorf("the new store has a file %s, of an earlier attempt: take another directory", spillName)
	}
	if err != nil {
		return done, fmt.Errorf("satstore: repair: %w", err)
	}
	spill, err := to.Create(spillName)
	if err != nil {
		return done, fmt.Errorf("satstore: repair: %w", err)
	}
	defer durable.Discard(to, spillName, spill)
	v := &salvage{}
	if err := v.open(from, spill, o); err != nil {
		return done, fmt.Errorf("satstore: repair: %w", err)
	}
	defer func() { err = errors.Join(err, v.old.closeFiles()) }()
	o.Unit, o.test.shape = v.old.o.Unit, v.old.o.test.shape
	o.Start = timeOf(v.old.calendar.Now(), o.Unit)
	if v.fresh, err = open(claimed{to}, o); err != nil {
		return done, err
	}
	if v.fresh.bucketID > 0 {
		return done, errors.Join(errors.New("satstore: repair: the new store is not empty"),
			v.fresh.Close())
	}
	err = v.copyAll()
	return v.done, errors.Join(err, v.fresh.Close())
}

// claimed is a directory that is locked already.
type claimed struct{ vfs.FS }

// Lock leaves the lock to whoever has it.
func (claimed) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// spillName is a file in the new directory for what a replay writes, since the old store does not change.
const spillName = "REPAIR.tmp"

// A salvage copies the readable data of an old store to a new one.
type salvage struct {
	old, fresh *Store
	batch      copies   // to add
	copied     []uint64 // numbers in the old store, by the number in the new one; if noIDs
	noIDs      bool     // the id index is damaged
	done       Repaired
}

// A copied record is on its way to another store, with its messages. They are not merged, since a
// message may be as large as the largest record, and only the store's user knows how large both are
// together.
type copied struct {
	Item
	seq      uint64
	messages []message
}

// copies are records that are added together.
type copies struct {
	records []copied
	bytes   int
}

// The limits of copies. A record with its messages may exceed that of bytes.
const (
	copyBatch = 1000
	copyBytes = 4 << 20
)

// add adds a record, and reports whether it is time to write.
func (c *copies) add(r copied) (full bool) {
	c.records = append(c.records, r)
	c.bytes += len(r.ID) + len(r.Data)
	for _, m := range r.messages {
		c.bytes += mailSize + len(m.payload)
	}
	return len(c.records) >= copyBatch || c.bytes >= copyBytes
}

func (v *salvage) report(err error) {
	if err == nil || len(v.done.Findings) >= maxFindings {
		return
	}
	for _, known := range v.done.Findings { // a block may be needed more than once
		if known.Error() == err.Error() {
			return
		}
	}
	v.done.Findings = append(v.done.Findings, err)
}

// open loads the old store.
func (v *salvage) open(from vfs.FS, spill vfs.File, o Options) error {
	s, err := lockStore(from, o)
	if err != nil {
		return err
	}
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
		s.file, err = extent.OpenDamaged(s.fs, m.Spans(), spill)
	}
	if err != nil {
		return errors.Join(err, s.closeFiles())
	}
	if err := v.openIDs(m.IDs); err != nil {
		v.report(err)
		v.noIDs = true
	}
	s.rescue(m.Log, v.places(m), v.report)
	for _, err := range s.damage {
		v.report(err)
	}
	if s.stats.Cut > 0 {
		v.report(durable.Corrupt(wal.FileName(s.lastLog), 0,
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

// places makes a bucket index of the records that are readable, for changes in the log: records in
// damaged blocks must lead nowhere. The saved one says which were deleted, even if the message that says
// so is damaged, and which are in buckets that are set aside; but it may be older than the deletion. So the
// ids decide in a bucket with damaged messages. If they are damaged, too, an unknown message may have
// deleted a record there. The damage will be found again.
func (v *salvage) places(m *manifest.Manifest) (unknown uint64) {
	s, r := v.old, extent.NewReader(v.old.file, nil, nil)
	saved := places{}
	for i, e := range m.Pages {
		p := &page{saved: e}
		if e.Size > 0 && s.readPage(p, i, e) != nil {
			p = &page{}
		}
		saved.pages = append(saved.pages, p)
		for n := 0; p.numbers != nil && n < pageNumbers; n++ {
			if at := p.numbers[n]; s.isAside(s.numbers[at]) {
				s.places.set(uint64(i)*pageNumbers+uint64(n), at)
			}
		}
	}
	for b := range s.buckets {
		for _, x := range b.records.Extents() {
			damaged := func(_, _ uint64, _ error) error {
				b.holes = true
				return nil
			}
			_, _ = walkRecords(r, b, x.First, x.First+uint64(x.Count), damaged, func(at uint64, e entry) bool {
				gone := x.Generation <= saved.since(e.seq) && saved.get(e.seq) == 0
				if !gone && !s.hasMoved(b, at) && e.seq < s.seq {
					s.places.set(e.seq, b.number)
				}
				return true
			})
		}
	}
	var doubtful []*bucket
	for b := range s.buckets {
		damaged := func(_, _ uint64, _ error) error {
			if !slices.Contains(doubtful, b) {
				doubtful = append(doubtful, b)
			}
			return nil
		}
		_, _ = walkMessages(r, b, 0, b.messages.Count(), damaged, func(_, seq uint64, m message) bool {
			if m.delete && seq < s.seq {
				s.places.set(seq, 0)
			}
			return true
		})
	}
	for _, b := range doubtful {
		if !v.dropUnknown(r, b) {
			b.holes, unknown = true, 1
		}
	}
	return unknown
}

// dropUnknown takes the records of a bucket out of the bucket index whose ids are not known, unless the ids
// are damaged.
func (v *salvage) dropUnknown(r *extent.Reader, b *bucket) (ok bool) {
	s, ok := v.old, !v.noIDs
	skip := func(_, _ uint64, _ error) error { return nil }
	_, _ = walkRecords(r, b, 0, b.records.Count(), skip, func(at uint64, e entry) bool {
		if s.places.get(e.seq) == b.number && !s.hasMoved(b, at) {
			seq, err := s.seqOf(idset.KeyOf(string(e.id)))
			if ok = ok && err == nil; ok && seq != e.seq {
				s.places.set(e.seq, 0)
			}
		}
		return ok
	})
	return ok
}

// copyAll copies all records, a batch at a time. The error is that of the new store.
func (v *salvage) copyAll() (err error) {
	lost := int64(0) // of the bucket, with those that were deleted
	from := &view{s: v.old, split: v.old.split, damaged: func(records uint64, err error) error {
		v.report(err)
		lost += int64(records)
		return nil
	}}
	for b := range v.old.buckets {
		lost = 0
		_, walked := from.each(b, func(e entry, m []message) bool {
			if e.seq == noRecord {
				lost++
			} else if !deletes(m) && v.batch.add(copied{v.old.item(e, nil), e.seq, m}) {
				err = v.flush()
			}
			return err == nil
		})
		v.done.Lost += min(lost, int64(b.left()))
		if walked != nil {
			v.report(walked)
		}
		if err != nil {
			return err
		}
	}
	return v.flush()
}

// flush adds the batch, except for stale records.
func (v *salvage) flush() error {
	add := v.addLive
	if v.noIDs {
		add = v.addNewest
	}
	kept, err := add(v.batch.records)
	if err == nil {
		err = v.leaveMessages(kept)
	}
	v.done.Records += int64(len(kept))
	v.done.Stale += int64(len(v.batch.records) - len(kept))
	v.batch = copies{}
	return err
}

// leaveMessages leaves the messages of records for their copies.
func (v *salvage) leaveMessages(records []copied) error {
	for _, r := range records {
		for _, m := range r.messages {
			if err := v.fresh.Update(r.ID, m.payload); err != nil {
				return err
			}
			v.done.Messages++
		}
	}
	return nil
}

// addLive adds the records that the id index knows, and returns them.
func (v *salvage) addLive(batch []copied) (live []copied, err error) {
	keys := make([]idset.Key, len(batch))
	for i := range batch {
		keys[i] = idset.KeyOf(batch[i].ID)
	}
	seqs, err := v.old.ids.Find(keys)
	if err != nil {
		return nil, err
	}
	var items []Item
	for i, r := range batch {
		if seqs[i] == r.seq {
			items, live = append(items, r.Item), append(live, r)
		}
	}
	_, err = v.fresh.AddBatch(items)
	return live, err
}

// addNewest adds the records without help from the id index, and returns them. Of several records
// with one id, the one with the highest number is the live one.
func (v *salvage) addNewest(batch []copied) (live []copied, err error) {
	for _, r := range batch {
		number, err := v.fresh.seqOf(idset.KeyOf(r.ID))
		if err != nil {
			return nil, err
		}
		if number != idset.None {
			if v.copied[number] > r.seq {
				continue
			}
			if err := v.fresh.Delete(r.ID); err != nil {
				return nil, err
			}
			i := slices.IndexFunc(live, func(old copied) bool { return old.ID == r.ID })
			if i >= 0 {
				live = slices.Delete(live, i, i+1)
			} else { // it was in an earlier batch
				v.done.Stale++
				v.done.Records--
			}
		}
		if _, err := v.fresh.Add(r.ID, r.At, r.Data); err != nil {
			return nil, err
		}
		v.copied, live = append(v.copied, r.seq), append(live, r)
	}
	return live, nil
}
