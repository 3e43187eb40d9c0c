package exact

import (
	"cmp"
	"fmt"
)

// merge decides about the sightings that wait. It requires that s.mu is held.
//
// The new state is written to new files, or behind the end of the last segment, and becomes the
// state of the Set when the manifest is replaced. Until then nothing that counts is touched. If it
// fails, the sightings that it has not dropped still wait, in whatever order.
func (s *Set) merge() error {
	s.waiting = sortPrints(s.waiting)
	s.stats.New += s.filter.mark(s.waiting)
	for _, r := range s.runs {
		unknown, err := r.dropKnown(s.waiting, &s.stats.Read)
		if err != nil {
			return err
		}
		s.waiting = unknown
	}
	if len(s.waiting) == 0 {
		s.pile.clear()
		return nil
	}
	old, next := s.disked, s.disked.clone()
	merged, err := s.writeRun(next)
	if err != nil {
		return err
	}
	entries, err := s.writeEntries(next)
	if err == nil {
		err = s.commit(next, merged.file, entries)
	} else {
		s.discard(next)
	}
	if entries != nil {
		_ = entries.Close() // what counts of it is on disk by now
	}
	if err != nil {
		_ = merged.file.Close() // the first error says more
		s.broken = true
		return err
	}
	kept := len(next.runs) - 1
	for _, r := range s.runs[kept:] {
		_ = r.file.Close() // it is gone already, and nothing was written to it
	}
	s.runs = append(s.runs[:kept:kept], merged)
	s.marks.add(next.segments[len(next.segments)-1].number, old.end(next))
	s.waiting = s.waiting[:0]
	s.pile.clear()
	s.broken = false
	s.stats.Merges++
	return nil
}

// writeRun writes the new fingerprints to a run, together with those of the shorter runs, such that
// each run stays at least twice as long as the next. So there are few runs, and each fingerprint is
// written again only a few times, when the runs have doubled.
func (s *Set) writeRun(next *manifest) (*run, error) {
	kept, count := len(s.runs), int64(len(s.waiting))
	for kept > 0 && s.runs[kept-1].count < 2*count {
		kept--
		count += s.runs[kept].count
	}
	s.file++
	w, err := createRun(s.disk, s.file, s.disked.width, count)
	if err != nil {
		return nil, err
	}
	err = w.mergeRuns(s.runs[kept:], s.waiting, &s.stats.Read)
	if err == nil {
		err = w.finish()
	}
	s.stats.Written += w.to.n
	if err != nil {
		_ = w.file.Close() // the first error says more
		_ = s.disk.remove(w.name())
		return nil, err
	}
	next.runs = append(next.runs[:kept], runSize{w.number, count})
	return w.run, nil
}

// writeEntries writes the new URLs in the order of their first sight. The file that it returns, if
// any, is the caller's to close, even if there is an error.
func (s *Set) writeEntries(next *manifest) (file, error) {
	sortPlaces(s.waiting)
	w, err := s.openLast(next)
	if err != nil {
		return nil, err
	}
	err = cmp.Or(s.appendEntries(w, next), w.finish())
	s.stats.Written += w.n
	next.segments[len(next.segments)-1].size = w.at
	if err != nil {
		return w.to, fmt.Errorf("exact: write entries: %w", err)
	}
	return w.to, nil
}

// appendEntries completes the items of the pile to entries. What was in a file meanwhile is looked
// at: its URL must still have its fingerprint. The caller's bytes are trusted to the disk for the
// time of a batch, as a checksum for each sighting would be paid for those that are known, too.
func (s *Set) appendEntries(w *writer, next *manifest) error {
	items := newPileReader(&s.pile, len(s.waiting), &s.stats.Read)
	var record []byte
	for _, sighting := range s.waiting {
		place := sighting.place()
		item, err := items.item(place)
		if err != nil {
			return err
		}
		if place < s.pile.spilled {
			url, _, ok := parseContents(item[4:])
			if !ok || s.fingerprint(url) != sighting.print() {
				return &CorruptError{pileName, place, "not what was written"}
			}
		}
		record = appendRecord(record[:0], next.next, item)
		w.write(record)
		next.next++
	}
	return nil
}

// openLast opens the last segment behind its end, or makes a new one if it is long enough. After
// a failed merge the MANIFEST on disk may already name what lies behind the end. That is not written
// over, not even with the same bytes, so a new one is made, too.
func (s *Set) openLast(next *manifest) (*writer, error) {
	n := len(next.segments)
	if n > 0 && next.segments[n-1].size < s.segmentSize && !s.broken {
		f, err := s.disk.open(next.segments[n-1].name())
		if err != nil {
			return nil, fmt.Errorf("exact: open segment: %w", err)
		}
		return newWriter(f, next.segments[n-1].size), nil
	}
	s.file++
	added := segment{number: s.file, first: next.next}
	f, err := s.disk.create(added.name())
	if err != nil {
		return nil, fmt.Errorf("exact: create segment: %w", err)
	}
	next.segments = append(next.segments, added)
	w := newWriter(f, 0)
	w.write(added.header())
	return w, nil
}

// commit makes next the state of the Set and removes the files that it does not name. The files
// were written for it and are not synced yet. It requires that s.mu is held.
func (s *Set) commit(next *manifest, written ...file) error {
	if err := next.prepare(s.disk, !s.options.NoSync, written...); err != nil {
		s.discard(next)
		return err
	}
	if err := replaceManifest(s.disk, !s.options.NoSync); err != nil {
		return err
	}
	s.removeBut(next, s.disked)
	s.disked = next
	return nil
}

// discard removes what was written for a state that no MANIFEST names. A full disk needs the room
// for the next try.
func (s *Set) discard(next *manifest) { s.removeBut(s.disked, next) }

// removeBut removes the files that are named by a manifest, but for those that another one keeps.
// What cannot be removed now is removed when the Set is opened again.
func (s *Set) removeBut(kept, from *manifest) {
	names := kept.names()
	for name := range from.names() {
		if !names[name] {
			_ = s.disk.remove(name)
		}
	}
}
