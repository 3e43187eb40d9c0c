package exact

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"syscall"
	"time"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// A merge decides on the sightings that were deferred before it began, in phases: it sorts them by
// fingerprint, drops those of known URLs, sorts the rest in the order in which they were deferred,
// and adds them to the log and to s.fresh.
//
// It proceeds in steps, and other calls come in between. So Add may make an entry of a URL that the
// merge has found to be unknown and not added yet. Such a URL is in the filter but not known. Add
// takes note of all new URLs of this kind, and the merge skips them. With a merge under way, there
// are also new URLs for which the filter is wrong. Each makes the next call do a step, so that no
// more are noted than a merge has steps.
//
// A step that failed can be repeated.
type merge struct {
	all     []sighting // those that it decides on, a part of deferred.sightings
	left    int        // how many of all are not decided on
	phase   int
	byPrint partition // of all
	byPlace partition // of all[:kept]
	digit   int       // of the next bucket of the partition
	at, end int       // the rest of the current bucket
	kept    int       // how many are unknown
	known   join
	lookups int64 // estimate for all buckets, from the current one
	items   *pileReader
	out     durable.Writer
	added   map[fingerprint]bool // by Add, or lost
	owed    bool                 // the next call does a step
	lost    error                // why some of the sightings were given up; the last step returns it
	unread  time.Time            // since when the file of items cannot be read
	gaveUp  bool                 // it was waited for

	steps int64 // estimate when it began
	due   int64 // steps, multiplied by deferred.reserve
}

// Limits of the work of a step in memory. The other limit is Set.stepPages.
const (
	maxMoves   = 64 << 10
	maxLookups = 4 << 10
	maxAppends = 1 << 10
	maxBytes   = 1 << 20 // of entries
	smallMerge = 4 << 10 // sightings that are sorted at once
)

// maxUnread is how long a step waits for a disk that cannot read the file of items. A cable that was pulled
// costs nothing then. The rest of the merge does not wait again: there may be a large area that is unreadable.
const maxUnread = time.Minute

func (m *merge) givesUp() bool {
	m.gaveUp = m.gaveUp || !m.unread.IsZero() && time.Since(m.unread) > maxUnread
	return m.gaveUp
}

// beginMerge begins a merge of all deferred sightings. It requires that none is under way.
func (s *Set) beginMerge() {
	d := &s.deferred
	n := len(d.sightings)
	m := &merge{all: d.sightings, left: n, added: map[fingerprint]bool{}}
	m.byPrint = partition{word: byPrint, shift: 64 - digitBits, ends: d.digits}
	placeBits := bits.Len64(uint64(d.pile.size())<<1 | 1)
	m.byPlace = partition{word: byPlace, shift: max(placeBits-digitBits, 0)}
	if n <= smallMerge {
		m.byPrint.shift, m.byPrint.ends = 64, [digits]int{n}
		m.byPlace.shift = placeBits
	}
	m.byPrint.begin()
	lookups, sweeps := int64(n), int64(n/s.fresh.limit()+1)
	m.steps = 2*digits + lookups/maxLookups + lookups/maxAppends + (1+sweeps)*s.index.pages()/s.stepPages
	d.merge, d.digits = m, [digits]int{}
	d.pile, d.spare = d.spare, d.pile
}

// The phases do one step and report whether it was their last one.
var phases = []func(*Set, *merge) (done bool, err error){
	func(_ *Set, m *merge) (bool, error) { return m.byPrint.move(m.all, maxMoves), nil },
	(*Set).dropKnown,
	func(_ *Set, m *merge) (bool, error) { return m.byPlace.move(m.all, maxMoves), nil },
	(*Set).appendUnknown,
}

// stepMerge does one step of the merge that is under way, if there is one. It requires that s.mu is
// held, and unlocks it during syncs.
func (s *Set) stepMerge() error {
	if err := s.settle(); err != nil {
		return err
	}
	m := s.deferred.merge
	if m == nil {
		return nil
	}
	done, err := phases[m.phase](s, m)
	if err != nil || !done {
		return err
	}
	if m.phase++; m.phase == len(phases) {
		s.endMerge(m)
		return m.lost
	}
	return nil
}

func (s *Set) endMerge(m *merge) {
	d := &s.deferred
	d.spare.clear()
	d.sightings = d.sightings[:copy(d.sightings, d.sightings[len(m.all):])]
	d.merge = nil
	s.stats.Merges++
}

// openBucket sorts the next bucket of a partition, and makes it the current one. It returns false
// if there is none.
func (m *merge) openBucket(p *partition) bool {
	for m.at == m.end {
		if m.digit == digits {
			m.digit, m.at, m.end = 0, 0, 0
			return false
		}
		m.at, m.end = p.bucket(m.digit)
		m.digit++
		sortWords(m.all[m.at:m.end], p.word, nextShift(p.shift))
	}
	return true
}

// dropKnown is the phase that drops the sightings of known URLs, and all but the first of each URL.
func (s *Set) dropKnown(m *merge) (done bool, err error) {
	if m.at == m.end {
		if !m.openBucket(&m.byPrint) {
			m.byPlace.begin()
			return true, nil
		}
		s.askFilter(m)
	}
	if m.known.index != s.index {
		m.known = join{indexReader: newIndexReader(s.index, 1, &s.stats.Read)}
	}
	m.known.expect(m.lookups)
	end, read := min(m.end, m.at+maxLookups), s.stats.Read+s.stepPages*pageSize
	for ; m.at < end && s.stats.Read < read; m.at++ {
		next := m.all[m.at]
		if print := next.print(); !next.isNew() {
			known := s.fresh.has(print) || s.frozen.has(print)
			if !known {
				if known, err = m.known.has(print); err != nil {
					return false, err
				}
			}
			if known {
				m.left--
				continue
			}
		}
		next.clearNew()
		m.all[m.kept] = next
		m.kept++
		m.byPlace.ends[next.digit(m.byPlace.word, m.byPlace.shift)]++
	}
	return false, nil
}

// askFilter drops all but the first sighting of each URL of a bucket, and marks those that are
// certainly new.
func (s *Set) askFilter(m *merge) {
	bucket := slices.CompactFunc(m.all[m.at:m.end], sighting.sameURL)
	m.left -= m.end - m.at - len(bucket)
	m.end = m.at + len(bucket)
	news := s.filter.mark(bucket)
	s.stats.New += news
	m.lookups = int64(len(bucket)) - news
	if len(m.all) > smallMerge { // this is one of many buckets
		m.lookups *= digits
	}
}

// appendUnknown is the phase that adds the URLs that are left.
func (s *Set) appendUnknown(m *merge) (done bool, err error) {
	if m.at == m.end && !m.openBucket(&m.byPlace) {
		return true, nil
	}
	if err := s.openLog(); err != nil {
		return false, err
	}
	if s.sweepDue() {
		return false, s.advance(s.log.next)
	}
	if m.items == nil {
		m.items = newPileReader(s.deferred.spare, m.kept, &s.stats.Read)
		if m.givesUp() {
			m.items.window.ahead = 0 // so that a bad sector costs only what it has
		}
	}
	n := min(s.fresh.limit()-s.fresh.n, m.end-m.at, maxAppends)
	n, err = s.appendAll(m, m.all[m.at:m.at+n])
	if err != nil {
		s.log.torn = s.log.torn || m.out.At > s.log.end
		m.items = nil // a retry reads again
		return false, err
	}
	m.unread = time.Time{}
	for _, next := range m.all[m.at : m.at+n] {
		if print := next.print(); !m.added[print] { // else it may be in the index by now
			s.fresh.add(print)
		}
	}
	m.at += n
	m.left -= n
	return false, nil
}

// appendAll completes the items of the pile and writes them to the log as entries, unless Add has
// added them. It returns the number of sightings that are done. For an item that was spilled to the file, it
// checks that the URL still has its fingerprint. The caller's data is not checked, since a checksum would
// have to be computed for known URLs, too.
func (s *Set) appendAll(m *merge, all []sighting) (n int, err error) {
	m.out = durable.Writer{To: s.log.file, At: s.log.end, Buf: m.out.Buf[:0]}
	next := s.log
	next.starts = next.starts[:len(next.starts):len(next.starts)]
items:
	for ; n < len(all) && next.end-s.log.end < maxBytes; n++ {
		place, print := all[n].place(), all[n].print()
		if m.added[print] {
			continue
		}
		item, err := m.items.item(place)
		if err == nil && place < m.items.spilled {
			url, _, ok := parseContents(item[4:])
			if !ok || s.fingerprint(string(url)) != print {
				err = durable.Corrupt(m.items.name, place, "not what was written")
			}
		}
		unreadable := errors.Is(err, syscall.EIO) && m.items.window.ahead == 0
		if unreadable {
			err = durable.Corrupt(m.items.name, place, "the disk cannot read this")
		}
		switch {
		case errors.Is(err, ErrCorrupt): // a retry would find the same, and no merge would ever end
			m.lost, m.added[print] = cmp.Or(m.lost, err), true
			s.recent.forget(print)
			if unreadable {
				n++
				break items // the disk may have tried for half a minute: other calls come in before the next read
			}
			continue
		case err != nil:
			if m.unread.IsZero() {
				m.unread = time.Now()
			}
			if n == 0 {
				return 0, err
			}
			break items // so that a retry begins with this item, and does not write those before it again
		}
		next.note()
		next.record = next.appendRecord(next.record[:0], item)
		m.out.Write(next.record)
		next.end += int64(len(next.record))
		next.next++
	}
	if err := m.out.Flush(); err != nil {
		return 0, fmt.Errorf("exact: write entries: %w", err)
	}
	s.stats.Written += next.end - s.log.end
	s.log = next
	return n, nil
}
