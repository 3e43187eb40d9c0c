package pagerank

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A paper is the algorithm of the paper in its own words, with maps, for scores alone.
type paper struct {
	opts  Options
	score map[uint32]float64
	saved map[uint32]float64 // a_p of AR
	links map[uint32][]uint32
}

func newPaper(opts Options) *paper {
	return &paper{
		opts.normal(), map[uint32]float64{}, map[uint32]float64{}, map[uint32][]uint32{},
	}
}

// fetched takes links without repetitions, sorted.
func (p *paper) fetched(id uint32, links []uint32) {
	p.score[id]++
	p.links[id] = links
	share := p.score[id] * p.opts.Damping / float64(len(links))
	type step struct {
		to    uint32
		share float64
	}
	var next []step
	for _, to := range links {
		before := p.score[to]
		p.score[to] += share
		if p.opts.Cutoff != VR || share >= p.opts.Threshold*before {
			next = append(next, step{to, share})
		}
	}
	switch p.opts.Cutoff {
	case PL:
		seen := map[uint32]bool{id: true}
		for count := 0; len(next) > 0 && count < p.opts.Pages; next = next[1:] {
			at := next[0]
			if out := p.links[at.to]; len(out) > 0 && !seen[at.to] {
				seen[at.to] = true
				count++
				for _, to := range out {
					given := at.share * p.opts.Damping / float64(len(out))
					p.score[to] += given
					next = append(next, step{to, given})
				}
			}
		}
	case VR:
		for ; len(next) > 0; next = next[1:] {
			out := p.links[next[0].to]
			for _, to := range out {
				given := next[0].share * p.opts.Damping / float64(len(out))
				if given >= p.opts.Threshold*p.score[to] {
					p.score[to] += given
					next = append(next, step{to, given})
				}
			}
		}
	case AR:
		p.accumulate(links, share)
	}
}

// accumulate is AR: the pages whose savings pass the threshold spend them, first come first served.
func (p *paper) accumulate(links []uint32, share float64) {
	var spenders []uint32
	save := func(to uint32, amount float64) {
		if len(p.links[to]) == 0 {
			return
		}
		p.saved[to] += amount
		if p.saved[to] > p.opts.Threshold*p.score[to] && !slices.Contains(spenders, to) {
			spenders = append(spenders, to)
		}
	}
	for _, to := range links {
		save(to, share)
	}
	for len(spenders) > 0 {
		id := spenders[0]
		spenders = spenders[1:]
		given := p.saved[id] * p.opts.Damping / float64(len(p.links[id]))
		p.saved[id] = 0
		for _, to := range p.links[id] {
			p.score[to] += given
			save(to, given)
		}
	}
}

func TestCutoffsAreThoseOfThePaper(t *testing.T) {
	for name, opts := range map[string]Options{
		"DL1": {Cutoff: DL1}, "DL1 with links": {Cutoff: DL1, KeepLinks: true},
		"PL 8": {Cutoff: PL}, "PL 1": {Cutoff: PL, Pages: 1}, "PL 50": {Cutoff: PL, Pages: 50},
		"VR 1.5": {Cutoff: VR}, "VR 0.3": {Cutoff: VR, Threshold: 0.3},
		"AR 29/30": {Cutoff: AR}, "AR 0.2137": {Cutoff: AR, Threshold: 0.2137}, // not a value that rounding decides
		"AR 0.1037, damped": {Cutoff: AR, Threshold: 0.1037, Damping: 0.85},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				r := rand.New(rand.NewPCG(seed, 4))
				f, p := New(opts), newPaper(opts)
				const n = 50
				for _, id := range r.Perm(n) {
					links := make([]uint32, r.IntN(6))
					for i := range links {
						links[i] = r.Uint32N(n)
					}
					slices.Sort(links)
					links = slices.Compact(links)
					links = slices.DeleteFunc(links, func(to uint32) bool { return int(to) == id })
					f.Fetched(uint32(id), links)
					p.fetched(uint32(id), links)
					for to := range uint32(n) {
						if diff := p.score[to] - f.Score(to); math.Abs(diff) > 1e-9 {
							t.Fatalf("seed %d: score of %d is %v too low", seed, to, diff)
						}
					}
				}
			}
		})
	}
}

// TestOrderIsThatOfAnExactQueue compares the paper's criterion of order with that of a queue that
// looks at all scores before each page.
func TestOrderIsThatOfAnExactQueue(t *testing.T) {
	const n = 2000
	g := testWeb(n, 5)
	ranks := Exact(g, ExactOptions{})
	var exact []uint32
	p := newPaper(Options{Cutoff: DL1})
	found := []uint32{0}
	known := map[uint32]bool{0: true}
	for len(found) > 0 {
		best := 0
		for i, id := range found {
			if p.score[id] > p.score[found[best]] {
				best = i
			}
		}
		id := found[best]
		found = slices.Delete(found, best, best+1)
		exact = append(exact, id)
		p.fetched(id, g.Links(id))
		for _, to := range g.Links(id) {
			if !known[to] {
				known[to] = true
				found = append(found, to)
			}
		}
	}
	got := crawl(New(Options{Cutoff: DL1}), g, 0)
	require.Len(t, got, len(exact))
	require.InEpsilon(t, collected(ranks, exact), collected(ranks, got), 0.01)
}

// collected is the paper's criterion B, as the area under the curve.
func collected(ranks []float64, order []uint32) (sum float64) {
	for i, id := range order {
		sum += ranks[id] * float64(len(order)-i)
	}
	return sum / float64(len(order))
}

// crawl follows a strategy from seeds to the end.
func crawl(s Strategy, g *Graph, seeds ...uint32) (order []uint32) {
	for _, id := range seeds {
		s.Discover(id)
	}
	for id, ok := s.Next(); ok; id, ok = s.Next() {
		order = append(order, id)
		s.Fetched(id, g.Links(id))
	}
	return order
}

// testWeb makes a graph in which some pages are far more popular than others.
func testWeb(n int, seed uint64) *Graph {
	r := rand.New(rand.NewPCG(seed, 6))
	var from, to []uint32
	for i := 1; i < n; i++ {
		from, to = append(from, r.Uint32N(uint32(i))), append(to, uint32(i))
		for range r.IntN(12) {
			target := r.Uint32N(uint32(n))
			if r.IntN(3) > 0 && len(to) > 0 {
				target = to[r.IntN(len(to))]
			}
			from, to = append(from, uint32(i)), append(to, target)
		}
	}
	return NewGraph(n, func(yield func(a, b uint32) bool) {
		for i := range from {
			if !yield(from[i], to[i]) {
				return
			}
		}
	})
}
