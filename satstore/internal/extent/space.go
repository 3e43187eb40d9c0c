package extent

import (
	"cmp"
	"slices"
)

// grain is the unit of allocation in the data file.
const grain = 4 << 10

func grains(bytes int) uint32 { return uint32((bytes + grain - 1) / grain) }

// MaxGrains bounds the data file to 16 TiB, so that ends of spans fit in 32 bits.
const MaxGrains = 1<<32 - 1<<16

// A Span is a piece of the data file, in grains.
type Span struct{ At, N uint32 }

// End returns the grain after a span.
func (s Span) End() uint32 { return s.At + s.N }

func (s Span) compare(with Span) int { return cmp.Compare(s.At, with.At) }

// A space manages the free space of the data file. It allocates from the beginning of the file, so
// that the end becomes free and can be truncated. File.mu guards it.
type space struct {
	free []Span // in order, none adjacent to another
	end  uint32 // after the last used grain
	next int    // where to search first, so that a flush writes in one direction
}

// newSpace returns the space between used spans. The first grain is the file's header. If two spans
// overlap, it returns the offset of the overlap, otherwise -1.
func newSpace(used []Span) (s space, overlap int64) {
	slices.SortFunc(used, Span.compare)
	s = space{end: 1}
	for _, u := range used {
		if u.At < s.end {
			return s, int64(u.At) * grain
		}
		if u.At > s.end {
			s.free = append(s.free, Span{s.end, u.At - s.end})
		}
		s.end = u.End()
	}
	return s, -1
}

// take allocates n grains, unless the file would get too large.
func (s *space) take(n uint32) (at uint32, fits bool) {
	for i := range s.free {
		i = (s.next + i) % len(s.free)
		if s.free[i].N >= n {
			s.next = i
			return s.cut(i, n), true
		}
	}
	if s.end > MaxGrains-n {
		return 0, false
	}
	s.next = 0
	at = s.end
	s.end += n
	return at, true
}

// cut takes n grains from the front of the i-th free span.
func (s *space) cut(i int, n uint32) (at uint32) {
	f := &s.free[i]
	at = f.At
	if f.At, f.N = f.At+n, f.N-n; f.N == 0 {
		s.free = slices.Delete(s.free, i, i+1)
	}
	return at
}

// give frees spans.
func (s *space) give(spans []Span) {
	all := append(s.free, spans...)
	slices.SortFunc(all, Span.compare)
	s.free = all[:0]
	for _, f := range all {
		if n := len(s.free); n > 0 && s.free[n-1].End() == f.At {
			s.free[n-1].N += f.N
		} else {
			s.free = append(s.free, f)
		}
	}
	if n := len(s.free); n > 0 && s.free[n-1].End() == s.end {
		s.end = s.free[n-1].At
		s.free = s.free[:n-1]
	}
	s.next = 0
}

// freeGrains returns how many grains are free.
func (s *space) freeGrains() (n int64) {
	for _, f := range s.free {
		n += int64(f.N)
	}
	return n
}
