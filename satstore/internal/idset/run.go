package idset

import (
	"errors"
	"sort"
	"sync"
)

// A run is a sorted list of entries, in segments that do not overlap.
type run struct {
	segments []*segment
	low      Key // entries below it have moved to the output of a merge
	merges   int // number of runs before this one in Set.runs that are being merged into it
}

func (r *run) count() (n int64) {
	for _, s := range r.segments {
		n += s.count
	}
	return n
}

// segmentOf returns the segment that may have a key, or nil.
func (r *run) segmentOf(key Key) *segment {
	i := sort.Search(len(r.segments), func(i int) bool {
		return compareKeys(r.segments[i].firsts[0], key) > 0
	})
	if i == 0 || compareKeys(key, r.low) < 0 {
		return nil
	}
	return r.segments[i-1]
}

// A lookup is the part of a query that needs one block.
type lookup struct {
	segment *segment
	block   int64
	keys    []int // indexes
}

// find answers a query from a run. It requires that q.open is sorted by key.
func (r *run) find(q *query) error {
	var all []*lookup
	for _, i := range q.open {
		s := r.segmentOf(q.keys[i])
		if s == nil || !s.filter.has(q.keys[i]) {
			continue
		}
		block := s.blockOf(q.keys[i])
		if n := len(all); n == 0 || all[n-1].segment != s || all[n-1].block != block {
			all = append(all, &lookup{segment: s, block: block})
		}
		last := all[len(all)-1]
		last.keys = append(last.keys, i)
	}
	found := make([]bool, len(q.keys))
	err := parallel(all, func(l *lookup, b []byte) ([]byte, error) {
		b, err := l.segment.read(b, l.block)
		if err != nil {
			return b, err
		}
		for _, i := range l.keys {
			q.values[i], found[i] = search(b, q.keys[i], q.values[i])
		}
		return b, nil
	})
	open := q.open[:0]
	for _, i := range q.open {
		if !found[i] {
			open = append(open, i)
		}
	}
	q.open = open
	return err
}

// readers is the number of blocks read at the same time. An SSD takes about as long for one.
const readers = 32

// parallel calls do for all look-ups, in several goroutines. Each has its own buffer.
func parallel(all []*lookup, do func(*lookup, []byte) ([]byte, error)) error {
	var wait sync.WaitGroup
	workers := min((len(all)+1)/2, readers)
	errs := make([]error, workers)
	work := func(w int) {
		var b []byte
		for i := w; i < len(all) && errs[w] == nil; i += workers {
			b, errs[w] = do(all[i], b)
		}
	}
	for w := 1; w < workers; w++ {
		wait.Go(func() { work(w) })
	}
	if workers > 0 {
		work(0)
	}
	wait.Wait()
	return errors.Join(errs...)
}
