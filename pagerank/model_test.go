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
	for _, to := range links {
		p.score[to] += share
	}
	if p.opts.Cutoff == AR {
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
		"DL1": {Cutoff: DL1}, "DL1 with links": {Cutoff: AR, Threshold: 1},
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
	put := slices.Repeat([]float64{1}, n)
	ranks := exactly(g, put, func(uint32) float64 { return .85 })
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
