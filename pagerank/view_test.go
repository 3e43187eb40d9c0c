package pagerank

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// listed collects what Top yields.
func listed(seq func(func(uint32, float64) bool)) (list []scored) {
	for id, score := range seq {
		list = append(list, scored{id, score})
	}
	return list
}

func TestTopWorkedByHand(t *testing.T) {
	f := New(Options{Cutoff: DL1})
	require.Empty(t, listed(f.Top(3)), "nothing is fetched")
	// 0 gives 1/2 to 1 and 2; 1 has 3/2 then and gives it to 2.
	f.Fetched(0, []uint32{1, 2})
	f.Fetched(1, []uint32{2})
	require.Equal(t, []scored{{1, 1.5}, {0, 1}}, listed(f.Top(3)), "2 is not fetched")
	f.Fetched(2, nil)
	f.Fetched(3, nil)
	want := []scored{{2, 3}, {1, 1.5}, {0, 1}, {3, 1}}
	for n := range 6 {
		require.Equal(t, want[:min(n, 4)], append([]scored{}, listed(f.Top(n))...), "top %d", n)
	}
	require.Empty(t, listed(f.Top(-1)))
	for id := range f.Top(4) {
		require.Equal(t, uint32(2), id)
		break // the caller may stop early
	}
}

// TestTopIsTheHeadOfAllSorted compares with sorting all.
func TestTopIsTheHeadOfAllSorted(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 21))
		f := New(Options{Cutoff: DL1})
		var all []scored
		for range r.IntN(300) {
			edit(r, f, map[uint32][]uint32{})
		}
		for id, n := range f.nodes {
			if n.state&fetched != 0 {
				all = append(all, scored{uint32(id), n.score})
			}
		}
		slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		for _, n := range []int{1, 2, 3, 7, len(all) / 2, len(all), len(all) + 5, 1 << 30} {
			n := max(n, 0)
			want := append([]scored(nil), all[:min(n, len(all))]...)
			require.Equal(t, want, listed(f.Top(n)), "seed %d, top %d of %d", seed, n, len(all))
		}
	}
}

func TestTopHoldsNoMoreThanItIsAskedFor(t *testing.T) {
	f := New(Options{Cutoff: DL1})
	for id := range uint32(5000) {
		f.Fetched(id, []uint32{(id + 1) % 5000})
	}
	require.LessOrEqual(t, cap(f.best(10)), 20)
	few := testing.AllocsPerRun(10, func() { f.best(10) })
	require.LessOrEqual(t, few, 1.0, "one list, however many pages there are")
}

// upcoming returns the first n ids that Next would return, from a copy of a frontier.
func upcoming(f *Frontier, n int) (ids []uint32) {
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		panic(err)
	}
	f, err := Read(&file, f.opts)
	if err != nil {
		panic(err)
	}
	for id, ok := f.Next(); ok && len(ids) < n; id, ok = f.Next() {
		ids = append(ids, id)
	}
	return ids
}

// TestNoPageIsFurtherOffThanHalfOfTheError is what a status page may say of one page.
func TestNoPageIsFurtherOffThanHalfOfTheError(t *testing.T) {
	for seed := range uint64(6) {
		f, g, put := crawlRandomly(seed, Options{}, 20+int(seed)*15)
		f.Refine(0.2)
		ranks := exactFor(f, g, put)
		stats := f.Stats()
		require.LessOrEqual(t, stats.Error, 0.2)
		for id, score := range f.Top(10) {
			require.InDelta(t, ranks[id], score/stats.Total, stats.Error/2)
		}
	}
}
