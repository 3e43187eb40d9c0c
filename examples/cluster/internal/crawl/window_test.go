package crawl

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
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
					low, open := w.appendOpen(nil)
					require.NoError(t, w.restore(low, open))
					read, _ = slices.BinarySearch(seqs, low+1)
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
				}
				require.Equal(t, len(out), w.open)
			}
			low, _ := w.appendOpen(nil)
			require.Equal(t, seqs[len(seqs)-1], low)
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
	low, _ := w.appendOpen(nil)
	require.EqualValues(t, 9, low)
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
		if i%100 == 0 {
			_, _ = w.appendOpen(nil)
			require.LessOrEqual(t, len(w.slots), 1)
		}
	}
	require.Equal(t, 1, w.open)
	low, kept := w.appendOpen(nil)
	require.EqualValues(t, 2, low)
	require.Less(t, len(kept), 10)

	var next window
	require.NoError(t, next.restore(low, kept))
	for i := uint64(1); i <= messages; i++ {
		places, err := next.add(3*i, 2)
		require.NoError(t, err)
		if i == 1 {
			require.Equal(t, []int{0}, places)
		} else if len(places) > 0 {
			t.Fatalf("items of message %d are given out again", i)
		}
	}
	next.finish(3, 0)
	low, _ = next.appendOpen(nil)
	require.EqualValues(t, 3*messages, low)
}

// TestAFullWindowFitsIntoARecord stores a full window of the form that takes most: one open item in each
// of many messages, far apart.
func TestAFullWindowFitsIntoARecord(t *testing.T) {
	var w window
	require.NoError(t, w.restore(0, nil))
	for i := uint64(1); i <= maxWindow; i++ {
		places, err := w.add(10_000*i, 200)
		require.NoError(t, err)
		for _, place := range places[:199] {
			w.finish(10_000*i, place)
		}
	}
	require.Equal(t, maxWindow, w.open)
	low, open := w.appendOpen(nil)
	f := &fetcher{window: w, learned: make([]scheduler.Entry, maxRecent)}
	for i := range f.learned {
		f.learned[i] = scheduler.Entry{Host: strings.Repeat("x", 250), RetryAfter: time.Now(), Failures: 1}
	}
	_, more := f.Progress()
	data, err := json.Marshal(more)
	require.NoError(t, err)
	require.Less(t, len(data), 960<<10)
	var next window
	require.NoError(t, next.restore(low, open))
	require.Len(t, next.before, maxWindow)
}

func FuzzRestoreWindow(f *testing.F) {
	var w window
	_ = w.restore(3, nil)
	_, _ = w.add(4, 70)
	w.finish(4, 66)
	for seq := range uint64(3) {
		_, _ = w.add(5+2*seq, int(seq))
	}
	low, open := w.appendOpen(nil)
	f.Add(low, open)
	f.Fuzz(func(t *testing.T, low uint64, open []byte) {
		var w window
		if w.restore(low, open) != nil {
			return
		}
		var again window
		require.NoError(t, again.restore(w.appendOpen(nil)))
		require.Equal(t, w.before, again.before)
		require.Equal(t, w.high, again.high)
	})
}
