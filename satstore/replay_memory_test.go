package satstore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// TestReplayMemory: what a replay reads ahead is bounded in bytes, however large records are.
func TestReplayMemory(t *testing.T) {
	o := Options{Start: at(1000), Commit: -1, Buffer: 8 << 20, test: testOptions{work: workNow}}
	s := mustOpen(t, vfs.NewMem(), o)
	const records = 100
	for i := range records {
		mustAdd(t, s, fmt.Sprint(i), 1000, strings.Repeat("x", MaxData))
	}
	require.NoError(t, s.checkpointNow())
	var changes []wal.Change
	for i := range uint64(records) {
		changes = append(changes, wal.Change{Kind: wal.Drop, Bucket: s.due[0].id, Record: records - 1 - i})
	}
	r := s.newReplayer()
	r.readAhead(changes)
	bytes := 0
	for i := range changes {
		bytes += len(changes[i].Old)
		e, err := r.entry(s.due[0], &changes[i])
		require.NoError(t, err)
		require.Len(t, e.data, MaxData)
		require.Equal(t, fmt.Sprint(changes[i].Record), string(e.id))
	}
	require.Greater(t, bytes, maxAhead/2)
	require.LessOrEqual(t, bytes, maxAhead+MaxData+100)
	require.NoError(t, s.Close())
}

// TestReplayInAnyOrder: in whatever order records were returned, Open reads their bucket a few times at
// most.
func TestReplayInAnyOrder(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{Buffer: 4 << 20})
	s := mustOpen(t, fs, o)
	const records = 3000
	for i := range records {
		mustAdd(t, s, fmt.Sprint(i), 1001, strings.Repeat("x", 2000))
	}
	require.NoError(t, s.checkpointNow())
	size := s.bucketOf(0).records.Bytes()
	var out []*Record
	due(t, s, 1001, func(r *Record) { out = append(out, r) })
	for n, i := range rand.New(rand.NewPCG(1, 2)).Perm(records) {
		data := append([]byte(fmt.Sprint(n)), out[i].Data[4:]...)
		require.NoError(t, out[i].Reschedule(at(2000), data))
	}
	want := contents(t, s)
	require.NoError(t, s.Sync())
	abandon(s)
	s = mustOpen(t, fs.Clone(), o)
	require.Less(t, s.Stats().BytesRead, 3*size)
	require.EqualValues(t, records, s.Stats().Replayed-1)
	require.Equal(t, want, contents(t, s))
}
