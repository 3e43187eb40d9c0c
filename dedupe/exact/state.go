package exact

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// load brings s to the state on disk, and removes files that are not in use.
func (s *Set) load() error {
	names, err := s.fs.List()
	if err != nil {
		return fmt.Errorf("exact: list directory: %w", err)
	}
	m, err := readManifest(s.fs, names)
	if err != nil {
		return err
	}
	if m == nil {
		return s.create(names)
	}
	s.file = m.last()
	names = slices.DeleteFunc(names, func(name string) bool { return fileNumber(name) > m.last()+maxLeft })
	for _, name := range names {
		s.file = max(s.file, fileNumber(name))
	}
	// A process that was killed may have replaced the manifest without syncing that.
	if err := s.fs.Sync(); err != nil {
		return fmt.Errorf("exact: sync directory: %w", err)
	}
	counts := m.names()
	for _, name := range names {
		if isOurs(name) && !counts[name] {
			if err := s.fs.Remove(name); err != nil {
				return fmt.Errorf("exact: remove leftover: %w", err)
			}
		}
	}
	s.loading = true
	err = s.restore(m)
	s.loading = false
	if err == nil && s.ahead {
		err = s.commit(s.manifest(), nil)
	}
	return err
}

// create creates an empty Set. Files without a manifest are the remains of a lost Set.
func (s *Set) create(names []string) error {
	for _, name := range names {
		if fileNumber(name) > 0 {
			return durable.Corrupt(name, 0, "the directory has no MANIFEST: it is lost, or these files are not those of a Set")
		}
	}
	s.key = siphash.NewKey()
	s.onDisk = &manifest{}
	return s.commit(s.manifest(), nil)
}

// restore opens the index and replays the entries that are not in it.
func (s *Set) restore(m *manifest) error {
	s.onDisk, s.key, s.trimmed, s.indexed = m, m.key, m.trimmed, m.indexed
	if m.index > 0 {
		x, err := openIndex(s.fs, m.index, func(f fingerprint) { s.filter.addNew(f) })
		if err != nil {
			return err
		}
		s.index = x
		if x.count != m.count {
			return durable.Corrupt(x.name(), 0, "fingerprint count differs from the MANIFEST")
		}
	}
	last := len(m.segments) - 1
	if last < 0 {
		return nil // nothing was added yet
	}
	for i, segment := range m.segments[:last] {
		s.older = append(s.older, segment)
		if err := s.replay(segment, m.segments[i+1].first); err != nil {
			return err
		}
	}
	r, err := openSegment(s.fs, m.segments[last])
	if err != nil {
		return err
	}
	s.log.file = r.file // for closeFiles
	l, err := r.replay(s.remember)
	if err != nil {
		return err
	}
	s.log = l
	if l.next < s.indexed {
		return durable.Corrupt(l.name(), l.end, "the log ends before the last indexed entry")
	}
	return nil
}

// replay checks a complete segment of the log, and adds its entries, up to the first of the next
// segment. If all of them are in the index, it only checks the size: Entries verifies the contents
// when it reads them.
func (s *Set) replay(segment segment, next uint64) error {
	r, err := openSegment(s.fs, segment)
	if err != nil {
		return err
	}
	defer r.file.Close()
	if next <= s.indexed {
		return nil
	}
	for r.more() {
		url, _, err := r.next()
		if err == nil {
			err = s.remember(r.seq-1, url)
		}
		if err != nil {
			return err
		}
	}
	if r.seq != next {
		return durable.Corrupt(r.name(), r.size, "entry count differs from the MANIFEST")
	}
	return nil
}

// remember adds an entry from the log to the tables.
func (s *Set) remember(seq uint64, url []byte) error {
	if seq < s.indexed {
		return nil
	}
	print := s.fingerprint(string(url))
	s.filter.addNew(print)
	for s.fresh.full() {
		if err := s.advance(seq); err != nil {
			return err
		}
	}
	s.fresh.add(print)
	return nil
}

// makeRoom ensures that an entry can be added to the log and to s.fresh, and does a part of the
// sweep. It requires that s.mu is held.
func (s *Set) makeRoom() error {
	if err := s.openLog(); err != nil {
		return err
	}
	for n := 0; s.sweepDue() && (n < maxSteps || s.fresh.full()); n++ {
		if err := s.advance(s.log.next); err != nil {
			return err
		}
	}
	return nil
}

// maxSteps is the number of steps by which a call catches up with what merges have left undone.
const maxSteps = 4

// openLog ensures that an entry can be added to the log.
func (s *Set) openLog() error {
	if s.ahead {
		if err := s.commit(s.manifest(), nil); err != nil {
			return err
		}
	}
	if s.log.file == nil || s.log.torn || s.log.end >= s.segmentSize {
		return s.roll()
	}
	return nil
}

// sweepDue reports whether a step of the sweep is due before the next entry.
func (s *Set) sweepDue() bool { return s.fresh.full() || s.sweep != nil && s.sweep.due(s.fresh) }

// advance does a step of the sweep. If there is none, it starts one with the entries in s.fresh,
// which are numbered below end.
func (s *Set) advance(end uint64) (err error) {
	if s.sweep == nil {
		if s.frozen.n == 0 { // else an earlier sweep has failed
			s.fresh, s.frozen, s.frozenEnd = s.frozen, s.fresh, end
		}
		s.file++
		s.sweep, err = newSweep(s.fs, s.file, s.index, s.frozen, &s.stats.Read)
		return err
	}
	if s.sweep.done {
		return s.install(s.sweep)
	}
	if err := s.sweep.step(s.stepPages); err != nil {
		// The disk may be full, so free the space. The sweep starts again when s.fresh is full.
		err = errors.Join(err, s.sweep.drop(s.fs))
		s.sweep = nil
		return err
	}
	return nil
}

// install replaces the index with the new one of a sweep.
func (s *Set) install(w *sweep) error {
	s.stats.Written += w.to.End()
	s.stats.Sweeps++
	w.file.Random()
	old := s.index
	s.index, s.indexed, s.sweep = w.index, s.frozenEnd, nil
	s.frozen.clear()
	if old.file != nil {
		s.files.Lock()
		_ = old.file.Close() // nothing was written to it
		s.files.Unlock()
		s.garbage = append(s.garbage, old.name())
	}
	if s.loading { // load writes the manifest
		s.ahead = true
		return nil
	}
	return s.commit(s.manifest(), nil)
}

// roll starts the next segment of the log.
func (s *Set) roll() error {
	s.file++
	added := segment{number: s.file, first: s.log.next}
	created, err := s.fs.Create(added.name())
	if err != nil {
		return fmt.Errorf("exact: create segment: %w", err)
	}
	f := &durable.SyncedFile{File: created}
	m := s.manifest()
	if s.log.file != nil {
		m.segments[len(m.segments)-1].size = s.log.end
	}
	m.segments = append(m.segments, added)
	if _, err = f.WriteAt(added.header(), 0); err != nil {
		err = fmt.Errorf("exact: write segment: %w", err)
	} else {
		err = s.commit(m, f)
	}
	if err != nil {
		if s.failed == nil { // else the manifest on disk may name the file
			_ = s.fs.Remove(added.name())
		}
		return errors.Join(err, f.Close())
	}
	if s.log.file != nil {
		s.files.Lock()
		err = s.log.file.Close()
		s.files.Unlock()
		s.log.size = s.log.end
		s.older = append(s.older, s.log.segment)
	}
	s.log = log{
		segment: added, file: f, next: added.first, end: segmentHeader, synced: segmentHeader,
	}
	return err
}

// manifest returns the state in memory, and drops the segments that are no longer needed.
func (s *Set) manifest() *manifest {
	needed := min(s.trimmed, s.indexed)
	for len(s.older) > 0 {
		next := s.log.first
		if len(s.older) > 1 {
			next = s.older[1].first
		}
		if next > needed {
			break
		}
		s.garbage = append(s.garbage, s.older[0].name())
		s.older = s.older[1:]
	}
	m := &manifest{
		key: s.key, trimmed: s.trimmed, indexed: s.indexed,
		index: s.index.number, count: s.index.count, segments: slices.Clone(s.older),
	}
	if s.log.file != nil {
		m.segments = append(m.segments, s.log.segment)
	}
	return m
}

// commit makes m the state on disk; added is the new segment in m, or nil. If it fails before
// anything has changed, s.ahead is set and the next call tries again. After later failures, the
// state on disk is unknown. It requires that s.mu is held; settle makes it fast.
func (s *Set) commit(m *manifest, added vfs.File) (err error) {
	s.ahead = true
	size := s.log.end
	for _, written := range []vfs.File{s.log.file, s.index.file, added} {
		unchanged := written == s.log.file && size == s.log.synced ||
			written == s.index.file && m.index == s.onDisk.index
		if written != nil && !unchanged {
			err = errors.Join(err, written.Sync())
		}
	}
	failed := err != nil
	if !failed {
		err = durable.Replace(s.fs, manifestName, m.encode())
		failed = errors.Is(err, durable.ErrUnknown)
	}
	if failed {
		s.failed = fmt.Errorf("replace manifest: %w", err)
		return s.broken()
	}
	if err != nil {
		return fmt.Errorf("exact: %w", err)
	}
	if size > s.log.synced {
		s.log.markSynced(size)
	}
	for _, name := range s.garbage {
		_ = s.fs.Remove(name) // if this fails, the next Open does it
	}
	s.onDisk, s.ahead, s.garbage = m, false, nil
	return nil
}
