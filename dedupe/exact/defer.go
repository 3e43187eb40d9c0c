package exact

import (
	"fmt"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// deferred are the sightings that the next merge decides on.
type deferred struct {
	sightings []sighting // the capacity is fixed; nil before the first one
	pile      pile       // their URLs
}

// maxPile bounds the bytes of deferred URLs, as a multiple of Memory. It allows for URLs of about
// 300 bytes on average; fewer can be deferred if they are longer.
const maxPile = 8

// Defer records url for the next merge, which decides whether it is new; if so, it becomes an entry
// with a copy of data. This is much faster than Add if most answers have to be read from disk: a
// merge reads the index sequentially, once for all deferred URLs.
//
// When the memory for deferred URLs is full, Defer merges. After an error, url was not recorded.
func (s *Set) Defer(url string, data []byte) error {
	if len(url)+len(data) > MaxEntry-maxUvarint {
		return ErrTooLarge
	}
	print := s.fingerprint(url) // needs no lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return err
	}
	if s.recent.has(print) {
		s.stats.Lookups++
		s.stats.Recent++
		return nil
	}
	d := &s.deferred
	if d.sightings == nil {
		d.sightings = make([]sighting, 0, max(s.options.Memory*7/16/sightingBytes, 1))
		d.pile.latest = make([]byte, 0, max(s.options.Memory/16, maxItem))
	}
	full := len(d.sightings) == cap(d.sightings)
	if full || d.pile.size()+itemSize(url, data) > maxPile*s.options.Memory {
		if err := s.merge(); err != nil {
			return err
		}
	}
	place, err := d.pile.add(url, data)
	if err != nil {
		return err
	}
	d.sightings = append(d.sightings, newSighting(print, place))
	s.recent.add(print)
	s.stats.Lookups++
	return nil
}

// Merge decides on all deferred URLs, and then syncs like [Set.Sync]. After an error, nothing is
// lost as long as the process lives: the next Merge retries the rest.
func (s *Set) Merge() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return err
	}
	if err := s.merge(); err != nil {
		return err
	}
	return s.sync()
}

// merge requires that s.mu is held.
func (s *Set) merge() error {
	d := &s.deferred
	if len(d.sightings) == 0 {
		return nil
	}
	if err := s.dropKnown(); err != nil {
		return err
	}
	sortPlaces(d.sightings)
	items := newPileReader(&d.pile, len(d.sightings), &s.stats.Read)
	for len(d.sightings) > 0 {
		if err := s.makeRoom(); err != nil {
			return err
		}
		n := min(s.fresh.limit()-s.fresh.n, len(d.sightings))
		if err := s.appendAll(d.sightings[:n], items); err != nil {
			return err
		}
		for _, sighting := range d.sightings[:n] {
			s.fresh.add(sighting.print())
		}
		d.sightings = d.sightings[:copy(d.sightings, d.sightings[n:])]
	}
	d.pile.clear()
	s.stats.Merges++
	return nil
}

// dropKnown drops the deferred sightings of known URLs, and all but the first of each URL.
func (s *Set) dropKnown() error {
	d := &s.deferred
	d.sightings = sortPrints(d.sightings)
	s.stats.New += s.filter.mark(d.sightings)
	kept := d.sightings[:0]
	for _, sighting := range d.sightings {
		print := sighting.print()
		if sighting.isNew() || !s.fresh.has(print) && !s.frozen.has(print) {
			kept = append(kept, sighting)
		}
	}
	unknown := kept
	var err error
	if s.index.count > 0 {
		unknown, err = s.index.dropKnown(kept, &s.stats.Read)
	}
	// The next merge must not rely on the filter's current answers.
	if err != nil {
		unknown = kept
	}
	for i := range unknown {
		unknown[i].clearNew()
	}
	d.sightings = unknown
	return err
}

// appendAll completes the items of the pile and writes them to the log as entries. For an item that
// was spilled to the file, it checks that the URL still has its fingerprint. The caller's data is
// not checked, since a checksum would have to be computed for known URLs, too.
func (s *Set) appendAll(all []sighting, items *pileReader) error {
	w := &durable.Writer{To: s.log.file, At: s.log.end}
	next := s.log
	next.starts = next.starts[:len(next.starts):len(next.starts)]
	for _, sighting := range all {
		place := sighting.place()
		item, err := items.item(place)
		if err != nil {
			s.log.torn = true
			return err
		}
		if place < items.spilled {
			url, _, ok := parseContents(item[4:])
			if !ok || s.fingerprint(string(url)) != sighting.print() {
				s.log.torn = true
				return durable.Corrupt(pileName, place, "not what was written")
			}
		}
		next.note()
		next.record = next.appendRecord(next.record[:0], item)
		w.Write(next.record)
		next.end += int64(len(next.record))
		next.next++
	}
	if err := w.Flush(); err != nil {
		s.log.torn = true
		return fmt.Errorf("exact: write entries: %w", err)
	}
	s.stats.Written += next.end - s.log.end
	s.log = next
	return nil
}
