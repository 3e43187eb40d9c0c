package satstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestReplayMemory: what a replay keeps of old blocks is bounded in bytes, however large they are.
func TestReplayMemory(t *testing.T) {
	o := Options{Start: at(1000), Commit: -1, Buffer: 8 << 20, test: testOptions{work: workNow}}
	s := mustOpen(t, vfs.NewMem(), o)
	const records = 100
	for i := range records {
		mustAdd(t, s, fmt.Sprint(i), 1000, strings.Repeat("x", MaxData))
	}
	require.NoError(t, s.checkpointNow())
	r := s.newReplayer()
	for i := range uint64(records) {
		e, err := r.entry(s.due[0], i)
		require.NoError(t, err)
		require.Len(t, e.data, MaxData)
	}
	bytes := 0
	for _, blocks := range r.blocks {
		for _, b := range blocks {
			bytes += len(b.raw)
		}
	}
	require.Positive(t, bytes)
	require.LessOrEqual(t, bytes, maxOldBlocks)
	require.LessOrEqual(t, bytes, r.kept)
	require.NoError(t, s.Close())
}
