package satstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// A snapshot is the content of a checkpoint at the moment when one log ends and the next one
// begins. Taking it holds s.mu for a time that grows with the number of buckets, not of records.
// The data that it refers to is written afterwards, while the store is in use.
type snapshot struct {
	m     manifest.Manifest
	parts [][2][]*extent.Group // of each bucket: the groups that follow its extents
	mine  []*extent.Group      // those that this checkpoint writes
	pages []*pageImage
	cut   extent.Cut // space that is free once the checkpoint is on disk
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

// checkpoint begins a new log and writes the state from which that log starts. The last
// checkpoint saves the whole bucket index, so that the next Open need not read records to
// rebuild it.
//
// The order makes a crash harmless. New data goes to space that the old checkpoint does not use.
// After a sync, one rename replaces the checkpoint. Only then is data that the old one needs
// removed or overwritten. A crash before the rename leaves the old checkpoint, its log, and the new
// log that continues it.
func (s *Store) checkpoint(last bool) error {
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	s.mu.Lock()
	err, refused := s.failed, s.broken
	if s.closed && !last {
		err, refused = ErrClosed, true
	}
	s.mu.Unlock()
	if refused { // perhaps while this one waited
		return err
	}
	if err = s.replaceCheckpoint(last); errors.Is(err, wal.ErrBroken) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.fail(err) // before the next one begins
	}
	return err
}

func (s *Store) replaceCheckpoint(last bool) error {
	snap, err := s.takeSnapshot(last)
	if err != nil {
		return err
	}
	if err := s.save(snap); err != nil {
		s.undo(snap)
		return err
	}
	s.finish(snap)
	return nil
}

// takeSnapshot takes a snapshot at the beginning of a new log. If the newest log has no changes yet, it
// is new enough: otherwise each Sync on a full disk would leave one more open file.
func (s *Store) takeSnapshot(last bool) (snap *snapshot, err error) {
	take := func() { snap = s.snapshot(last) }
	switch {
	case s.log == nil: // there are no changes yet
		if s.first == nil {
			if s.first, err = s.createLog(); err != nil {
				return nil, err
			}
			s.lastLog++
		}
		s.mu.Lock()
		take()
		s.mu.Unlock()
	case !s.log.AtStart(take):
		next, err := s.createLog()
		if err != nil {
			return nil, err
		}
		if err = s.log.Rotate(next, take); err != nil {
			durable.Discard(s.fs, wal.FileName(s.lastLog+1), next)
			return nil, err
		}
		s.lastLog++
	}
	snap.m.Log = s.lastLog
	return snap, nil
}

// createLog creates the next log file. Its number counts as used once the log may have changes: a
// replay finds the log that continues another one by its number, so there must be no gap.
func (s *Store) createLog() (*wal.File, error) {
	s.mu.Lock()
	now := s.calendar.Now()
	s.mu.Unlock()
	next, err := wal.Create(s.fs, s.lastLog+1, now)
	if err != nil {
		return nil, err
	}
	if err := s.fs.Sync(); err != nil {
		durable.Discard(s.fs, wal.FileName(s.lastLog+1), next)
		return nil, fmt.Errorf("satstore: sync directory: %w", err)
	}
	return next, nil
}

// pageShare is the ratio of buffer bytes to bytes of the bucket index that a checkpoint saves. At
// 16, saving it adds a sixteenth to the bytes written, and recovery reads about 16 times the size
// of the index.
const pageShare = 16

// snapshot requires that s.mu is held.
func (s *Store) snapshot(last bool) *snapshot {
	snap := &snapshot{mine: s.unwritten}
	s.unwritten = nil
	for b := range s.buckets {
		if b.done != nil {
			b.records.Trim(b.allDone, s.file.Release)
		}
	}
	snap.mine = append(snap.mine, s.takeAll()...)
	pages := max(1, int(s.o.Buffer/pageShare/(2*pageNumbers)))
	if last { // the store is being closed
		pages = -1
	}
	snap.pages = s.places.images(pages)
	s.ids.Freeze()
	s.idChanges = 0
	s.changed.Broadcast()
	snap.m = manifest.Manifest{
		Unit: s.o.Unit, Shape: s.o.test.shape, Generation: s.generation, Now: s.calendar.Now(),
		NextBucket: s.bucketID, NextSeq: s.seq, Records: s.records,
		Ends: s.calendar.Ends(), Pages: s.places.extents(s.generation, s.file.Release),
		Due: len(s.due), Aside: len(s.aside),
	}
	if p := s.split; p != nil {
		snap.m.Split = &manifest.Split{
			Moved: p.moved, Forwarded: p.forwarded, Into: len(p.into),
		}
		if len(p.into) > 0 {
			snap.m.Split.At = slices.Index(s.due, p.into[0])
		}
	}
	for b := range s.buckets {
		snap.m.Buckets = append(snap.m.Buckets, manifest.Bucket{
			ID: b.id, Number: b.number, Start: b.start, Width: b.width,
			Records:  manifest.Part{Count: b.records.Count(), Extents: b.records.Extents()},
			Messages: manifest.Part{Count: b.messages.Count(), Extents: b.messages.Extents()},
			Gone:     b.gone, Done: slices.Clone(b.done),
		})
		snap.parts = append(snap.parts, [2][]*extent.Group{
			b.records.Taken(nil), b.messages.Taken(nil),
		})
	}
	snap.cut = s.file.Cut()
	s.generation++
	return snap
}

// save writes everything that a snapshot refers to, and then the manifest.
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
		// Which pages are on disk is unknown, and a second sync would not help.
		return fmt.Errorf("%w: %w", wal.ErrBroken, err)
	}
	snap.m.IDs = s.ids.State()
	if err := snap.m.Save(s.fs); err != nil {
		if errors.Is(err, durable.ErrUnknown) {
			return fmt.Errorf("%w: %w", wal.ErrBroken, err) // either checkpoint may be on disk
		}
		return err
	}
	return s.adoptLog()
}

// awaitGroups waits until all groups are written, and adds their extents to the manifest.
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

// awaitGroup waits until a group is written. It retries groups that could not be written. It
// requires that s.mu is held, and releases it while it waits.
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
func (s *Store) adoptLog() error {
	if s.log != nil {
		return nil
	}
	log, err := wal.Open(s.fs, &s.mu, s.first, s.o.test.pending)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.first = log, nil
	s.startCommit()
	return nil
}

// undo cleans up after a failed checkpoint. Its log stays, since it may already have changes, and a
// crash may leave either checkpoint.
func (s *Store) undo(snap *snapshot) {
	s.file.Keep(snap.cut)
	for _, p := range snap.pages {
		if p.saved.Size > 0 {
			s.file.Release(p.saved.Span())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.keep(snap.pages)
}

// finish releases the data that only the old checkpoint needed. A file that cannot be removed stays
// until the next Open.
func (s *Store) finish(snap *snapshot) {
	s.mu.Lock()
	for _, p := range snap.pages {
		page := s.places.pages[p.index]
		if page.saved.Size > 0 {
			s.file.Release(page.saved.Span())
		}
		page.saved = p.saved
	}
	s.pool.SetLimit(s.o.Buffer) // a replay may have raised it
	s.stats.Checkpoints++
	s.request(&s.merger)
	s.mu.Unlock()
	s.log.Release(snap.m.Log)
	s.ids.Saved(snap.m.IDs)
	for _, name := range s.leftovers {
		_ = s.fs.Remove(name)
	}
	s.leftovers = nil
	_ = s.file.Free(snap.cut) // a file that cannot be shortened does no harm
}
