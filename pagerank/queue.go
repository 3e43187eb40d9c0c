package pagerank

import (
	"math"
	"math/bits"
)

// A queue orders ids by bucket: 16 to an octave of the key, so that two ids whose keys differ by
// less than 4.5 % may come out in the order in which they went in. It is lazy: an id whose bucket
// has changed is pushed again, and what it leaves behind is dropped when it comes up. An exact
// heap costs two to three times as much and gains nothing that a crawl could measure.
type queue struct {
	lines   [buckets]line
	words   [buckets / 64]uint64 // which lines are not empty
	summary uint32               // which words are not zero
	store   chunkStore
	entries int      // stale ones too
	live    int      // ids whose entry is valid
	kept    []uint32 // scratch
}

const (
	perOctave = 16
	octaves   = 96 // from 2^-48 to 2^48; what is beyond shares the first and the last bucket
	buckets   = perOctave * octaves
	lowest    = (127 - octaves/2) * perOctave
	mantissa  = 19 // bits of a float32 that a bucket does not see
)

// bucketOf returns the bucket of a key; zero and negative keys are in bucket 0.
func bucketOf(key float32) uint16 {
	b := int(int32(math.Float32bits(key))>>mantissa) - lowest
	return uint16(min(max(b, 0), buckets-1))
}

// A line is a first-in-first-out list of ids in chunks.
type line struct {
	head, tail uint32 // chunks; 0 means none
	from, to   uint32 // where the first one is in head, and where the next one goes in tail
}

// push adds an entry for id, which is valid as long as the id's node says the same bucket.
func (q *queue) push(b uint16, id uint32) {
	l := &q.lines[b]
	if l.head == 0 {
		c := q.store.take()
		*l = line{head: c, tail: c}
		q.words[b/64] |= 1 << (b % 64)
		q.summary |= 1 << (b / 64)
	} else if l.to == chunkIDs {
		c := q.store.take()
		q.store.at(l.tail).next = c
		l.tail, l.to = c, 0
	}
	q.store.at(l.tail).ids[l.to] = id
	l.to++
	q.entries++
}

// top returns the highest bucket that has an entry.
func (q *queue) top() (b uint16, ok bool) {
	if q.summary == 0 {
		return 0, false
	}
	w := bits.Len32(q.summary) - 1
	return uint16(w*64 + bits.Len64(q.words[w]) - 1), true
}

// shift takes the first entry of bucket b, which has one.
func (q *queue) shift(b uint16) (id uint32) {
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

// pop takes the first id of the highest bucket.
func (q *queue) pop(nodes []node) (id uint32, ok bool) {
	for {
		b, ok := q.top()
		if !ok {
			return 0, false
		}
		id := q.shift(b)
		if n := &nodes[id]; n.state&queued != 0 && n.bucket == b {
			n.state &^= queued
			q.live--
			return id, true
		}
	}
}

// add puts id, which is not queued, into bucket b.
func (q *queue) add(nodes []node, b uint16, id uint32) {
	n := &nodes[id]
	n.bucket = b
	n.state |= queued
	q.live++
	q.push(b, id)
}

// crowded tells whether two of three entries are stale.
func (q *queue) crowded() bool { return q.entries > 3*q.live+1024 }

// sweep drops stale entries and keeps the order of the others. Since crowded asks for twice as many
// stale entries as there are live ones, it costs each push a constant time.
func (q *queue) sweep(nodes []node) {
	for b := range uint16(buckets) {
		if q.lines[b].head == 0 {
			continue
		}
		q.kept = q.kept[:0]
		for n := q.count(q.lines[b]); n > 0; n-- {
			id := q.shift(b)
			// An id that left the bucket and came back has two entries that look valid.
			if t := &nodes[id]; t.state&(queued|marked) == queued && t.bucket == b {
				t.state |= marked
				q.kept = append(q.kept, id)
			}
		}
		for _, id := range q.kept {
			nodes[id].state &^= marked
			q.push(b, id)
		}
	}
}

// count returns how many entries a line has.
func (q *queue) count(l line) (n int) {
	for c := l.head; c != l.tail; c = q.store.at(c).next {
		n += chunkIDs
	}
	return n + int(l.to) - int(l.from)
}

// reset drops all entries; the nodes' states are the caller's to mend.
func (q *queue) reset() {
	for b := range uint16(buckets) {
		for q.lines[b].head != 0 {
			q.shift(b)
		}
	}
	q.live = 0
}

// chunkIDs makes a chunk two cache lines.
const chunkIDs = 31

type chunk struct {
	ids  [chunkIDs]uint32
	next uint32
}

// A chunkStore holds chunks in blocks, so that growing copies nothing and leaves no slack. Chunk 0
// is not used.
type chunkStore struct {
	blocks []*[blockChunks]chunk
	used   uint32 // chunks that were ever taken
	free   uint32 // list of chunks given back
}

const blockChunks = 1 << 7

func (s *chunkStore) at(c uint32) *chunk {
	return &s.blocks[c/blockChunks][c%blockChunks]
}

func (s *chunkStore) take() uint32 {
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
