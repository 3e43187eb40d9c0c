package crawl

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stream returns the numbers of items of random messages of a partition, and their sequences, which
// have gaps.
func stream(r *rand.Rand, n int) (sizes []int, seqs []uint64) {
	seq := uint64(0)
	for range n {
		seq += 1 + r.Uint64N(3)
		sizes, seqs = append(sizes, r.IntN(150)), append(seqs, seq)
	}
	return sizes, seqs
}

// TestEachItemIsDoneOnce replaces the owner of a window at random times, and compares the items
// that are given out with those of the stream.
func TestEachItemIsDoneOnce(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			sizes, seqs := stream(r, 40)
			want := 0
			for _, n := range sizes {
				want += n
			}
			done := map[[2]uint64]int{}
			var w window
			require.NoError(t, w.restore(0, nil))
			read, out := 0, [][2]uint64{} // given out and not done
			for len(done) < want || read < len(sizes) {
				switch n := r.IntN(20); {
				case n == 0: // a new owner knows only what was stored
					require.NoError(t, w.restore(w.low, w.appendDone(nil)))
					read, _ = slices.BinarySearch(seqs, w.low+1)
					out = nil
				case n < 8 && read < len(sizes):
					places, err := w.add(seqs[read], sizes[read])
					require.NoError(t, err)
					for _, place := range places {
						out = append(out, [2]uint64{seqs[read], uint64(place)})
					}
					read++
				case len(out) > 0:
					for range min(len(out), 30) {
						i := r.IntN(len(out))
						w.finish(out[i][0], int(out[i][1]))
						done[out[i]]++
						out[i] = out[len(out)-1]
						out = out[:len(out)-1]
					}
					w.slide()
				}
				require.Equal(t, len(out), w.open)
			}
			w.slide()
			require.Equal(t, seqs[len(seqs)-1], w.low)
			for item, n := range done {
				require.Equal(t, 1, n, "%v", item)
			}
		})
	}
}

func TestMessagesComeInOrder(t *testing.T) {
	var w window
	require.NoError(t, w.restore(5, nil))
	places, err := w.add(9, 1)
	require.NoError(t, err)
	require.Equal(t, []int{0}, places)
	for _, seq := range []uint64{3, 5, 9} {
		_, err = w.add(seq, 1)
		require.ErrorIs(t, err, errOrder)
		w.finish(seq, 0)
		w.finish(seq, 0)
	}
	w.slide()
	require.EqualValues(t, 9, w.low)
	require.Zero(t, w.open)
}

// TestASlowHostDoesNotGrowTheState leaves one item undone before many messages that are done.
func TestASlowHostDoesNotGrowTheState(t *testing.T) {
	var w window
	require.NoError(t, w.restore(0, nil))
	const messages = 100_000
	for i := uint64(1); i <= messages; i++ {
		places, err := w.add(3*i, 2)
		require.NoError(t, err)
		for _, place := range places {
			if i > 1 || place > 0 {
				w.finish(3*i, place)
			}
		}
		w.slide()
	}
	require.Zero(t, w.low)
	require.Equal(t, 1, w.open)
	kept := w.appendDone(nil)
	require.Less(t, len(kept), 30)

	var next window
	require.NoError(t, next.restore(0, kept))
	for i := uint64(1); i <= messages; i++ {
		if !next.rereading() {
			t.Fatalf("message %d would not be read, and low could never move", i)
		}
		places, err := next.add(3*i, 2)
		require.NoError(t, err)
		if i == 1 {
			require.Equal(t, []int{0}, places)
		} else if len(places) > 0 {
			t.Fatalf("items of message %d are given out again", i)
		}
	}
	require.False(t, next.rereading())
	next.finish(3, 0)
	next.slide()
	require.EqualValues(t, 3*messages, next.low)
}

// TestAFullWindowIsReadOn stores as much as is allowed. Then no new messages are read, but those
// that a previous owner has begun must be, or low would never move.
func TestAFullWindowIsReadOn(t *testing.T) {
	var w window
	require.NoError(t, w.restore(0, nil))
	_, err := w.add(1, 2)
	require.NoError(t, err)
	w.finish(1, 0)

	f := &fetcher{Worker: &Worker{opts: WorkerOptions{Window: maxWindow}}, room: make(chan struct{}, 1)}
	require.NoError(t, f.window.restore(0, w.appendDone(nil)))
	f.doneSize.Store(maxDone)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.True(t, f.waitForRoom(ctx))
	_, err = f.window.add(1, 2)
	require.NoError(t, err)
	time.AfterFunc(10*time.Millisecond, cancel)
	require.False(t, f.waitForRoom(ctx), "all partly done messages were read")
}

func FuzzRestoreWindow(f *testing.F) {
	var w window
	_ = w.restore(3, nil)
	_, _ = w.add(4, 70)
	w.finish(4, 66)
	for seq := range uint64(3) {
		_, _ = w.add(5+2*seq, 0)
	}
	f.Add(uint64(3), w.appendDone(nil))
	f.Fuzz(func(t *testing.T, low uint64, done []byte) {
		var w window
		if w.restore(low, done) != nil {
			return
		}
		var again window
		require.NoError(t, again.restore(low, w.appendDone(nil)))
		require.Equal(t, w.before, again.before)
		require.Equal(t, w.runs, again.runs)
	})
}
