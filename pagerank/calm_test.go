package pagerank

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// nervous makes a frontier check each fetched page at every gain.
func nervous(f *Frontier) {
	for id := range f.nodes {
		if f.nodes[id].state&fetched != 0 {
			f.nodes[id].next = 0
		}
	}
}

// TestCalmPagesNeedNoAttention crawls twice, once with all pages nervous before each step: a page's
// level must affect nothing but speed.
func TestCalmPagesNeedNoAttention(t *testing.T) {
	for name, opts := range keepers {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				a, b := rand.New(rand.NewPCG(seed, 33)), rand.New(rand.NewPCG(seed, 33))
				calm, all := New(opts), New(opts)
				for range 150 {
					nervous(all)
					did := edit(a, calm, map[uint32][]uint32{})
					require.Equal(t, did, edit(b, all, map[uint32][]uint32{}))
					require.Equal(t, calm.sums.updates, all.sums.updates, did)
				}
				for id := range uint32(60) {
					require.InDelta(t, all.Score(id), calm.Score(id), 1e-9)
				}
				require.InDelta(t, all.Stats().Open, calm.Stats().Open, 1e-9)
				require.InDelta(t, all.Stats().Error, calm.Stats().Error, 1e-9)
			}
		})
	}
}

func TestCalmWorkedByHand(t *testing.T) {
	f := New(Options{Cutoff: AR, Threshold: 0.75})
	f.Fetched(0, []uint32{1}) // 0 has passed on 1: a score of 4 is where it does so again
	require.Equal(t, levelOf(4), f.nodes[0].next)
	f.Fetched(2, []uint32{0})
	f.Fetched(3, []uint32{0})
	require.InDelta(t, 3.0, f.Score(0), 0)
	require.InDelta(t, 1.0, f.Score(1), 0)
	f.Fetched(4, []uint32{0})
	require.InDelta(t, 4.0, f.Score(0), 0)
	require.InDelta(t, 1.0, f.Score(1), 0, "not more than the threshold")
	f.Fetched(5, []uint32{0})
	require.InDelta(t, 5.0, f.Score(1), 0, "all that came since goes at once")
	require.Equal(t, levelOf(20), f.nodes[0].next)

	f.Fetched(6, nil)
	require.Equal(t, uint16(always), f.nodes[6].next, "without links there is nothing to do, ever")
	light := New(Options{Cutoff: DL1})
	light.Fetched(0, []uint32{1})
	require.Equal(t, uint16(always), light.nodes[0].next)
	never := New(Options{Cutoff: AR, Threshold: 1})
	never.Fetched(0, []uint32{1})
	require.Equal(t, uint16(always), never.nodes[0].next, "a score is never less than zero")
}

func TestDebtNeedsAttention(t *testing.T) {
	f := New(Options{Cutoff: DL1, KeepLinks: true})
	f.Fetched(0, []uint32{1})
	f.Fetched(1, []uint32{2}) // has 2, and passes on 2
	f.Fetched(0, []uint32{3}) // 1 loses 1: it has passed on more than it has
	require.InDelta(t, 1.0, f.sums.debt, 1e-12)
	require.Zero(t, f.nodes[1].next)
	requireLaw(t, f)
	f.Fetched(4, []uint32{1})
	require.Zero(t, f.sums.debt, "it has got 1, and owes nothing")
	require.Equal(t, uint16(always), f.nodes[1].next)
	requireLaw(t, f)
}

// TestKeysFallOnlyByLoss is the rule of the queue: an id keeps its bucket until its key rises, or
// its score falls because a page has other links now.
func TestKeysFallOnlyByLoss(t *testing.T) {
	f := New(Options{Cutoff: DL1, KeepLinks: true})
	f.Fetched(0, []uint32{10, 11})
	f.Fetched(1, []uint32{10, 11})
	f.Fetched(2, []uint32{11})
	require.Equal(t, []uint32{11, 10}, upcoming(f, 2))
	f.Fetched(2, []uint32{12})
	f.Fetched(1, []uint32{10})
	require.Equal(t, []uint32{10, 12, 11}, upcoming(f, 3))
	for id, want := range map[uint32]float64{10: 1.5, 12: 1, 11: .5} {
		require.InDelta(t, want, f.Score(id), 1e-12)
	}
	requireLaw(t, f)
}

// TestGivingToManyAtOnceIsGivingOneByOne splits a share's receivers in two.
func TestGivingToManyAtOnceIsGivingOneByOne(t *testing.T) {
	for name, opts := range keepers {
		r := rand.New(rand.NewPCG(3, 34))
		once, parts := New(opts), New(opts)
		for range 60 {
			id := r.Uint32N(60)
			links := randomLinks(r, id, 60)
			once.Fetched(id, links)
			parts.Fetched(id, links)
		}
		var to []uint32
		for id := range uint32(60) {
			if once.nodes[id].state&known != 0 {
				to = append(to, id)
			}
		}
		cut := len(to) / 2
		once.give(to, .25)
		for _, part := range [][]uint32{slices.Clone(to[:cut]), slices.Clone(to[cut:])} {
			parts.give(part, .25)
		}
		for id := range uint32(60) {
			require.InDelta(t, once.Score(id), parts.Score(id), 1e-12, name)
			require.Equal(t, once.nodes[id].state, parts.nodes[id].state, name)
		}
		require.InDelta(t, once.sums.open, parts.sums.open, 1e-9, name)
		require.InDelta(t, once.sums.held, parts.sums.held, 1e-9, name)
		require.Equal(t, once.wave, parts.wave, "the same pages want to pass it on")
	}
}
