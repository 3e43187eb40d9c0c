package pagerank

import (
	"iter"
	"math"
	"math/bits"
)

// A queue orders ids by bucket, 16 to an octave of the key: two ids whose keys differ by less than
// a sixteenth may come out in order of arrival. It is lazy: an id whose bucket changes is pushed
// again, and its old entry is dropped when it comes up. An exact heap costs two to three times as
// much, without a measurable benefit for a crawl.
type queue struct {
	lines   [buckets]line
	words   [buckets / 64]uint64 // bits of the lines that are not empty
	summary uint32               // bits of the words that are not zero
	store   chunkStore
	entries int // valid and stale
	live    int // ids in the queue, newcomers too
}

const (
	perOctave = 16
	octaves   = 96 // from 2^-48 to 2^48; keys beyond are in the first and the last bucket
	buckets   = perOctave * octaves
	lowest    = (1023 - octaves/2) * perOctave
	mantissa  = 48 // bits of a float64 that a bucket does not see
)

// levelOf returns the level of a key; there are perOctave to an octave. The first bits of a
// float64, exponent and mantissa, are nearly its logarithm, and cost a shift. Keys of zero and
// below are on level 0.
func levelOf(key float64) uint16 {
	return uint16(max(int64(math.Float64bits(key)), 0) >> mantissa)
}

// bucketAt returns the bucket for a level.
func bucketAt(level uint16) uint16 {
	return uint16(min(max(int(level)-lowest, 0), buckets-1))
}

// A line is a first-in-first-out list of ids in chunks.
type line struct {
	last       *chunk // tail, at hand
	head, tail uint32 // chunks; 0 means none
	from, to   uint32 // where the first id is in head, and where the next one goes in tail
}

// push adds an entry for id. It is valid as long as the id's node has the same bucket.
func (q *queue) push(b uint16, id uint32) {
	l := &q.lines[b]
	if l.head == 0 {
		c := q.store.take()
		*l = line{head: c, tail: c, last: q.store.at(c)}
		q.words[b/64] |= 1 << (b % 64)
		q.summary |= 1 << (b / 64)
	} else if l.to == chunkIDs {
		c := q.store.take()
		l.last.next = c
		l.last, l.tail, l.to = q.store.at(c), c, 0
	}
	l.last.ids[l.to] = id
	l.to++
	q.entries++
}

// shift removes the first entry of bucket b, which must have one.
func (q *queue) shift(b uint16) (id uint32) {
	// An empty line keeps no chunk: there are 1536 lines.
	l := &q.lines[b]
	c := q.store.at(l.head)
	id = c.ids[l.from]
	l.from++
	q.entries--
	switch {
	case l.head == l.tail && l.from == l.to:
		q.store.give(l.head)
		*l = line{}
		if q.words[b/64] &^= 1 << (b % 64); q.words[b/64] == 0 {
			q.summary &^= 1 << (b / 64)
		}
	case l.from == chunkIDs:
		next := c.next
		q.store.give(l.head)
		l.head, l.from = next, 0
	}
	return id
}

// pop removes the first id of the highest bucket.
func (q *queue) pop(nodes []node) (id uint32, ok bool) {
	// Two levels of bits find it in two steps. The 24 words fit into the 32 bits of the summary.
	for q.summary != 0 {
		w := bits.Len32(q.summary) - 1
		b := uint16(w*64 + bits.Len64(q.words[w]) - 1)
		id := q.shift(b)
		if n := &nodes[id]; n.isIn(b) {
			n.state &^= queued
			q.live--
			return id, true
		}
	}
	return 0, false
}

// add puts id, which is not queued, into the bucket for a level.
func (q *queue) add(nodes []node, level uint16, id uint32) {
	nodes[id].state |= queued
	q.live++
	q.move(&nodes[id], level, id)
}

// move puts id, which is queued, into the bucket for another level. Outside the range of buckets
// that may be the same one. Then pop takes the first entry, and the second is stale.
func (q *queue) move(n *node, level uint16, id uint32) {
	n.next = level + 1
	q.push(bucketAt(level), id)
}

// crowded reports whether there are more entries than ids, and two thirds of them are stale.
func (q *queue) crowded(ids int) bool { return q.entries > max(3*q.live, ids)+1024 }

// sweep drops stale entries and keeps the order of the others. As crowded requires twice as many
// stale entries as valid ones, it costs constant time per push. Of an id that left its bucket and came
// back it keeps the first entry: the others are stale once that is popped.
func (q *queue) sweep(nodes []node) {
	for b := range uint16(buckets) {
		if q.lines[b].head != 0 {
			q.sweepLine(nodes, b)
		}
	}
}

// sweepLine takes each entry of bucket b from the front, and puts the valid ones back at the end. So it
// needs no more memory than a chunk.
func (q *queue) sweepLine(nodes []node, b uint16) {
	entries := 0
	for range q.entriesOf(b) {
		entries++
	}
	for range entries {
		id := q.shift(b)
		if n := &nodes[id]; n.state&marked == 0 && n.isIn(b) {
			n.state |= marked
			q.push(b, id)
		}
	}
	for id := range q.entriesOf(b) {
		nodes[id].state &^= marked
	}
}

// entriesOf yields the entries of bucket b in order, valid and stale.
func (q *queue) entriesOf(b uint16) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		l := q.lines[b]
		for c, i := l.head, l.from; c != l.tail || i < l.to; i++ {
			if i == chunkIDs {
				c, i = q.store.at(c).next, 0
			}
			if !yield(q.store.at(c).ids[i]) {
				return
			}
		}
	}
}

// chunkIDs makes a chunk two cache lines.
const chunkIDs = 31

type chunk struct {
	ids  [chunkIDs]uint32
	next uint32
}

// A chunkStore holds chunks in blocks, so that growing copies nothing and wastes little. Chunk 0 is
// not used.
type chunkStore struct {
	blocks []*[blockChunks]chunk
	used   uint32 // chunks ever taken
	free   uint32 // list of free chunks
}

const blockChunks = 1 << 7

func (s *chunkStore) at(c uint32) *chunk {
	return &s.blocks[c/blockChunks][c%blockChunks]
}

func (s *chunkStore) take() uint32 {
	// The chunk freed last is reused first: it is still in the cache.
	if c := s.free; c != 0 {
		s.free = s.at(c).next
		return c
	}
	s.used++
	if int(s.used/blockChunks) >= len(s.blocks) {
		s.blocks = append(s.blocks, new([blockChunks]chunk))
	}
	return s.used
}

func (s *chunkStore) give(c uint32) {
	s.at(c).next = s.free
	s.free = c
}

func (s *chunkStore) bytes() int { return len(s.blocks) * blockChunks * (chunkIDs + 1) * 4 }
