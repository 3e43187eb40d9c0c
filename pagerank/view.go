package pagerank

import (
	"cmp"
	"iter"
	"slices"
)

// Top yields the n fetched pages with the highest scores, best first; of equals, the lower id
// first. It scans all known ids, which takes milliseconds for a million, and holds 2n of them. The
// score divided by Stats.Total is a page's share of all PageRank, with an error of at most half of
// Stats.Error. The frontier must not be changed during the iteration.
func (f *Frontier) Top(n int) iter.Seq2[uint32, float64] {
	return func(yield func(uint32, float64) bool) {
		for _, p := range f.best(min(n, f.fetched)) {
			if !yield(p.id, p.score) {
				return
			}
		}
	}
}

// A scored is an id with its score.
type scored struct {
	id    uint32
	score float64
}

// best returns the n best fetched pages; there must be that many. It collects twice as many before
// it sorts and drops the worse half. So sorting costs log n for each page that gets in, and most do
// not: a late page has to be better than n others.
func (f *Frontier) best(n int) []scored {
	if n <= 0 {
		return nil
	}
	found := make([]scored, 0, min(2*n, f.fetched))
	full := false
	least := 0.0 // if full: the score to beat
	for i := range f.nodes {
		p := &f.nodes[i]
		if p.state&fetched == 0 || full && p.score <= least {
			continue
		}
		if found = append(found, scored{uint32(i), p.score}); len(found) == 2*n {
			sortScored(found)
			found, full, least = found[:n], true, found[n-1].score
		}
	}
	sortScored(found)
	return found[:n]
}

func sortScored(list []scored) {
	slices.SortFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
}

// Ahead yields the n ids that Next would return if nothing were fetched in between, in that order,
// with their scores. The order is that of the queue, which is not quite that of the scores. It
// usually reads about n entries of the queue, at worst all of them. Ids that are set aside are not
// included. The frontier must not be changed during the iteration.
func (f *Frontier) Ahead(n int) iter.Seq2[uint32, float64] {
	return func(yield func(uint32, float64) bool) {
		list := f.queue.ahead(f.nodes, n)
		if len(list) < n && len(f.newcomers) > 0 {
			list = append(list, f.lineUp()...)
		}
		for _, id := range list[:max(0, min(n, len(list)))] {
			if !yield(id, f.nodes[id].score) {
				return
			}
		}
	}
}

// ahead returns the first n ids of the queue.
func (q *queue) ahead(nodes []node, n int) (ids []uint32) {
	n = min(n, q.live)
	for b := buckets - 1; b >= 0 && len(ids) < n; b-- {
		for id := range q.entriesOf(uint16(b)) {
			if len(ids) == n {
				break
			}
			// An id that left the bucket and came back has two entries that look valid.
			if t := &nodes[id]; t.state&marked == 0 && t.isIn(uint16(b)) {
				t.state |= marked
				ids = append(ids, id)
			}
		}
	}
	for _, id := range ids {
		nodes[id].state &^= marked
	}
	return ids
}
