package pagerank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireLaw checks the sums against the nodes: nothing is lost and nothing is made.
func requireLaw(t *testing.T, f *Frontier) {
	t.Helper()
	var all, fed, held, dangling, open, debt float64
	var ids, live, set, pages int
	for i, n := range f.nodes {
		if n.state&(marked|waiting) != 0 || n.state&known == 0 && n.score != 0 {
			t.Fatalf("id %d is left with state %#x and score %v", i, n.state, n.score)
		}
		if n.state&known == 0 {
			continue
		}
		ids++
		all += n.score
		if n.state&queued != 0 {
			live++
			if n.state&(aside|fetched) != 0 {
				t.Fatalf("id %d is in two places: %#x", i, n.state)
			}
		}
		if n.state&aside != 0 {
			set++
		}
		if n.state&fetched == 0 {
			continue
		}
		pages++
		held += n.score
		f.calm(uint32(i))
		require.Equal(t, f.nodes[i].next, n.next, "when page %d needs attention", i)
		switch {
		case n.state&linked == 0:
			dangling += n.score
		case f.keeps():
			fed += f.passed[i] * f.opts.Damping
			open += math.Abs(n.score - f.passed[i])
			debt += max(f.passed[i]-n.score, 0)
		}
	}
	s := &f.sums
	require.Equal(t, []int{s.known, f.queue.live, f.aside, f.fetched},
		[]int{ids, live, set, pages})
	slack := 1e-9 * (1 + math.Abs(all))
	require.InDelta(t, s.put+s.total, all, slack, "scores are what was put in and passed on")
	require.InDelta(t, s.held, held, slack, "held")
	require.InDelta(t, s.dangling, dangling, slack, "dangling")
	if f.keeps() {
		require.InDelta(t, s.put+fed, all, slack, "scores less what was passed on are what was put in")
		require.InDelta(t, s.open, open, slack, "open")
		require.InDelta(t, s.debt, debt, slack, "debt")
	}
}

// keepers are options that keep links.
var keepers = map[string]Options{
	"Push": {}, "Push, all": {Threshold: 1e-9}, "DL1": {Cutoff: AR, Threshold: 1},
	"DL1, damped": {Cutoff: AR, Threshold: 1, Damping: 0.85},
	"AR":          {Cutoff: AR}, "AR, low": {Cutoff: AR, Threshold: 0.2, Damping: 0.9},
	"worth":     {Score: func(id uint32) float64 { return float64(id % 5) }},
	"inherited": {Inherit: true, Score: func(id uint32) float64 { return float64(1 + id%5) }},
	"hosts":     {Host: func(id uint32) uint32 { return id % 7 }},
}

// randomLinks makes a few links, some of them twice, to itself, or beyond all others.
func randomLinks(r *rand.Rand, id, n uint32) (links []uint32) {
	for range r.IntN(6) {
		links = append(links, r.Uint32N(n))
	}
	if r.IntN(4) == 0 {
		links = append(links, id)
	}
	if len(links) > 0 && r.IntN(4) == 0 {
		links = append(links, links[0])
	}
	return links
}

// edit does one random thing to a frontier, and to the graph that it should know.
func edit(r *rand.Rand, f *Frontier, graph map[uint32][]uint32) string {
	const n = 60
	id := r.Uint32N(n)
	switch r.IntN(10) {
	case 0:
		f.Discover(id)
		return fmt.Sprint("Discover ", id)
	case 1:
		f.Drop(id)
		return fmt.Sprint("Drop ", id)
	case 2, 3: // again, or out of order
	default:
		next, ok := f.NextReady(func(uint32) bool { return r.IntN(3) > 0 })
		if !ok {
			f.Release(r.Uint32N(7))
			return "Release"
		}
		id = next
	}
	links := randomLinks(r, id, n)
	f.Fetched(id, links)
	graph[id] = links
	return fmt.Sprint("Fetched ", id, links)
}

func TestLawHoldsAfterRandomEdits(t *testing.T) {
	for name, opts := range keepers {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				r := rand.New(rand.NewPCG(seed, 1))
				f := New(opts)
				graph := map[uint32][]uint32{}
				for range 120 {
					edit(r, f, graph)
					requireLaw(t, f)
				}
			}
		})
	}
}

// known60 makes the graph of what edit has fetched.
func known60(graph map[uint32][]uint32, n int) webGraph {
	return newWeb(n, func(yield func(a, b uint32) bool) {
		for from, links := range graph {
			for _, to := range links {
				if !yield(from, to) {
					return
				}
			}
		}
	})
}

// exactFor is the PageRank that a frontier's scores are on the way to.
func exactFor(f *Frontier, g webGraph, put []float64) []float64 {
	put = append(slices.Clone(put), make([]float64, g.Len()-len(put))...)
	return exactly(g, put, func(uint32) float64 { return f.opts.Damping })
}

// distance sums up how far scores are from ranks.
func distance(f *Frontier, ranks []float64) (sum float64) {
	total := f.Stats().Total
	for id, rank := range ranks {
		sum += math.Abs(f.Score(uint32(id))/total - rank)
	}
	return sum
}

// crawlRandomly edits and returns what was put in too.
func crawlRandomly(seed uint64, opts Options, edits int) (*Frontier, webGraph, []float64) {
	r := rand.New(rand.NewPCG(seed, 2))
	f := New(opts)
	graph, put := map[uint32][]uint32{}, make([]float64, 60)
	for range edits {
		id := r.Uint32N(60)
		links := randomLinks(r, id, 60)
		if _, again := graph[id]; !again {
			put[id] = 1
			if opts.Inherit {
				put[id] = opts.Score(id)
			}
		}
		f.Fetched(id, links)
		graph[id] = links
	}
	return f, known60(graph, 60), put
}

func TestScoresAreWithinTheStatedErrorOfExact(t *testing.T) {
	told := 0
	for name, opts := range keepers {
		if opts.normal().Damping == 1 {
			continue
		}
		for seed := range uint64(12) {
			f, g, put := crawlRandomly(seed, opts, 10+int(seed)*12)
			if f.Stats().Total == 0 {
				continue
			}
			bound := f.Stats().Error
			off := distance(f, exactFor(f, g, put))
			require.LessOrEqual(t, off, bound+1e-9, "%s, seed %d", name, seed)
			if bound < 2 {
				told++
			}
		}
	}
	require.Greater(t, told, 40, "a bound of 2 says nothing")
}

func TestDL1WithoutLinksKnowsItsErrorToo(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := New(Options{Cutoff: DL1, Damping: 0.85})
		graph, put := map[uint32][]uint32{}, make([]float64, 60)
		for id := range uint32(40) {
			graph[id] = randomLinks(r, id, 60)
			put[id] = 1
			f.Fetched(id, graph[id])
			requireLaw(t, f)
		}
		ranks := exactFor(f, known60(graph, 60), put)
		require.LessOrEqual(t, distance(f, ranks), f.Stats().Error)
		require.Less(t, f.Stats().Error, 2.0)
	}
}

func TestScoresAreExactAsTheThresholdGoesToZero(t *testing.T) {
	for _, cutoff := range []Cutoff{AR} {
		for seed := range uint64(2) {
			opts := Options{Cutoff: cutoff, Damping: 0.85, Threshold: 1e-13}
			f, g, put := crawlRandomly(seed, opts, 100)
			require.Less(t, distance(f, exactFor(f, g, put)), 1e-9, "cutoff %d seed %d", cutoff, seed)
			require.Less(t, f.Stats().Error, 1e-9)
		}
	}
}

func TestRefineReachesTheErrorAskedFor(t *testing.T) {
	for name, opts := range keepers {
		for seed := range uint64(3) {
			f, g, put := crawlRandomly(seed, opts, 100)
			before := f.Stats().Error
			ok := f.Refine(1e-6)
			requireLaw(t, f)
			require.Equal(t, opts.normal().Cutoff, f.opts.Cutoff, "as it was")
			require.InDelta(t, opts.normal().Threshold, f.opts.Threshold, 0)
			if opts.normal().Damping == 1 {
				require.False(t, ok)
				continue
			}
			require.LessOrEqual(t, distance(f, exactFor(f, g, put)), f.Stats().Error+1e-9, name)
			require.Equal(t, f.Stats().Error <= 1e-6, ok)
			require.True(t, ok, "%s, from %v", name, before)
		}
	}
	f := New(Options{Cutoff: DL1, Damping: .5})
	f.Fetched(0, []uint32{1})
	f.Fetched(1, []uint32{0})
	require.False(t, f.Refine(.01), "no links")
	require.True(t, f.Refine(1))
}

func TestFetchedPagesHoldAtLeastTheStatedMass(t *testing.T) {
	told := 0
	for name, opts := range keepers {
		if opts.normal().Damping == 1 {
			continue
		}
		for seed := range uint64(4) {
			f, g, put := crawlRandomly(seed, opts, 15+20*int(seed))
			mass := f.Stats().Mass
			if mass > 0.1 {
				told++
			}
			// The pages not fetched may be linked in any way: here in three.
			for trial := range uint64(3) {
				whole := g
				if trial > 0 {
					whole = finish(f, g, rand.New(rand.NewPCG(seed, trial)))
				}
				held := 0.0
				for id, rank := range exactFor(f, whole, put) {
					if int(id) < len(f.nodes) && f.nodes[id].state&fetched != 0 {
						held += rank
					}
				}
				require.LessOrEqual(t, mass, held+1e-9, "%s, seed %d, trial %d", name, seed, trial)
			}
		}
	}
	require.Greater(t, told, 12, "a bound of 0 says nothing")
}

// finish gives links to the pages that were not fetched.
func finish(f *Frontier, g webGraph, r *rand.Rand) webGraph {
	seed := r.Uint64() // NewGraph walks twice, and is to see the same
	return newWeb(g.Len()+10, func(yield func(a, b uint32) bool) {
		more := rand.New(rand.NewPCG(seed, 9))
		for id := range uint32(g.Len() + 10) {
			var links []uint32
			switch {
			case int(id) < len(f.nodes) && f.nodes[id].state&fetched != 0:
				links = g.Links(id)
			default:
				links = randomLinks(more, id, uint32(g.Len()+10))
			}
			for _, to := range links {
				if !yield(id, to) {
					return
				}
			}
		}
	})
}
