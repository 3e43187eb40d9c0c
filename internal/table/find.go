package table

import (
	"bytes"
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// A Pair is a key with its value. An empty Key means none.
type Pair struct{ Key, Value []byte }

// set copies key and value into the memory of the pair.
func (p *Pair) set(key, value []byte) {
	p.Key = append(p.Key[:0], key...)
	p.Value = append(p.Value[:0], value...)
}

// clear empties the pair, and keeps its memory.
func (p *Pair) clear() { p.Key, p.Value = p.Key[:0], p.Value[:0] }

// segmentOf returns the last segment whose first key is below key, or key itself if equal is set;
// -1 if there is none.
func (r *run) segmentOf(key []byte, equal bool) int {
	return lastBelow(len(r.segments), func(i int) []byte { return r.segments[i].first }, key, equal)
}

// lastBelow returns the last of n parts in order whose first key is below key, or key itself if equal is
// set; -1 if there is none.
func lastBelow(n int, first func(i int) []byte, key []byte, equal bool) int {
	return sort.Search(n, func(i int) bool {
		order := bytes.Compare(first(i), key)
		return order > 0 || order == 0 && !equal
	}) - 1
}

// A query is a call of Find.
type query struct {
	keys   [][]byte
	hashes []uint64
	open   []int // indexes of keys that were not found yet
	done   []bool
	found  func(i int, value []byte)
}

// Find looks up sorted keys, and calls found with the index and the newest value of each that is in
// the table. It reads each block once, and several blocks at the same time; so calls of found may
// be concurrent. The value is only valid during the call.
func (t *Table) Find(keys [][]byte, found func(i int, value []byte)) error {
	v, err := t.acquire()
	if err != nil {
		return err
	}
	defer v.release()
	q := &query{
		keys: keys, hashes: make([]uint64, len(keys)), open: make([]int, len(keys)),
		done: make([]bool, len(keys)), found: found,
	}
	for i, key := range keys {
		q.hashes[i], q.open[i] = hashOf(key), i
	}
	for _, r := range slices.Backward(v.runs) {
		if err := r.find(q); err != nil {
			return err
		}
	}
	return nil
}

// A lookup is the part of a query that needs one block.
type lookup struct {
	segment *segment
	place
	keys []int // indexes
}

func (r *run) find(q *query) error {
	var all []*lookup
	p := probes.Get().(*probe)
	defer probes.Put(p)
	for _, i := range q.open {
		n := r.segmentOf(q.keys[i], true)
		if n < 0 || bytes.Compare(q.keys[i], r.low) < 0 {
			continue
		}
		s := r.segments[n]
		if !s.filter.has(q.hashes[i]) {
			continue
		}
		at, err := s.locate(p, q.keys[i], true)
		if err != nil {
			return err
		}
		if n := len(all); n == 0 || all[n-1].segment != s || all[n-1].place != at {
			all = append(all, &lookup{segment: s, place: at})
		}
		last := all[len(all)-1]
		last.keys = append(last.keys, i)
	}
	if len(all) == 0 {
		return nil
	}
	err := parallel(all, q.read)
	q.open = slices.DeleteFunc(q.open, func(i int) bool { return q.done[i] })
	return err
}

// read answers a part of a query.
func (q *query) read(l *lookup, p *probe) error {
	if err := p.open(l.segment, l.place); err != nil {
		return err
	}
	for _, i := range l.keys {
		if p.seek(q.keys[i], nil) && bytes.Equal(p.key, q.keys[i]) {
			q.done[i] = true
			q.found(i, p.value)
		}
		if p.bad {
			return l.segment.corrupt(l.at, "an invalid block")
		}
	}
	return nil
}

// readers is the number of blocks read at the same time. An SSD takes about as long for one.
const readers = 32

// parallel calls do for all look-ups, in several goroutines.
func parallel(all []*lookup, do func(*lookup, *probe) error) error {
	workers := min((len(all)+1)/2, readers)
	errs := make([]error, workers)
	work := func(w int) {
		p := probes.Get().(*probe)
		defer probes.Put(p)
		for i := w; i < len(all) && errs[w] == nil; i += workers {
			errs[w] = do(all[i], p)
		}
	}
	var wait sync.WaitGroup
	for w := 1; w < workers; w++ {
		wait.Go(func() { work(w) })
	}
	work(0)
	wait.Wait()
	return errors.Join(errs...)
}

// Neighbors are the entries before and after a key that have its prefix. The zero Neighbors is
// ready to use, by one goroutine at a time. Reuse saves allocations.
type Neighbors struct {
	Below Pair   // the greatest below the key
	Next  []byte // the least key that is not below it

	Key    []byte
	prefix []byte
	hash   uint64
}

// Reset begins a search for the neighbors of a key whose prefix has a length.
func (n *Neighbors) Reset(key []byte, prefix int) {
	n.Below.clear()
	n.Next = n.Next[:0]
	n.Key, n.prefix, n.hash = key, key[:prefix], hashOf(key[:prefix])
}

// SeeBelow takes note of an entry below the key, which came from elsewhere or from a newer run.
func (n *Neighbors) SeeBelow(p *Pair) {
	if len(p.Key) > 0 && bytes.HasPrefix(p.Key, n.prefix) && bytes.Compare(p.Key, n.Below.Key) > 0 {
		n.Below.set(p.Key, p.Value)
	}
}

// SeeNext takes note of a key that is not below the key.
func (n *Neighbors) SeeNext(key []byte) {
	if len(key) > 0 && bytes.HasPrefix(key, n.prefix) &&
		(len(n.Next) == 0 || bytes.Compare(key, n.Next) < 0) {
		n.Next = append(n.Next[:0], key...)
	}
}

// Around completes the neighbors of a key with those in the table, which must have no
// [Options].Dead.
func (t *Table) Around(n *Neighbors) error {
	v, err := t.acquire()
	if err != nil {
		return err
	}
	defer v.release()
	for _, r := range slices.Backward(v.runs) {
		if err := r.around(n); err != nil {
			return err
		}
	}
	return nil
}

// around reads at most one block: the first keys of the following ones are in the index.
func (r *run) around(n *Neighbors) error {
	at := r.segmentOf(n.Key, false)
	if at+1 < len(r.segments) {
		n.SeeNext(r.segments[at+1].first)
	}
	if at < 0 || !r.segments[at].filter.has(n.hash) {
		return nil
	}
	s := r.segments[at]
	p := probes.Get().(*probe)
	defer probes.Put(p)
	block, err := s.locate(p, n.Key, false)
	if err != nil {
		return err
	}
	n.SeeNext(p.following)
	if err := p.open(s, block); err != nil {
		return err
	}
	p.last.clear()
	if p.seek(n.Key, &p.last) {
		n.SeeNext(p.key)
	}
	if p.bad {
		return s.corrupt(block.at, "an invalid block")
	}
	n.SeeBelow(&p.last)
	return nil
}

// Scan returns sources of the entries from a key on, the newest first, for a [Merger]. The caller
// must call release when it is done with them.
func (t *Table) Scan(low []byte) (sources []Source, release func(), err error) {
	v, err := t.acquire()
	if err != nil {
		return nil, nil, err
	}
	for _, r := range slices.Backward(v.runs) {
		sources = append(sources, r.from(low))
	}
	return sources, v.release, nil
}

// A cursor is a source of the entries of a run, with large reads.
type cursor struct {
	segments []*segment // the rest, with the current one
	low      []byte     // entries below it are skipped; nil once they are
	skip     int64      // blocks before this offset are skipped
	top      int        // index of the next leaf
	leaf     entries
	buf      []byte // of the leaf
	entries
	block  int64  // offset of the current block
	end    int64  // of the current block; 0 before the first one of a segment
	window []byte // of the file
	start  int64  // of window
	ahead  int64  // length of the last window
}

// A scan starts with a read of a few blocks, as many scans are short. Its reads then grow.
// Tests change these sizes.
var (
	firstWindow int64 = 16 << 10
	scanWindow  int64 = durable.WriteSize
)

// from returns a cursor at the first key that is not below low.
func (r *run) from(low []byte) *cursor {
	if bytes.Compare(low, r.low) < 0 {
		low = r.low
	}
	return &cursor{segments: r.segments[max(r.segmentOf(low, true), 0):], low: low}
}

// Next returns the next entry.
func (c *cursor) Next() (key, value []byte, err error) {
	if c.low != nil && len(c.segments) > 0 && c.top == 0 {
		if err := c.seekBlock(c.segments[0]); err != nil {
			return nil, nil, err
		}
	}
	for {
		for c.step() {
			if c.low == nil || bytes.Compare(c.key, c.low) >= 0 {
				c.low = nil
				return c.key, c.value, nil
			}
		}
		if c.bad {
			return nil, nil, c.segments[0].corrupt(c.block, "an invalid block")
		}
		if more, err := c.nextBlock(); err != nil || !more {
			return nil, nil, err
		}
	}
}

// seekBlock moves to the block that may have low.
func (c *cursor) seekBlock(s *segment) error {
	p := probes.Get().(*probe)
	defer probes.Put(p)
	at, err := s.locate(p, c.low, true)
	if err != nil {
		return err
	}
	c.skip, c.top = at.at, p.at
	return c.nextLeaf(s)
}

// nextLeaf opens the next leaf.
func (c *cursor) nextLeaf(s *segment) error {
	b, err := s.leaf(c.top, c.buf)
	if err != nil {
		return err
	}
	if s.leaves == nil {
		c.buf = b
	}
	c.leaf.openVariable(b)
	c.top++
	return nil
}

// nextBlock opens the next block.
func (c *cursor) nextBlock() (more bool, err error) {
	for len(c.segments) > 0 {
		s := c.segments[0]
		switch {
		case c.leaf.step():
			at, ok := placeOf(c.leaf.value)
			if !ok || at.end() > s.data || c.end > 0 && at.at != c.end {
				return false, s.corrupt(s.tops[c.top-1].at, "an invalid index")
			}
			c.end = at.end()
			if at.at >= c.skip {
				return true, c.openBlock(s, at)
			}
		case c.leaf.bad:
			return false, s.corrupt(s.tops[c.top-1].at, "an invalid index")
		case c.top < len(s.tops):
			if err := c.nextLeaf(s); err != nil {
				return false, err
			}
		default:
			c.segments, c.top, c.skip, c.end = c.segments[1:], 0, 0, 0
			c.window = c.window[:0]
		}
	}
	return false, nil
}

// openBlock reads a block, and what follows it.
func (c *cursor) openBlock(s *segment, at place) error {
	n := int64(at.size + durable.SumSize)
	if at.at < c.start || at.at+n > c.start+int64(len(c.window)) {
		c.ahead = min(max(4*c.ahead, firstWindow), scanWindow)
		size := max(n, min(c.ahead, s.data-at.at))
		c.window, c.start = slices.Grow(c.window[:0], int(size))[:size], at.at
		if err := durable.ReadFull(s.file, s.name, c.window, at.at); err != nil {
			c.window = c.window[:0]
			return err
		}
	}
	b, err := s.verify(c.window[at.at-c.start:][:n], at.at)
	if err != nil {
		return err
	}
	c.block = at.at
	c.entries.open(&s.table.Options, b)
	return nil
}
