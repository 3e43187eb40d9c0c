package satstore

import (
	"fmt"
	"slices"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// A snapshot is the state at the moment when one log ends and the next one begins, as a checkpoint
// will say it. It is taken under s.mu, in a time that grows with the number of buckets and not of
// records; all that it names is written while the store goes on.
type snapshot struct {
	m     manifest.Manifest
	parts [][2][]*extent.Group // of each bucket: what will be behind its extents
	mine  []*extent.Group      // those of them that nobody is writing yet
	pages []*pageImage
	next  *wal.File     // if there is no log yet
	cut   []extent.Span // room that the snapshot does not need
}

// checkpointIfLong writes a checkpoint if the log has become long.
func (s *Store) checkpointIfLong() error {
	s.mu.Lock()
	long := s.refusal() == nil && s.log != nil && s.logIsLong()
	s.mu.Unlock()
	if !long {
		return nil
	}
	return s.checkpoint(false)
}

// checkpoint lets a new log begin and writes the state to which it belongs. If it is the last
// one, the whole bucket index is saved, and the next Open needs not read records to make it.
//
// The order is what makes a crash harmless. Everything new is written to places that the old
// checkpoint does not know; then it is synced; then one rename lets the new checkpoint count.
// Only when that is on disk is anything removed or used again that the old one needs. A crash
// before the rename finds the old checkpoint, with its log and the one that goes on after it.
func (s *Store) checkpoint(last bool) error {
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	if err := s.shrink(); err != nil {
		return err
	}
	next, err := s.createLog()
	if err != nil {
		return err
	}
	snap, err := s.rotate(next, last)
	if err != nil {
		disk.Discard(s.fs, wal.FileName(s.lastLog), next)
		return err
	}
	snap.m.Log = s.lastLog
	if err := s.save(snap); err != nil {
		s.undo(snap)
		return err
	}
	s.finish(snap)
	return nil
}

// createLog makes the file of the next log. No number is used twice.
func (s *Store) createLog() (*wal.File, error) {
	s.lastLog++
	s.mu.Lock()
	now := s.calendar.Now()
	s.mu.Unlock()
	next, err := wal.Create(s.fs, s.lastLog, now)
	if err != nil {
		return nil, err
	}
	if err := s.fs.Sync(); err != nil {
		disk.Discard(s.fs, wal.FileName(s.lastLog), next)
		return nil, fmt.Errorf("satstore: sync directory: %w", err)
	}
	return next, nil
}

// rotate takes a snapshot between the last change of the old log and the first one of the new.
func (s *Store) rotate(next *wal.File, last bool) (snap *snapshot, err error) {
	if s.log == nil { // there are no changes yet
		s.mu.Lock()
		defer s.mu.Unlock()
		snap = s.snapshot(last)
		snap.next = next
		return snap, nil
	}
	err = s.log.Rotate(next, func() { snap = s.snapshot(last) })
	return snap, err
}

// pageShare is how many bytes of buffers there are for each byte of the bucket index that a
// checkpoint saves: that adds a sixteenth to what is written, and recovery reads sixteen times as
// much as the index has.
const pageShare = 16

// snapshot requires that s.mu is held.
func (s *Store) snapshot(last bool) *snapshot {
	snap := &snapshot{mine: s.unwritten}
	s.unwritten = nil
	for _, b := range s.due {
		b.records.Trim(b.allDone, s.file.Release)
	}
	snap.mine = append(snap.mine, s.takeAll()...)
	pages := max(1, int(s.o.Buffer/pageShare/(2*pageNumbers)))
	if last {
		pages = -1 // the store is closed
	}
	snap.pages = s.places.copy(pages)
	s.ids.Freeze()
	snap.m = manifest.Manifest{
		Unit: s.o.Unit, Shape: s.o.test.shape, Generation: s.generation, Now: s.calendar.Now(),
		NextBucket: s.bucketID, NextSeq: s.seq, Records: s.records, Ends: s.calendar.Ends(),
		Pages: s.places.extents(s.generation), Due: len(s.due),
	}
	if p := s.split; p != nil {
		snap.m.Split = &manifest.Split{Moved: p.moved, Forwarded: p.forwarded}
	}
	for b := range s.buckets {
		snap.m.Buckets = append(snap.m.Buckets, manifest.Bucket{
			ID: b.id, Number: b.number, Start: b.start, Width: b.width,
			Records:  manifest.Part{Count: b.records.Count(), Extents: b.records.Extents()},
			Messages: manifest.Part{Count: b.messages.Count(), Extents: b.messages.Extents()},
			Done:     slices.Clone(b.done),
		})
		snap.parts = append(snap.parts, [2][]*extent.Group{
			b.records.Taken(nil), b.messages.Taken(nil),
		})
	}
	snap.cut = s.file.Cut()
	s.generation++
	return snap
}

// save writes all that a snapshot names, and then the manifest.
func (s *Store) save(snap *snapshot) error {
	if err := s.write(snap.mine); err != nil {
		return err
	}
	if err := s.awaitGroups(snap); err != nil {
		return err
	}
	if err := s.ids.Flush(); err != nil {
		return err
	}
	for _, p := range snap.pages {
		b := extent.Block{Magic: extent.Places, Bucket: uint64(p.index), Count: 1, Raw: p.encode()}
		var err error
		if p.saved, err = s.file.Put(b, snap.m.Generation); err != nil {
			return err
		}
		snap.m.Pages[p.index] = p.saved
	}
	if err := s.file.Sync(); err != nil {
		// What is on disk nobody knows, and asking again would not tell.
		return fmt.Errorf("%w: %w", wal.ErrBroken, err)
	}
	snap.m.IDs = s.ids.State()
	if err := snap.m.Save(s.fs); err != nil {
		return err
	}
	return s.adoptLog(snap)
}

// awaitGroups waits for what others are writing, and puts all that was written into the manifest.
func (s *Store) awaitGroups(snap *snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, groups := range snap.parts {
		b := &snap.m.Buckets[i]
		for j, p := range []*manifest.Part{&b.Records, &b.Messages} {
			p.Extents = slices.Clip(p.Extents)
			for _, g := range groups[j] {
				if err := s.awaitGroup(g); err != nil {
					return err
				}
				p.Extents = append(p.Extents, g.Extent)
			}
		}
	}
	return nil
}

// awaitGroup waits until a group has been written, and writes it if somebody else could not. It
// requires that s.mu is held, and lets go of it.
func (s *Store) awaitGroup(g *extent.Group) error {
	for !g.Done() {
		if !slices.Contains(s.unwritten, g) {
			s.changed.Wait()
			continue
		}
		again := s.unwritten
		s.unwritten = nil
		s.mu.Unlock()
		err := s.write(again)
		s.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// adoptLog opens the first log for changes.
func (s *Store) adoptLog(snap *snapshot) error {
	if snap.next == nil {
		return nil
	}
	log, err := wal.Open(s.fs, &s.mu, snap.next, s.o.test.pending)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, snap.next = log, nil
	s.startCommit()
	return nil
}

// undo goes on from a checkpoint that failed. Its log stays: either checkpoint may be found
// later, or changes may be in it already.
func (s *Store) undo(snap *snapshot) {
	s.file.Keep(snap.cut)
	for _, p := range snap.pages {
		if p.saved.Size > 0 {
			s.file.Release(p.saved.Span())
		}
	}
	if snap.next != nil {
		_ = snap.next.Close() // it is empty
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.keep(snap.pages)
}

// finish goes on from a checkpoint that is on disk. What it made superfluous may stay behind if it
// cannot be removed: the next Open tries again.
func (s *Store) finish(snap *snapshot) {
	s.mu.Lock()
	for _, p := range snap.pages {
		page := s.places.pages[p.index]
		if page.saved.Size > 0 {
			s.file.Release(page.saved.Span())
		}
		page.saved = p.saved
	}
	s.pool.SetLimit(s.o.Buffer) // a replay may have needed more
	s.stats.Checkpoints++
	s.ask(&s.merger)
	s.mu.Unlock()
	s.log.Release(snap.m.Log)
	s.ids.Saved(snap.m.IDs)
	for _, name := range s.leftovers {
		_ = s.fs.Remove(name)
	}
	s.leftovers = nil
	_ = s.file.Free(snap.cut) // that the file cannot be shortened does no harm
}

// shrink moves extents from the end of the data file to its beginning, if half of it is free, so
// that the file can be cut off: a few for each checkpoint.
func (s *Store) shrink() error {
	for range shrinkExtents {
		size, free := s.file.Size()
		if free < size/2 || free < 2*s.o.Buffer {
			return nil
		}
		s.movePages(size / 2)
		if moved, err := s.lowerLast(); err != nil || !moved {
			return err
		}
	}
	return nil
}

// movePages lets the pages of the bucket index that lie behind an offset be saved again.
func (s *Store) movePages(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, page := range s.places.pages {
		if page != nil && page.saved.Size > 0 && page.saved.Offset() >= offset {
			page.changed = true
		}
	}
}

// shrinkExtents bounds what one checkpoint moves to some megabytes.
const shrinkExtents = 16

// lowerLast moves the last extent of the file.
func (s *Store) lowerLast() (moved bool, err error) {
	var in *extent.Part
	var last extent.Extent
	s.mu.Lock()
	for b := range s.buckets {
		for _, p := range []*extent.Part{&b.records, &b.messages} {
			for _, e := range p.Extents() {
				if e.At >= last.At {
					in, last = p, e
				}
			}
		}
	}
	s.mu.Unlock()
	if in == nil {
		return false, nil
	}
	to, moved, err := s.file.Lower(last)
	if err != nil || !moved {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Replace(last, to) {
		s.file.Release(last.Span())
	} else { // it has gone meanwhile
		s.file.Release(to.Span())
	}
	return true, nil
}
