package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/pagerank/internal/randomweb"
	"github.com/stretchr/testify/require"
)

// graphOf makes a graph from lists of links.
func graphOf(links ...[]uint32) *Graph {
	return NewGraph(len(links), func(yield func(a, b uint32) bool) {
		for from, list := range links {
			for _, to := range list {
				if !yield(uint32(from), to) {
					return
				}
			}
		}
	})
}

func TestGraphLeavesOutWhatDoesNotCount(t *testing.T) {
	g := graphOf([]uint32{2, 0, 1, 2, 9}, nil, []uint32{0, 0, 2})
	require.Equal(t, 3, g.Len())
	require.Equal(t, 3, g.Size())
	require.Equal(t, []uint32{2, 1}, g.Links(0), "in order, without itself, once, and within bounds")
	require.Empty(t, g.Links(1))
	require.Equal(t, []uint32{0}, g.Links(2))
	back := g.reversed()
	require.Equal(t, [][]uint32{{2}, {0}, {0}}, [][]uint32{back.Links(0), back.Links(1), back.Links(2)})
}

func TestExactWorkedByHand(t *testing.T) {
	for _, tt := range []struct {
		name string
		g    *Graph
		opts ExactOptions
		want []float64
	}{
		{"nothing", graphOf(), ExactOptions{}, nil},
		{"one page", graphOf(nil), ExactOptions{}, []float64{1}},
		{"a cycle", graphOf([]uint32{1}, []uint32{2}, []uint32{0}), ExactOptions{},
			[]float64{1. / 3, 1. / 3, 1. / 3}},
		// x0 = 1, x1 = 1 + .85*x0 before scaling.
		{"a link", graphOf([]uint32{1}, nil), ExactOptions{}, []float64{1 / 2.85, 1.85 / 2.85}},
		{"readers start on the second page", graphOf([]uint32{1}, []uint32{0}),
			ExactOptions{Teleport: []float64{0, 7}}, []float64{.85 / 1.85, 1 / 1.85}},
		{"nobody starts anywhere", graphOf([]uint32{1}, nil),
			ExactOptions{Teleport: []float64{0, 0}}, []float64{0, 0}},
	} {
		require.InDeltaSlice(t, tt.want, Exact(tt.g, tt.opts), 1e-10, tt.name)
	}
}

// TestExactSolvesTheEquation checks the definition: x = d(Pᵀx + v·(what ends)) + (1-d)v.
func TestExactSolvesTheEquation(t *testing.T) {
	const n, d = 5000, .85 // two blocks
	g := testWeb(n, 0)
	x := Exact(g, ExactOptions{Workers: 3})
	require.Equal(t, x, Exact(g, ExactOptions{Workers: 1}), "workers do not matter")
	want, ends, sum := make([]float64, n), 0.0, 0.0
	for id, rank := range x {
		links := g.Links(uint32(id))
		if sum += rank; len(links) == 0 {
			ends += rank
		}
		for _, to := range links {
			want[to] += d * rank / float64(len(links))
		}
	}
	require.InDelta(t, 1, sum, 1e-12)
	off := 0.0
	for id, rank := range x {
		off += math.Abs(rank - want[id] - (d*ends+1-d)/n)
	}
	require.Less(t, off, 1e-10)
}

func TestStrategiesFetchEveryPageOnce(t *testing.T) {
	g := testWeb(2000, 3)
	want := slices.Sorted(slices.Values(crawl(&BreadthFirst{}, g, 0, 5)))
	for name, s := range map[string]Strategy{
		"BackLinks": &BackLinks{}, "BackLinks by tie": &BackLinks{Tie: func(id uint32) uint32 { return id % 9 }},
		"Batch": &Batch{Every: 100}, "OPIC": &OPIC{}, "PL": &PL{}, "VR": &VR{}, "Push": pagerank.New(pagerank.Options{}),
	} {
		order := crawl(s, g, 0, 5)
		require.Equal(t, want, slices.Sorted(slices.Values(order)), name)
		s.Discover(order[0])
		_, ok := s.Next()
		require.False(t, ok, "a page comes once")
	}
}

// TestBackLinksIsThatOfASimpleOne compares with a search through all counts.
func TestBackLinksIsThatOfASimpleOne(t *testing.T) {
	for seed := range uint64(3) {
		g := testWeb(400, seed)
		tie := func(id uint32) uint32 { return id % 5 }
		counts, found := make([]int, g.Len()), []uint32{0}
		var want []uint32
		for len(found) > 0 {
			best := 0
			for i, id := range found {
				b := found[best]
				if counts[id] > counts[b] || counts[id] == counts[b] && tie(id) < tie(b) {
					best = i
				}
			}
			id := found[best]
			found = slices.Delete(found, best, best+1)
			want = append(want, id)
			for _, to := range g.Links(id) {
				if counts[to]++; counts[to] == 1 && to != 0 {
					found = append(found, to)
				}
			}
		}
		require.Equal(t, want, crawl(&BackLinks{Tie: tie}, g, 0), "seed %d", seed)
	}
}

func TestBatchIterates(t *testing.T) {
	b := &Batch{Every: 2}
	b.Discover(0)
	for want, links := range [][]uint32{{1, 2, 3}, {3}} {
		id, ok := b.Next()
		require.True(t, ok)
		require.Equal(t, uint32(want), id)
		b.Fetched(id, links)
	}
	// 0 and 1 had .15 at the start: 3 gets .85 (.15/3 + .15) beside its own .15, and 2 less.
	require.InDelta(t, .15+.85*(.15/3+.15), b.pages[3].score, 1e-12)
	require.InDelta(t, .15+.85*.15/3, b.pages[2].score, 1e-12)
	id, _ := b.Next()
	require.Equal(t, uint32(3), id)
}

// TestBatchIsExactInTheEnd iterates again and again on a graph that is all fetched.
func TestBatchIsExactInTheEnd(t *testing.T) {
	g := testWeb(400, 8)
	b := &Batch{Every: 1000}
	order := crawl(b, g, 0)
	for range 200 {
		b.iterate()
	}
	in := map[uint32]bool{}
	for _, id := range order {
		in[id] = true
	}
	teleport := make([]float64, g.Len())
	for id := range in {
		teleport[id] = 1
	}
	total := 0.0
	for id := range in {
		total += b.table.pages[id].score
	}
	for id, rank := range Exact(g, ExactOptions{Teleport: teleport}) {
		if in[uint32(id)] {
			require.InDelta(t, rank, b.table.pages[id].score/total, 1e-9)
		}
	}
}

func TestBatchPutsPagesInOrderOfTheLastIteration(t *testing.T) {
	b := &Batch{Every: 3}
	for id := range uint32(4) {
		b.Discover(id)
	}
	for want := range uint32(4) {
		id, _ := b.Next()
		require.Equal(t, want, id)
	}
	for id := range uint32(3) {
		b.Fetched(id, []uint32{20, 10 + id})
	}
	b.Fetched(3, []uint32{30, 31, 10})
	var got []uint32
	for id, ok := b.Next(); ok; id, ok = b.Next() {
		got = append(got, id)
	}
	require.Equal(t, []uint32{20, 10, 11, 12, 30, 31}, got, "20 has most, 30 and 31 are new")
}

func TestBreadthFirstFollowsDistance(t *testing.T) {
	g := testWeb(800, 9)
	far := map[uint32]int{0: 0}
	last := 0
	b := &BreadthFirst{}
	b.Discover(0)
	for id, ok := b.Next(); ok; id, ok = b.Next() {
		require.GreaterOrEqual(t, far[id], last, "never back to what is nearer")
		last = far[id]
		b.Fetched(id, g.Links(id))
		for _, to := range g.Links(id) {
			if _, met := far[to]; !met {
				far[to] = far[id] + 1
			}
		}
	}
	require.Greater(t, last, 2)
}

func TestOPICHandsItsCashOn(t *testing.T) {
	var o OPIC
	_, ok := o.Next()
	require.False(t, ok)
	o.Discover(0)
	id, _ := o.Next()
	o.Fetched(id, []uint32{1, 2})
	id, _ = o.Next()
	o.Fetched(id, []uint32{2, 3})
	require.InDelta(t, .75, o.heap.pages[2].score, 1e-12)
	require.InDelta(t, .25, o.heap.pages[3].score, 1e-12)
	id, _ = o.Next()
	require.Equal(t, uint32(2), id)
	o.Discover(2)
	require.InDelta(t, .75, o.heap.pages[2].score, 1e-12, "it has had cash")
	o.Fetched(1, []uint32{4})
	require.Zero(t, o.heap.pages[4].score, "its cash is spent")
}

func TestRandomLinksDoNotBreakStrategies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	for _, s := range []Strategy{
		&BreadthFirst{}, &BackLinks{}, &Batch{Every: 7}, &PL{}, &VR{}, &OPIC{},
	} {
		seen := map[uint32]bool{}
		for range 300 {
			id := r.Uint32N(60)
			s.Discover(id)
			next, ok := s.Next()
			if ok {
				require.False(t, seen[next])
				seen[next] = true
				s.Fetched(next, randomLinks(r, next, 60))
			}
		}
		require.Len(t, seen, 60)
	}
}

func TestBatchTakesNewPagesForThoseWithoutLinks(t *testing.T) {
	b := &Batch{Every: 1}
	b.Discover(5)
	b.Fetched(0, nil) // 5 is worth .15 from here on
	b.Discover(3)
	id, _ := b.Next()
	require.Equal(t, uint32(5), id, "3 is worth no more, and came later")
}

func TestTiesGoToOtherHostsFirst(t *testing.T) {
	host := func(id uint32) uint32 { return id / 10 }
	for _, s := range []Strategy{
		&BreadthFirst{Host: host}, &BackLinks{Host: host}, &Batch{Host: host}, &PL{Host: host},
		&VR{Host: host}, &OPIC{Host: host},
	} {
		s.Discover(1)
		id, _ := s.Next()
		s.Fetched(id, []uint32{3, 11, 2, 25, 12, 4})
		var order []uint32
		for id, ok := s.Next(); ok; id, ok = s.Next() {
			order = append(order, id)
		}
		require.Equal(t, []uint32{11, 25, 12, 3, 2, 4}, order, "%T", s)
	}
}

// TestCutoffsWorkedByHand checks the scores of PL and VR.
func TestCutoffsWorkedByHand(t *testing.T) {
	type step struct {
		id    uint32
		links []uint32
	}
	// 0 gets 1 and gives 1/2 to each of 1 and 2.
	// 1 gets 1, has 3/2, and gives 3/4 to each of 0 and 3.
	// 3 gets 1, has 7/4, and gives it to 0.
	cycle := []step{{0, []uint32{1, 2}}, {1, []uint32{0, 3}}, {3, []uint32{0}}}
	// 1 has 1 before it is linked to by 0, which has 1 and nothing else to link to.
	steep := []step{{1, []uint32{2}}, {2, nil}, {0, []uint32{1}}}
	for _, tt := range []struct {
		name  string
		s     Strategy
		steps []step
		want  []float64
	}{
		{
			// 1's share reaches 0, which passes 3/8 to 1 and 2; 1 is where it began. 3's share 7/4
			// goes to 0, on to 1 and 2 (7/8 each), and from 1 to 0 and 3 (7/16 each); 0 and 3 had
			// their turn.
			"PL goes on, breadth first", &PL{}, cycle,
			[]float64{1 + .75 + 1.75 + .4375, 1.5 + .375 + .875, .5 + .375 + .875, 1.75 + .4375},
		},
		{
			"PL stops after so many pages", &PL{Pages: 1}, cycle,
			[]float64{1 + .75 + 1.75, 1.5 + .375 + .875, .5 + .375 + .875, 1.75},
		},
		{
			// The last share of 1.75 is 1.0 times what 0 had: too little for 1.5, enough for 0.9.
			// It offers 7/8 to 1, which has 3/2, and to 2, which has 1/2: only 2 takes it.
			"VR with a high threshold is DL1", &VR{}, cycle, []float64{3.5, 1.5, .5, 1.75},
		},
		{
			"VR ignores small gains of distant pages", &VR{Threshold: .9}, cycle,
			[]float64{3.5, 1.5, .5 + .875, 1.75},
		},
		{
			"VR passes on a gain as large as the score", &VR{Threshold: .4}, steep,
			[]float64{1, 2, 2 + 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, p := range tt.steps {
				tt.s.Fetched(p.id, p.links)
				tt.s.Fetched(p.id, p.links) // the second time nothing changes
			}
			var pages []page
			switch s := tt.s.(type) {
			case *PL:
				pages = s.scores.pages
			case *VR:
				pages = s.scores.pages
			}
			for id, want := range tt.want {
				require.InDelta(t, want, pages[id].score, 1e-12, "page %d", id)
			}
		})
	}
}

func TestTheCallersSliceIsNeverChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 18))
	host := func(id uint32) uint32 { return id % 3 }
	for _, s := range []Strategy{
		&BreadthFirst{Host: host}, &BackLinks{}, &Batch{Every: 3}, &OPIC{Host: host}, &PL{Host: host}, &VR{},
	} {
		for range 200 {
			links := randomLinks(r, 7, 50)
			if r.IntN(2) == 0 {
				slices.Sort(links)
			}
			before := slices.Clone(links)
			s.Fetched(r.Uint32N(50), links)
			require.Equal(t, before, links, "%T", s)
		}
	}
}

// randomLinks makes a few links, some of them twice, or to the page itself.
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
func testWeb(n int, seed uint64) *Graph { return graphOf(randomweb.Links(n, seed)...) }

// TestVREndsWithAnyThreshold: a negative one would pass on forever what goes in a circle.
func TestVREndsWithAnyThreshold(t *testing.T) {
	v := &VR{Threshold: -1}
	v.Fetched(1, []uint32{2})
	v.Fetched(2, []uint32{1})
	require.Less(t, v.Updates(), 100)
}
