package engine

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
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
	c := claim(1)
	keeper, err := Keep(t.Context(), bus, states, c)
	require.NoError(t, err)
	return &fold{
		FoldOptions: FoldOptions{Bus: bus, States: states, Post: newPost(t, bus)}, claim: c,
		keeper: keeper, state: s,
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
				require.NoError(t, f.committed(t.Context(), <-f.pending))
				require.LessOrEqual(t, len(f.keeper.Root.Chunks), minChanges+2*tt.whole)
			}
			require.Equal(t, tt.rewrites, h.rewrites)
			kept := 0
			require.NoError(t, f.keeper.Load(t.Context(), func([]byte) error { kept++; return nil }))
			require.Len(t, f.keeper.Root.Chunks, kept, "the chunks named by the root exist")
		})
	}
}
