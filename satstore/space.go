package satstore

import (
	"cmp"
	"slices"
	"sync"
)

// grain is the unit of room in the data file.
const grain = 4 << 10

func grains(bytes int) uint32 { return uint32((bytes + grain - 1) / grain) }

// A span is a piece of the data file, in grains.
type span struct{ at, n uint32 }

func (s span) end() uint32 { return s.at + s.n }

func (s span) compare(with span) int { return cmp.Compare(s.at, with.at) }

// A space knows which parts of the data file are free. What is released may be what a crash would
// go back to, so it becomes free only with the next checkpoint, and not while somebody reads it.
//
// Its methods may be called while a flush takes room. What is released and pinned is guarded by
// Store.mu.
type space struct {
	released []span
	pins     int

	mu   sync.Mutex
	free []span // in order, none next to another
	end  uint32 // of the file
	next int    // where to look first, so that one flush is written in one direction
}

// maxGrains bounds the file, so that ends of spans fit into 32 bits: to 16 TiB.
const maxGrains = 1<<32 - 1<<16

// take returns where n grains are free, unless the file would get too large.
func (s *space) take(n uint32) (at uint32, fits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.free {
		i = (s.next + i) % len(s.free)
		if f := &s.free[i]; f.n >= n {
			at := f.at
			f.at, f.n = f.at+n, f.n-n
			s.next = i
			if f.n == 0 {
				s.free = slices.Delete(s.free, i, i+1)
			}
			return at, true
		}
	}
	if s.end > maxGrains-n {
		return 0, false
	}
	s.next = 0
	at = s.end
	s.end += n
	return at, true
}

// size returns how many grains the file has.
func (s *space) size() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// release gives a span back with the next checkpoint.
func (s *space) release(f span) { s.released = append(s.released, f) }

// settle frees what was released. A checkpoint that does not need it has to be on disk.
func (s *space) settle() {
	// A reader may have come before or after a release: while there is any, all of it waits.
	if s.pins > 0 || len(s.released) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append(s.free, s.released...)
	slices.SortFunc(all, span.compare)
	s.free = join(all)
	s.released = s.released[:0]
	if n := len(s.free); n > 0 && s.free[n-1].end() == s.end {
		s.end = s.free[n-1].at
		s.free = s.free[:n-1]
	}
	s.next = 0
}

// join makes one span of those that touch, in place.
func join(sorted []span) []span {
	joined := sorted[:0]
	for _, f := range sorted {
		if n := len(joined); n > 0 && joined[n-1].end() == f.at {
			joined[n-1].n += f.n
		} else {
			joined = append(joined, f)
		}
	}
	return joined
}

// newSpace finds what is free between those spans that are used, the first grains being the file's
// header. It reports the offset of two uses that overlap.
func newSpace(used []span) (s *space, overlap int64) {
	slices.SortFunc(used, span.compare)
	s = &space{end: 1}
	for _, u := range used {
		if u.at < s.end {
			return nil, int64(u.at) * grain
		}
		if u.at > s.end {
			s.free = append(s.free, span{s.end, u.at - s.end})
		}
		s.end = u.end()
	}
	return s, -1
}

// giveBack frees a span that nothing ever referred to.
func (s *space) giveBack(f span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.free, f, span.compare)
	s.free = join(slices.Insert(s.free, i, f))
	s.next = 0
}
