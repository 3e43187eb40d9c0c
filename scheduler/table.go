package scheduler

// A table maps hashes of keys to the numbers of limiters. It stores no keys, so the garbage
// collector need not scan it. It is split by the first bits of the hash, so that an insertion that
// has to grow it moves only a small part.
type table struct {
	shards [shardCount]shard
}

const (
	shardBits  = 6
	shardCount = 1 << shardBits
)

// A shard is an open-addressing hash table with linear probing. Its cells are ordered by tag as far
// as collisions allow, so any number of cells works: it grows by a quarter when four fifths of them
// are in use, and never shrinks.
type shard struct {
	cells []cell
	used  int
}

// A cell is empty if its id is 0.
type cell struct{ tag, id uint32 }

// home is where the cell of a tag should be among n.
func home(tag uint32, n int) int { return int(uint64(tag) * uint64(n) >> 32) }

// split returns the shard and the tag of a hash, which share no bits.
func (t *table) split(hash uint64) (*shard, uint32) {
	return &t.shards[hash>>(64-shardBits)], uint32(hash)
}

// find returns the number under a hash for which is returns true, or 0.
func (t *table) find(hash uint64, is func(id uint32) bool) uint32 {
	s, tag := t.split(hash)
	if len(s.cells) == 0 {
		return 0
	}
	for i := home(tag, len(s.cells)); s.cells[i].id != 0; i = s.after(i) {
		if c := s.cells[i]; c.tag == tag && is(c.id) {
			return c.id
		}
	}
	return 0
}

// insert puts a number under a hash.
func (t *table) insert(hash uint64, id uint32) {
	s, tag := t.split(hash)
	if (s.used+1)*5 > len(s.cells)*4 {
		s.grow()
	}
	s.put(cell{tag, id})
}

// remove requires that the number is there under this hash.
func (t *table) remove(hash uint64, id uint32) {
	s, tag := t.split(hash)
	hole := home(tag, len(s.cells))
	for s.cells[hole].id != id {
		hole = s.after(hole)
	}
	// Cells behind the hole that would no longer be found move into it.
	for i := s.after(hole); s.cells[i].id != 0; i = s.after(i) {
		if s.gap(home(s.cells[i].tag, len(s.cells)), i) >= s.gap(hole, i) {
			s.cells[hole], hole = s.cells[i], i
		}
	}
	s.cells[hole] = cell{}
	s.used--
}

func (s *shard) put(c cell) {
	i := home(c.tag, len(s.cells))
	for s.cells[i].id != 0 {
		i = s.after(i)
	}
	s.cells[i] = c
	s.used++
}

func (s *shard) grow() {
	old := s.cells
	*s = shard{cells: make([]cell, max(8, len(old)+len(old)/4))}
	for _, c := range old {
		if c.id != 0 {
			s.put(c)
		}
	}
}

// after returns the index behind i; the last one is followed by the first.
func (s *shard) after(i int) int {
	if i++; i == len(s.cells) {
		return 0
	}
	return i
}

// gap returns the number of steps from one index to another.
func (s *shard) gap(from, to int) int {
	if to < from {
		to += len(s.cells)
	}
	return to - from
}
