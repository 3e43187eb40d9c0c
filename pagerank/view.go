package pagerank

import (
	"cmp"
	"iter"
	"math"
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
	least := math.Inf(-1) // the score to beat
	for i := range f.nodes {
		p := &f.nodes[i]
		if p.state&fetched == 0 || p.score <= least {
			continue
		}
		if found = append(found, scored{uint32(i), p.score}); len(found) == 2*n {
			sortScored(found)
			found, least = found[:n], found[n-1].score
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
