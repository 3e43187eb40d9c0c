package pagerank

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPushCostsHalfAsMuchAgain counts the work on a thin graph and on a dense one.
func TestPushCostsHalfAsMuchAgain(t *testing.T) {
	dense := make(webGraph, 300)
	for id := range dense {
		for to := range uint32(300) {
			if int(to) != id && to%3 != 0 {
				dense[id] = append(dense[id], to)
			}
		}
	}
	for name, g := range map[string]webGraph{"thin": testWeb(3000, 3), "dense": dense} {
		links, most := 0, 0
		for _, l := range g {
			most = max(most, len(l))
		}
		for _, threshold := range []float64{0, 0.01} {
			f := New(Options{Threshold: threshold})
			f.Discover(0)
			links = 0
			for id, ok := f.Next(); ok; id, ok = f.Next() {
				f.Fetched(id, g.Links(id))
				links += len(g.Links(id))
				require.LessOrEqual(t, f.Stats().Updates, links+links/2+most, name)
			}
			require.Greater(t, f.Stats().Updates, links, name)
			requireLaw(t, f)
		}
	}
}

func TestIdsComeByScoreTimesWorth(t *testing.T) {
	worth := map[uint32]float64{11: 1, 12: 5, 13: 0, 14: -3, 15: math.NaN(), 16: math.Inf(1)}
	for _, opts := range []Options{{Cutoff: DL1}, {}, {Host: func(uint32) uint32 { return 0 }}} {
		opts.Score = func(id uint32) float64 { return worth[id] }
		f := New(opts)
		f.Fetched(0, []uint32{11, 12, 13, 14, 15, 16})
		require.Equal(t, []uint32{16, 12, 11, 13, 14, 15}, upcoming(f, 9))
		require.InDelta(t, f.Score(11), f.Score(16), 1e-12, "scores are PageRank all the same")
		requireLaw(t, f)
	}
}

func TestWorthThatChanges(t *testing.T) {
	worth := map[uint32]float64{11: 1, 12: 1, 13: 1}
	f := New(Options{Cutoff: DL1, Score: func(id uint32) float64 { return worth[id] }})
	f.Fetched(0, []uint32{11, 12, 13})
	worth[12], worth[13] = 4, 3
	f.Discover(13)
	require.Equal(t, []uint32{13, 11, 12}, upcoming(f, 9), "13 alone was asked for again")
	f.Fetched(1, []uint32{12})
	require.Equal(t, []uint32{12, 13, 11}, upcoming(f, 9), "a gain asks, too")
	worth[12] = .1
	f.Discover(12)
	require.Equal(t, []uint32{13, 11, 12}, upcoming(f, 9))
	for _, want := range []uint32{13, 11, 12} {
		id, ok := f.Next()
		require.True(t, ok)
		require.Equal(t, want, id)
	}
	_, ok := f.Next()
	require.False(t, ok, "each comes once")
}

func TestWorthThatChangesWhileIdsAreAside(t *testing.T) {
	worth := map[uint32]float64{11: 2, 12: 1, 13: 3}
	f := New(Options{Cutoff: DL1, Host: tenPerHost, Score: func(id uint32) float64 { return worth[id] }})
	for id := range worth {
		f.Discover(id)
	}
	f.Fetched(0, []uint32{11, 12, 13})
	_, ok := f.NextReady(func(uint32) bool { return false })
	require.False(t, ok)
	worth[12], worth[13] = 1000, .1
	f.Discover(12)
	f.Discover(13)
	requireLaw(t, f)
	for _, want := range []uint32{12, 11, 13} {
		f.Release(1)
		id, ok := f.Next()
		require.True(t, ok)
		require.Equal(t, want, id)
	}
}

func TestAskingAgainForTheWorthTakesNoMemory(t *testing.T) {
	worth := 1.0
	f := New(Options{Score: func(uint32) float64 { return worth }})
	f.Fetched(2, []uint32{0, 1})
	for i := range 20_000 {
		worth = float64(1 + i%3)
		f.Discover(uint32(i % 2))
		require.LessOrEqual(t, f.queue.entries, 1100)
	}
	require.Equal(t, 2, pending(f))
	requireLaw(t, f)
}

func TestLinksInheritWorth(t *testing.T) {
	good := func(id uint32) float64 { return float64(id % 2) }
	f := New(Options{Cutoff: DL1, Inherit: true, Score: good})
	f.Fetched(1, []uint32{11, 13}) // good: 1/2 each
	f.Fetched(2, []uint32{21, 23}) // bad: nothing
	require.InDelta(t, .5, f.Score(11), 1e-12)
	require.Zero(t, f.Score(21))
	require.InDelta(t, 2, f.Stats().Total, 1e-12)
	f.Fetched(11, []uint32{15})
	require.InDelta(t, 1.5, f.Score(15), 1e-12, "the inherited worth is passed on")
	requireLaw(t, f)
}
