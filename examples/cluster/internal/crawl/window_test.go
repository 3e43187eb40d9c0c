package crawl

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// stream returns random messages of a partition of fetch, some of them repeated.
func stream(r *rand.Rand, n int) (all []message.Message) {
	next := map[uint32]uint64{}
	for len(all) < n {
		var m message.Message
		for range 1 + r.IntN(3) {
			from := message.Source{Module: message.Hosts, Part: r.Uint32N(2)}
			p := message.Parcel{From: from, First: next[from.Part] + 1, Items: make([]message.Item, r.IntN(70))}
			if r.IntN(5) == 0 {
				p.First -= r.Uint64N(p.First) // some of them again
			}
			next[from.Part] = max(next[from.Part], p.First+uint64(len(p.Items))-1)
			m.Parcels = append(m.Parcels, p)
		}
		all = append(all, m)
	}
	return all
}

// numbered returns a message with n items of one source.
func numbered(first uint64, n int) message.Message {
	return message.Message{Parcels: []message.Parcel{{
		From: message.Source{Module: message.Hosts}, First: first, Items: make([]message.Item, n),
	}}}
}

// TestEachItemIsDoneOnce replaces the owner of a window at random times, and compares the items
// that are given out with those of the stream.
func TestEachItemIsDoneOnce(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			messages := stream(r, 40)
			want := 0
			var all message.Marks
			for i := range messages {
				for _, p := range messages[i].Parcels {
					want += len(p.Items) - all.Take(p, len(p.Items))
				}
			}
			done := map[[2]uint64]int{}
			var w window
			require.NoError(t, w.restore(0, message.Marks{}, nil))
			read, out := uint64(0), [][2]uint64{} // given out and not done
			for len(done) < want || read < uint64(len(messages)) {
				switch n := r.IntN(20); {
				case n == 0: // a new owner knows only what was stored
					marks, err := message.DecodeMarks(string(w.marks.Append(nil)))
					require.NoError(t, err)
					kept := w.appendDone(nil)
					require.NoError(t, w.restore(w.low, marks, kept))
					read, out = w.low, nil
				case n < 8 && read < uint64(len(messages)):
					read++
					places, err := w.add(read, &messages[read-1])
					require.NoError(t, err)
					for _, place := range places {
						out = append(out, [2]uint64{read, uint64(place)})
					}
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
			require.EqualValues(t, len(messages), w.low)
			for item, n := range done {
				require.Equal(t, 1, n, "%v", item)
			}
		})
	}
}

func TestAGapCountsAsDone(t *testing.T) {
	var w window
	require.NoError(t, w.restore(5, message.Marks{}, nil))
	m := numbered(1, 1)
	places, err := w.add(9, &m)
	require.NoError(t, err)
	require.Equal(t, []int{0}, places)
	_, err = w.add(9, &m)
	require.ErrorIs(t, err, errOrder)
	w.finish(9, 0)
	w.finish(9, 0)
	w.finish(4, 0)
	require.True(t, w.slide())
	require.EqualValues(t, 9, w.low)
	require.Zero(t, w.open)
}

// TestALeadingGapCostsNothing has lost its state but not its stream, which starts millions of
// messages after the window.
func TestALeadingGapCostsNothing(t *testing.T) {
	const first = 1 << 16
	m := numbered(1, 2)
	var before, w window
	require.NoError(t, before.restore(4, message.Marks{}, nil))
	_, err := before.add(5, &m)
	require.NoError(t, err)
	before.finish(5, 1)
	require.NoError(t, w.restore(4, message.Marks{}, before.appendDone(nil)))
	places, err := w.add(first, &m)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, places)
	require.Equal(t, 1, len(w.slots)) // not Len, which would print them all
	require.False(t, w.rereading(), "partly done messages in the gap are gone")
}

// TestASlowHostDoesNotGrowTheState leaves one item undone before many messages that are done.
func TestASlowHostDoesNotGrowTheState(t *testing.T) {
	var w window
	require.NoError(t, w.restore(0, message.Marks{}, nil))
	m := numbered(1, 2)
	const messages = 100_000
	for seq := uint64(1); seq <= messages; seq++ {
		m = numbered(2*seq-1, 2)
		places, err := w.add(seq, &m)
		require.NoError(t, err)
		for _, place := range places {
			if seq > 1 || place > 0 {
				w.finish(seq, place)
			}
		}
		w.slide()
	}
	require.Zero(t, w.low)
	require.Equal(t, 1, w.open)
	kept := w.appendDone(nil)
	require.Less(t, len(kept), 30)

	var next window
	require.NoError(t, next.restore(0, w.marks.Clone(), kept))
	for seq := uint64(1); seq <= messages; seq++ {
		if !next.rereading() {
			t.Fatalf("message %d would not be read, and low could never move", seq)
		}
		m = numbered(2*seq-1, 2)
		places, err := next.add(seq, &m)
		require.NoError(t, err)
		if seq == 1 {
			require.Equal(t, []int{0}, places)
		} else if len(places) > 0 {
			t.Fatalf("items of message %d are given out again", seq)
		}
	}
	require.False(t, next.rereading())
	next.finish(1, 0)
	require.True(t, next.slide())
	require.EqualValues(t, messages, next.low)
}

// TestAFullWindowIsReadOn stores as much as is allowed. Then no new messages are read, but those
// that a previous owner has begun must be, or low would never move.
func TestAFullWindowIsReadOn(t *testing.T) {
	var w window
	require.NoError(t, w.restore(0, message.Marks{}, nil))
	m := numbered(1, 2)
	_, err := w.add(1, &m)
	require.NoError(t, err)
	w.finish(1, 0)

	f := &fetcher{Worker: &Worker{opts: WorkerOptions{Window: maxWindow}}, room: make(chan struct{}, 1)}
	require.NoError(t, f.window.restore(0, message.Marks{}, w.appendDone(nil)))
	f.doneSize.Store(maxDone)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.True(t, f.waitForRoom(ctx))
	_, err = f.window.add(1, &m)
	require.NoError(t, err)
	time.AfterFunc(10*time.Millisecond, cancel)
	require.False(t, f.waitForRoom(ctx), "all partly done messages were read")
}

func FuzzRestoreWindow(f *testing.F) {
	var w window
	_ = w.restore(3, message.Marks{}, nil)
	m := numbered(1, 70)
	_, _ = w.add(4, &m)
	w.finish(4, 66)
	for range 3 {
		_, _ = w.add(5+uint64(len(w.slots)-1), &message.Message{})
	}
	f.Add(uint64(3), w.appendDone(nil))
	f.Fuzz(func(t *testing.T, low uint64, done []byte) {
		var w window
		if w.restore(low, message.Marks{}, done) != nil {
			return
		}
		var again window
		require.NoError(t, again.restore(low, message.Marks{}, w.appendDone(nil)))
		require.Equal(t, w.before, again.before)
		require.Equal(t, w.runs, again.runs)
	})
}
