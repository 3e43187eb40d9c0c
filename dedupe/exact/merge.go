package exact

import (
	"cmp"
	"fmt"
	"slices"
)

// A sighting is a URL that waits for the next merge.
type sighting struct {
	print fingerprint
	at    uint32 // where its contents begin in the arena, so also a clock
	size  uint32 // of them; less than 1<<31
	isNew bool   // by the Bloom filter, surely
}

const sightingBytes = 32

// A batch is the sightings that wait, in areas of a fixed size.
type batch struct {
	sightings []sighting
	sorted    []sighting // room for sorting them
	arena     []byte
}

const (
	maxUvarint = 3 // bytes of a length below MaxEntry

	// meanContents is what URLs and data are expected to take, to divide the memory. A URL of
	// the web has 60 to 90 bytes.
	meanContents = 100
)

// init takes the memory.
func (b *batch) init(memory int64) {
	n := memory / (2*sightingBytes + meanContents)
	b.sightings, b.sorted = make([]sighting, 0, n), make([]sighting, 0, n)
	b.arena = make([]byte, 0, min(n*meanContents, 1<<31))
}

// fits reports whether there is room for one more sighting.
func (b *batch) fits(size int) bool {
	return len(b.sightings) < cap(b.sightings) && len(b.arena)+size+maxUvarint <= cap(b.arena)
}

func (b *batch) add(print fingerprint, isNew bool, url string, data []byte) {
	at := len(b.arena)
	b.arena = appendContents(b.arena, url, data)
	b.sightings = append(b.sightings, sighting{print, uint32(at), uint32(len(b.arena) - at), isNew})
}

func (b *batch) contents(s sighting) []byte { return b.arena[s.at : s.at+s.size] }

func (b *batch) clear() { b.sightings, b.arena = b.sightings[:0], b.arena[:0] }

// sort brings the sightings into the order of the runs, and drops all but the first of each URL. As
// fingerprints are spread evenly, their highest bits part them into small heaps, each of which is
// then sorted within the processor's cache.
func (b *batch) sort() {
	const heaps, shift = 1 << 11, 64 - 11
	var ends [heaps]int
	for _, s := range b.sightings {
		ends[s.print[0]>>shift]++
	}
	start := 0
	for i, count := range ends {
		ends[i] = start // for now, where the next one goes
		start += count
	}
	b.sorted = b.sorted[:len(b.sightings)]
	for _, s := range b.sightings {
		end := &ends[s.print[0]>>shift]
		b.sorted[*end] = s
		*end++
	}
	start = 0
	for _, end := range ends {
		slices.SortFunc(b.sorted[start:end], sighting.compare)
		start = end
	}
	b.sightings, b.sorted = b.sorted, b.sightings
	b.sightings = slices.CompactFunc(b.sightings, func(x, y sighting) bool {
		return x.print == y.print
	})
}

// compare orders sightings by their fingerprints, and those of one URL by their time.
func (s sighting) compare(other sighting) int {
	if c := s.print.compare(other.print); c != 0 {
		return c
	}
	return cmp.Compare(s.at, other.at)
}

// merge decides about the batch. It requires that s.mu is held.
//
// The new state is written to new files, or behind the end of the last segment, and becomes the
// state of the Set when the manifest is replaced. Until then nothing that counts is touched.
func (s *Set) merge() error {
	s.batch.sort()
	for _, r := range s.runs {
		kept, err := r.dropKnown(s.batch.sightings, &s.stats.Read)
		if err != nil {
			return err
		}
		s.batch.sightings = kept
	}
	if len(s.batch.sightings) == 0 {
		s.batch.clear()
		return nil
	}
	next := s.disked.clone()
	merged, err := s.writeRun(next)
	if err != nil {
		return err
	}
	if err = s.writeEntries(next); err == nil {
		err = s.commit(next)
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
	s.batch.clear()
	s.broken = false
	s.stats.Merges++
	return nil
}

// writeRun writes the new fingerprints to a run, together with those of the shorter runs, such that
// each run stays at least twice as long as the next. So there are few runs, and each fingerprint is
// written again only a few times, when the runs have doubled.
func (s *Set) writeRun(next *manifest) (*run, error) {
	kept, count := len(s.runs), int64(len(s.batch.sightings))
	for kept > 0 && s.runs[kept-1].count < 2*count {
		kept--
		count += s.runs[kept].count
	}
	s.file++
	w, err := createRun(s.disk, s.file, s.disked.width, count)
	if err != nil {
		return nil, err
	}
	err = w.mergeRuns(s.runs[kept:], s.batch.sightings, &s.stats.Read)
	if err == nil {
		err = w.finish(!s.options.NoSync)
	}
	s.stats.Written += w.to.n
	if err != nil {
		_ = w.file.Close() // the first error says more
		return nil, err
	}
	next.runs = append(next.runs[:kept], runSize{w.number, count})
	return w.run, nil
}

// writeEntries writes the new URLs in the order of their first sight. It leaves the batch in that
// order.
func (s *Set) writeEntries(next *manifest) error {
	slices.SortFunc(s.batch.sightings, func(x, y sighting) int { return cmp.Compare(x.at, y.at) })
	w, err := s.openLast(next)
	if err != nil {
		return err
	}
	var record []byte
	for _, sighting := range s.batch.sightings {
		record = appendRecord(record[:0], next.next, s.batch.contents(sighting))
		w.write(record)
		next.next++
	}
	err = w.finish(!s.options.NoSync)
	s.stats.Written += w.n
	next.segments[len(next.segments)-1].size = w.at
	if closed := w.to.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("exact: write entries: %w", err)
	}
	return nil
}

// openLast opens the last segment behind its end, or makes a new one if it is long enough. After
// a failed merge it is unknown what lies behind the end, so a new one is made, too.
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

// commit makes next the state of the Set and removes the files that it does not name. It requires
// that s.mu is held.
func (s *Set) commit(next *manifest) error {
	if err := next.write(s.disk, !s.options.NoSync); err != nil {
		return err
	}
	old, count := s.disked, next.names()
	s.disked = next
	for name := range old.names() {
		if !count[name] {
			// What cannot be removed now is removed when the Set is opened again.
			_ = s.disk.remove(name)
		}
	}
	return nil
}
