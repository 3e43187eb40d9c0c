package pagerank

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func bucketFor(key float64) uint16 { return bucketAt(levelOf(key)) }

func TestBucketsFollowTheKey(t *testing.T) {
	require.Zero(t, bucketFor(0))
	require.Zero(t, bucketFor(-1))
	require.Zero(t, bucketFor(math.Inf(-1)))
	require.Equal(t, uint16(buckets-1), bucketFor(math.MaxFloat32))
	require.Equal(t, bucketFor(1)+perOctave, bucketFor(2))
	require.Equal(t, bucketFor(1)+1, bucketFor(1.0625))
	before := uint16(0)
	for key := 1e-16; key < 1e16; key *= 1.01 {
		b := bucketFor(key)
		require.GreaterOrEqual(t, b, before)
		require.LessOrEqual(t, b, before+buckets/2)
		before = b
	}
}

// TestQueueIsThatOfASimpleOne compares with lists that are searched from end to end.
func TestQueueIsThatOfASimpleOne(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 14))
		const n = 1000
		done := map[uint32]bool{}
		var q queue
		nodes := make([]node, n)
		type entry struct {
			id     uint32
			bucket uint16
		}
		var model []entry
		for range 6000 {
			id, b := r.Uint32N(n), uint16(r.IntN(200)+700)
			at := slices.IndexFunc(model, func(e entry) bool { return e.id == id })
			switch {
			case r.IntN(12) == 0:
				got, ok := q.pop(nodes)
				require.Equal(t, len(model) > 0, ok)
				if !ok {
					continue
				}
				best := 0
				for i, e := range model {
					if e.bucket > model[best].bucket {
						best = i
					}
				}
				require.Equal(t, model[best].id, got, "seed %d", seed)
				model = slices.Delete(model, best, best+1)
				done[got] = true
			case done[id]:
			case at < 0:
				q.add(nodes, lowest+b, id)
				model = append(model, entry{id, b})
			case model[at].bucket < b: // scores rise, so no id comes back to a bucket
				q.move(&nodes[id], lowest+b, id)
				model = append(slices.Delete(model, at, at+1), entry{id, b})
			}
			if q.crowded(n) {
				q.sweep(nodes)
				require.Equal(t, q.live, q.entries)
			}
			require.Equal(t, len(model), q.live)
		}
	}
}

func TestAnIdThatCameBackIsPoppedOnce(t *testing.T) {
	for _, swept := range []bool{false, true} {
		var q queue
		nodes := make([]node, 3)
		q.add(nodes, lowest+5, 1)
		q.add(nodes, lowest+5, 2)
		for _, b := range []uint16{6, 5} {
			q.move(&nodes[1], lowest+b, 1)
		}
		require.Equal(t, 4, q.entries)
		if swept {
			q.sweep(nodes)
			require.Equal(t, 2, q.entries, "one each")
		}
		for _, want := range []uint32{1, 2} {
			id, ok := q.pop(nodes)
			require.True(t, ok)
			require.Equal(t, want, id)
		}
		_, ok := q.pop(nodes)
		require.False(t, ok)
		require.Zero(t, q.entries)
	}
}

// TestSweepKeepsValidEntriesInOrder sweeps lines of all lengths around those of chunks, of which
// all, none, or any of the entries are valid.
func TestSweepKeepsValidEntriesInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 23))
	for n := range uint32(4*chunkIDs + 2) {
		for _, part := range []int{0, 1, 2, 10} { // one of so many leaves; 0: none
			var q queue
			nodes := make([]node, n+1)
			popped := r.Uint32N(n + 1)
			var want []uint32
			for id := range n {
				q.add(nodes, lowest+900, id)
			}
			for range popped {
				q.pop(nodes)
			}
			for id := popped; id < n; id++ {
				if part > 0 && r.IntN(part) == 0 {
					nodes[id].state = 0 // fetched without having been handed out
					q.live--
				} else {
					want = append(want, id)
				}
			}
			q.sweep(nodes)
			require.Equal(t, len(want), q.entries)
			require.Equal(t, want, slices.Collect(q.entriesOf(900)))
			if r.IntN(2) == 0 { // otherwise the last chunk stays as the sweep has left it
				q.add(nodes, lowest+900, n)
				want = append(want, n)
			}
			for _, id := range want {
				got, ok := q.pop(nodes)
				require.True(t, ok)
				require.Equal(t, id, got)
			}
			_, ok := q.pop(nodes)
			require.False(t, ok)
			require.Zero(t, q.summary)
		}
	}
}

func TestQueueMemoryIsUsedAgain(t *testing.T) {
	var q queue
	nodes := make([]node, 10_000)
	for round := range 20 {
		for id := range uint32(10_000) {
			q.add(nodes, lowest+uint16(round*37), id)
		}
		for range 10_000 {
			_, ok := q.pop(nodes)
			require.True(t, ok)
		}
	}
	require.Zero(t, q.entries)
	require.LessOrEqual(t, float64(q.store.bytes())/10_000, 5.5)
}
