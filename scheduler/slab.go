package scheduler

// chunkLen entries are allocated at a time: few enough for a scheduler of three hosts, and enough
// that the garbage collector sees few chunks. It is a power of two, so that finding an entry takes
// a shift and a mask.
const chunkLen = 1024

// A slab stores entries under small numbers. Links between entries are such numbers: they are half
// as big as pointers, and the garbage collector ignores them. Entries do not move. Entry 0 is never
// handed out and stands for none. Released entries are reused; memory is never given back.
type slab[E any] struct {
	chunks []*[chunkLen]E
	used   uint32 // entries handed out at least once, including the 0th
	free   []uint32
}

// alloc returns the number of a zero entry.
func (s *slab[E]) alloc() uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	s.used = max(s.used, 1)
	if int(s.used/chunkLen) == len(s.chunks) {
		s.chunks = append(s.chunks, new([chunkLen]E))
	}
	s.used++
	return s.used - 1
}

// at returns an entry that is in use. The pointer is valid until the entry is released.
func (s *slab[E]) at(i uint32) *E {
	return &s.chunks[i/chunkLen][i%chunkLen]
}

// release frees an entry. It is zeroed at once, so that it does not keep anything alive.
func (s *slab[E]) release(i uint32) {
	var zero E
	*s.at(i) = zero
	s.free = append(s.free, i)
}
