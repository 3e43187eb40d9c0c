package engine

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
)

// A hoard is a state with one more chunk of a given size at each checkpoint. As a whole, it fits
// into a given number of chunks.
type hoard struct {
	adder
	size, whole int
	rewrites    int
}

func (h *hoard) Changes(all bool, _ int) [][]byte {
	chunk := bytes.Repeat([]byte{'x'}, h.size)
	if !all {
		return [][]byte{chunk}
	}
	h.rewrites++
	chunks := make([][]byte, h.whole)
	for i := range chunks {
		chunks[i] = chunk
	}
	return chunks
}

// newFold returns a partition with a state, without messages.
func newFold(t *testing.T, s State) *fold {
	t.Helper()
	bus, _, states := setup(t)()
	require.NoError(t, bus.CreateStreams(t.Context(), message.Dedupe, 1))
	c := claim(1)
	keeper, err := Keep(t.Context(), states, c)
	require.NoError(t, err)
	post := newPost(t, bus)
	return &fold{
		FoldOptions: FoldOptions{Bus: bus, States: states, Every: time.Hour, Post: post}, claim: c,
		keeper: keeper, state: s, out: newOutbox(post, c),
	}
}

// TestAStateIsRewrittenInProportion requires that the stored chunks do not grow forever, whatever
// their size, and that a large state is not rewritten for a few small changes.
func TestAStateIsRewrittenInProportion(t *testing.T) {
	for name, tt := range map[string]struct{ size, whole, checkpoints, rewrites int }{
		"small changes of a small state": {1, 1, 3 * (minChanges + 1), 3},
		"small changes of a large state": {1, 2 * minChanges, 5 * minChanges, 2},
		"large changes":                  {maxChunk / 2, 1, minChanges + 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hoard{size: tt.size, whole: tt.whole, adder: adder{counts: map[string]int64{}}}
			f := newFold(t, h)
			for range tt.checkpoints {
				require.NoError(t, f.checkpoint(t.Context()))
				require.LessOrEqual(t, len(f.keeper.Root.Chunks), minChanges+2*tt.whole)
			}
			require.Equal(t, tt.rewrites, h.rewrites)
			kept := 0
			require.NoError(t, f.keeper.Load(t.Context(), func([]byte) error { kept++; return nil }))
			require.Len(t, f.keeper.Root.Chunks, kept, "the chunks named by the root exist")
		})
	}
}

// TestAForgedMessageHidesNothing sends a parcel with a number that its source has not reached, as
// somebody with a worker's credentials could: the genuine ones must be taken all the same.
func TestAForgedMessageHidesNothing(t *testing.T) {
	s := &adder{counts: map[string]int64{}}
	f := newFold(t, s)
	from := message.Source{Module: message.Fetch, Part: 0}
	take := func(first uint64, head bool) {
		m := message.Message{Parcels: []message.Parcel{{
			From: from, First: first, Head: head, Items: []message.Item{{Kind: message.Page, URL: "x", Depth: 1}},
		}}}
		require.NoError(t, f.take(t.Context(), jet.Delivery{Seq: f.seq + 1, Data: m.Append(nil)}))
	}
	take(1, true)
	take(1<<62, true)
	require.EqualValues(t, 1, s.sum)
	take(2, true)
	require.EqualValues(t, 2, s.sum)
	require.EqualValues(t, 1, s.counts[CountForged])
	// The broker has lost what the source has committed: the source's root tells the difference.
	c := claim(1)
	c.Module = message.Fetch
	source, err := Keep(t.Context(), f.States, c)
	require.NoError(t, err)
	source.Root.Sent = []Sent{{Dest: Dest{message.Dedupe, 0}, Number: 5}}
	require.NoError(t, source.Store(t.Context()))
	take(5, true)
	require.EqualValues(t, 3, s.sum)
	require.EqualValues(t, 2, f.marks.Lost())
}

// TestALargeOutboxIsKeptInChunks commits more than fits into a root. The next owner sends it.
func TestALargeOutboxIsKeptInChunks(t *testing.T) {
	f := newFold(t, &adder{counts: map[string]int64{}})
	big := message.Item{Kind: message.Answer, URL: "x", Body: strings.Repeat("y", maxChunk)}
	for range 3 {
		f.out.Put(message.Dedupe, 0, big)
	}
	require.True(t, f.out.Full())
	require.NoError(t, f.keeper.Commit(t.Context(), f.out))
	require.Len(t, f.keeper.Root.Sent[0].Chunks, 4)
	require.NoError(t, f.keeper.Commit(t.Context(), f.out))
	next, err := Keep(t.Context(), f.States, claim(2))
	require.NoError(t, err)
	require.Equal(t, 3, next.Root.Waiting())
	out, err := next.OpenOutbox(t.Context(), newPost(t, f.Bus))
	require.NoError(t, err)
	for !out.Empty() {
		<-out.Moved()
	}
	require.NoError(t, next.Commit(t.Context(), out))
	require.Zero(t, next.Root.Waiting())
	require.EqualValues(t, 3, next.Root.SentTo(Dest{message.Dedupe, 0}))
}
