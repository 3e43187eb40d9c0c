package pagerank

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBucketsFollowTheKey(t *testing.T) {
	require.Zero(t, bucketOf(0))
	require.Zero(t, bucketOf(-1))
	require.Zero(t, bucketOf(float32(math.Inf(-1))))
	require.Equal(t, uint16(buckets-1), bucketOf(math.MaxFloat32))
	require.Equal(t, bucketOf(1)+perOctave, bucketOf(2))
	require.Equal(t, bucketOf(1)+1, bucketOf(1.0625))
	before := uint16(0)
	for key := float32(1e-16); key < 1e16; key *= 1.01 {
		b := bucketOf(key)
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
				q.add(nodes, b, id)
				model = append(model, entry{id, b})
			case model[at].bucket < b: // scores rise, so no id comes back to a bucket
				nodes[id].bucket = b
				q.push(b, id)
				model = append(slices.Delete(model, at, at+1), entry{id, b})
			}
			if q.crowded() {
				q.sweep(nodes)
				require.Equal(t, q.live, q.entries)
			}
			require.Equal(t, len(model), q.live)
		}
	}
}

func TestSweepKeepsOneEntryOfAnIdThatCameBack(t *testing.T) {
	var q queue
	nodes := make([]node, 3)
	q.add(nodes, 5, 1)
	q.add(nodes, 5, 2)
	for _, b := range []uint16{6, 5} {
		nodes[1].bucket = b
		q.push(b, 1)
	}
	require.Equal(t, 4, q.entries)
	q.sweep(nodes)
	require.Equal(t, 2, q.entries)
	for _, want := range []uint32{1, 2} {
		id, ok := q.pop(nodes)
		require.True(t, ok)
		require.Equal(t, want, id)
	}
}

func TestQueueMemoryIsUsedAgain(t *testing.T) {
	var q queue
	nodes := make([]node, 10_000)
	for round := range 20 {
		for id := range uint32(10_000) {
			q.add(nodes, uint16(round*37), id)
		}
		for range 10_000 {
			_, ok := q.pop(nodes)
			require.True(t, ok)
		}
	}
	require.Zero(t, q.entries)
	require.LessOrEqual(t, float64(q.store.bytes())/10_000, 5.5)
}
