package satstore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// recover brings the store to what is on disk, or makes a new one.
func (s *Store) recover() error {
	names, err := s.fs.List()
	if err != nil {
		return fmt.Errorf("satstore: list directory: %w", err)
	}
	b, err := disk.ReadFile(s.fs, checkpointName)
	if errors.Is(err, fs.ErrNotExist) {
		return s.create(names)
	}
	if err != nil {
		return err
	}
	// No crash damages one copy alone, as the file comes by a rename. So a damaged first copy is the
	// disk's fault, which somebody should hear of, and the second one is left to Repair.
	m, err := unseal(b, 0)
	if err != nil {
		return err
	}
	if err := s.adoptManifest(m); err != nil {
		return err
	}
	// After the checkpoint is understood and before anything is made, so that no name is taken.
	s.removeLeftovers(names, m)
	if err := s.openFiles(m); err != nil {
		return err
	}
	if s.o.indexed() {
		if err := s.rebuildPlaces(); err != nil {
			return err
		}
	}
	return s.replayAll(m)
}

// create makes a new store. Files of one without a checkpoint are what a crash at its creation
// left, unless they hold something.
func (s *Store) create(names []string) error {
	for _, name := range names {
		limit := int64(-1)
		switch {
		case !isOurs(name) || name == checkpointTemp:
			continue
		case name == pendingName: // where nothing counts that belongs to no log
			continue
		case name == dataName:
			limit = grain
		case strings.HasPrefix(name, "log-"):
			limit = logHeader
		}
		b, err := disk.ReadFile(s.fs, name)
		if err != nil {
			return err
		}
		if int64(len(b)) > limit {
			return disk.Corrupt(name, 0, "there is no CHECKPOINT beside it")
		}
	}
	if s.o.Radix < 0 && s.o.Horizon > maxFlatHorizon {
		return ErrOptions
	}
	var err error
	if s.data, err = s.fs.Create(dataName); err != nil {
		return fmt.Errorf("satstore: create %s: %w", dataName, err)
	}
	if _, err := s.data.WriteAt(dataHead(), 0); err != nil {
		return fmt.Errorf("satstore: write %s: %w", dataName, err)
	}
	s.data.Random() // extents are read whole
	s.calendar = newCalendar(s.o, s.o.Start)
	s.calendar.create = s.newBucket
	s.live = true
	return s.checkpoint()
}

// adoptManifest takes over what a checkpoint says.
func (s *Store) adoptManifest(m *manifest) error {
	if !m.options.agree(s.o) {
		return ErrOptions
	}
	s.generation, s.oldLog = m.generation, m.log
	s.nextBucket, s.nextSeq, s.records = m.nextBucket, m.nextSeq, m.records
	s.saved = m.places
	s.calendar = newCalendar(s.o, m.now)
	s.calendar.create = s.newBucket
	// The ends of levels are part of the state: they depend on when splits were made, and a replay
	// has to make the next ones at the same changes.
	fits := len(m.ends) == len(s.calendar.levels)
	for i := 0; fits && i < len(m.ends); i++ {
		l := &s.calendar.levels[i]
		fits = m.ends[i] > m.now && m.ends[i] <= l.end && m.ends[i]%l.width == 0
		l.end = m.ends[i]
	}
	s.split = m.split
	for i, b := range m.buckets {
		switch {
		case i < m.due:
			s.due = append(s.due, b)
		case m.split != nil && i == m.due:
			s.split.bucket = b
		default:
			fits = fits && s.calendar.put(b)
		}
		s.number(b)
	}
	for i := range s.numbers {
		if i > 0 && s.numbers[i] == nil {
			s.spare = append(s.spare, uint16(i))
		}
	}
	if !fits {
		return disk.Corrupt(checkpointName, 0, "a bucket has no place")
	}
	return s.findSpace(m)
}

func (s *Store) number(b *bucket) {
	for len(s.numbers) <= int(b.number) {
		s.numbers = append(s.numbers, nil)
	}
	s.numbers[b.number] = b
}

func (s *Store) findSpace(m *manifest) error {
	var used []span
	for _, b := range m.buckets {
		for _, p := range []*part{&b.records, &b.messages} {
			for _, e := range p.extents {
				used = append(used, e.span())
				if e.generation > s.saved.generation {
					s.saved.written += int64(e.size)
				}
			}
		}
	}
	space, overlap := newSpace(used)
	if overlap >= 0 {
		return disk.Corrupt(checkpointName, 0, "two buckets have the same place on disk")
	}
	s.space = space
	return nil
}

// isOurs reports whether a file of this name is a store's. Whatever else somebody keeps in the
// directory is left alone.
func isOurs(name string) bool {
	for _, nameOf := range []func(uint64) string{logName, idset.FileName, placesName} {
		n, err := strconv.ParseUint(name[strings.IndexByte(name, '-')+1:], 10, 64)
		if err == nil && name == nameOf(n) {
			return true
		}
	}
	return name == dataName || name == checkpointName || name == checkpointTemp ||
		name == pendingName
}

// removeLeftovers removes what no checkpoint names. What cannot be removed does no harm.
func (s *Store) removeLeftovers(names []string, m *manifest) {
	counts := map[string]bool{
		dataName: true, checkpointName: true, pendingName: m.log > 0,
		logName(m.log): m.log > 0, placesName(m.places.number): m.places.number > 0,
	}
	for _, name := range m.ids.Names() {
		counts[name] = true
	}
	for _, name := range names {
		if isOurs(name) && !counts[name] {
			_ = s.fs.Remove(name)
		}
	}
}

func (s *Store) openFiles(m *manifest) error {
	var err error
	if s.data, err = s.fs.Open(dataName); err != nil {
		return fmt.Errorf("satstore: open %s: %w", dataName, err)
	}
	s.data.Random() // extents are read whole
	head := make([]byte, len(dataHead()))
	if err := disk.ReadFull(s.data, dataName, head, 0); err != nil {
		return err
	}
	if !slices.Equal(head, dataHead()) {
		return disk.Corrupt(dataName, 0, "no buckets, or of another version")
	}
	ids, err := idset.Open(s.fs, m.ids)
	if err == nil {
		s.ids = ids
	}
	return err
}

// dataHead is what the data file begins with. It is on disk: do not change it, add a version.
func dataHead() []byte { return []byte("SATBKT1\n") }

func durationOf(n int64) time.Duration { return time.Duration(n) }

// rebuildPlaces makes the bucket index of the one that was saved, if there is one, and of all
// records that were written since.
func (s *Store) rebuildPlaces() error {
	if s.saved.number > 0 {
		f, err := s.fs.Open(placesName(s.saved.number))
		if err != nil {
			return fmt.Errorf("satstore: open places: %w", err)
		}
		err = s.places.read(f, s.saved.number)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	type later struct {
		b *bucket
		e extent
	}
	var all []later
	s.eachBucket(func(b *bucket) {
		for _, e := range b.records.extents {
			if e.generation > s.saved.generation {
				all = append(all, later{b, e})
			}
		}
	})
	// The newest last: a record that was split off a bucket is in two, until the split is done.
	slices.SortStableFunc(all, func(x, y later) int {
		return cmp.Compare(x.e.generation, y.e.generation)
	})
	var c cursor
	for _, l := range all {
		if c.bucket != l.b {
			c = cursor{s: s, bucket: l.b, raw: c.raw, data: c.data}
		}
		if err := s.placeExtent(&c, l.e); err != nil {
			return err
		}
	}
	return nil
}

// placeExtent notes the places of the records in an extent that are still there.
func (s *Store) placeExtent(c *cursor, e extent) error {
	b := c.bucket
	for at := e.first; at < e.first+uint64(e.count); {
		found, err := c.next(&b.records, at)
		if err != nil {
			return err
		}
		d := disk.Decoder{B: found.raw}
		for range found.count {
			entry := b.takeEntry(&d, true)
			if d.Bad || entry.seq >= s.nextSeq {
				return s.badEntry(b, &b.records, at)
			}
			gone := b.isDone(at)
			if s.split != nil && s.split.bucket == b {
				gone = at < s.split.moved
			}
			if !gone {
				s.places.set(entry.seq, b.number)
			}
			at++
		}
	}
	return nil
}
