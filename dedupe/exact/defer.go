package exact

import (
	"errors"
	"syscall"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// deferred are the sightings that merges decide on. Those of the merge that is under way come
// first, and then those that the next one decides on.
type deferred struct {
	sightings []sighting  // the capacity is fixed; nil before the first one
	digits    [digits]int // how many of those for the next merge begin with each digit
	pile      *pile       // the URLs of those
	spare     *pile       // the URLs of the merge that is under way
	bound     int64       // of the bytes of a pile
	merge     *merge      // nil if none is under way
}

// maxPile bounds the bytes of deferred URLs, as a multiple of Memory. It allows for URLs of about
// 300 bytes on average; fewer can be deferred if they are longer.
const maxPile = 8

func newDeferred(fs vfs.FS, memory int64, written *int64) deferred {
	return deferred{
		pile:  &pile{fs: fs, name: pileNames[0], written: written},
		spare: &pile{fs: fs, name: pileNames[1], written: written},
		bound: max(maxPile*memory, maxItem),
	}
}

// allocate takes the memory, before the first sighting.
func (d *deferred) allocate(memory int64) {
	if d.sightings == nil {
		d.sightings = make([]sighting, 0, max(memory*7/16/sightingBytes, 2))
		for _, p := range []*pile{d.pile, d.spare} {
			p.latest = make([]byte, 0, max(memory/32, maxItem))
		}
	}
}

// waiting returns how many sightings are not decided on.
func (d *deferred) waiting() int {
	if m := d.merge; m != nil {
		return m.left + len(d.sightings) - len(m.all)
	}
	return len(d.sightings)
}

// reserve is the number of sightings that are deferred while a merge is under way. A larger one
// would make merges more frequent, and a smaller one makes each call do more of them.
func (d *deferred) reserve() int { return max(cap(d.sightings)/32, 1) }

// full reports whether there is no space for another sighting with that many bytes.
func (d *deferred) full(bytes int64) bool {
	return len(d.sightings) == cap(d.sightings) || d.pile.size()+bytes > d.bound
}

// due reports whether a merge has to begin before a sighting with that many bytes is added.
func (d *deferred) due(bytes int64) bool {
	return len(d.sightings) >= cap(d.sightings)-d.reserve() || d.full(bytes)
}

// Defer records url for the next merge, which decides whether it is new; if so, it becomes an entry
// with a copy of data, which has no checksum while it waits. This is much faster than Add if most answers
// have to be read from disk: a merge reads the index sequentially, once for all deferred URLs.
//
// When the memory for deferred URLs is nearly full, a merge begins, and each call does a part of
// it. After an error, url was not recorded.
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
	d.allocate(s.options.Memory)
	if err := s.makeSpace(itemSize(url, data)); err != nil {
		return err
	}
	place, err := d.pile.add(url, data)
	if err != nil {
		return err
	}
	d.sightings = append(d.sightings, newSighting(print, place))
	d.digits[print>>(64-digitBits)]++
	s.recent.add(print)
	s.stats.Lookups++
	return nil
}

// makeSpace makes space for another sighting with that many bytes. It does as many steps of a merge
// as are needed to complete that before the reserve is used up. It requires that s.mu is held, and
// unlocks it during disk operations.
func (s *Set) makeSpace(bytes int64) error {
	d := &s.deferred
	if m := d.merge; m != nil {
		used := max(1, bytes*int64(d.reserve())*32/d.bound) // of the reserve
		m.due += 2 * m.steps * used
	}
	for {
		switch m := d.merge; {
		case m == nil && !d.due(bytes):
			return nil
		case m == nil:
			s.beginMerge()
			continue
		case m.due < int64(d.reserve()) && !d.full(bytes):
			return nil
		default:
			m.due -= int64(d.reserve())
		}
		if err := s.stepMerge(); err != nil {
			return err
		}
		if err := s.refusal(); err != nil {
			return err
		}
	}
}

// Merge decides on all deferred URLs, and then syncs like [Set.Sync]. Other calls go on meanwhile.
// After an error, nothing is lost as long as the process lives, and the next Merge goes on. Only what is
// damaged in a file of deferred URLs, or what the disk cannot read there after it could not for a minute, is
// lost: a [CorruptError] names that file, and those URLs are new again.
func (s *Set) Merge() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return err
	}
	err := s.mergeAll(s.refusal)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return err
	}
	return errors.Join(err, s.sync())
}

// mergeAll decides on all URLs that were deferred before the call. It requires that s.mu is held,
// and unlocks it between the steps. What is lost does not end it.
func (s *Set) mergeAll(refusal func() error) (lost error) {
	d := &s.deferred
	for range 2 { // the merge that is under way, and one of what was deferred since
		if d.merge == nil && len(d.sightings) == 0 {
			return lost
		}
		if d.merge == nil {
			s.beginMerge()
		}
		for m := d.merge; d.merge == m; {
			err := s.stepMerge()
			if s.closing && errors.Is(err, syscall.EIO) && !m.gaveUp {
				m.gaveUp = true // nobody can try again
				continue
			}
			lost = errors.Join(lost, err)
			if err != nil && d.merge == m {
				return lost
			}
			s.pause()
			if err := refusal(); err != nil {
				return errors.Join(lost, err)
			}
		}
	}
	return lost
}
