package satstore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
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
	r.begin(changes)
	r.readAhead()
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

// TestReplayLooksAhead: a replay looks at each change of the log a few times at most, although it looks
// again whenever a bucket has become due, here for each visit. All memory for old entries comes back.
func TestReplayLooksAhead(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{Buffer: 8 << 20})
	s := mustOpen(t, fs, o)
	for i := range int64(3) {
		mustAdd(t, s, fmt.Sprint(i), 1001+i, "data")
	}
	const slots = 3000
	for slot := range int64(slots) {
		due(t, s, 1001+slot, func(r *Record) {
			require.NoError(t, r.Reschedule(r.At().Add(3*time.Hour), r.Data))
		})
	}
	want := contents(t, s)
	abandon(s)
	s, err := lockStore(fs.Clone(), o)
	require.NoError(t, err)
	m, _, err := manifest.Load(s.fs)
	require.NoError(t, err)
	s.o, err = s.o.adopt(m)
	require.NoError(t, err)
	require.NoError(t, s.adoptManifest(m))
	s.file, err = extent.OpenFile(s.fs, m.Spans(), 1)
	require.NoError(t, err)
	r, looks, visits := s.newReplayer(), 0, 0
	require.NoError(t, r.run(s.fs, m.Log, func(h *wal.Change) error {
		at := r.since
		err := r.repeat(h)
		if r.since < at {
			looks += r.ahead - r.at + 1
			require.LessOrEqual(t, r.ahead-r.at, max(minAhead, 2*at))
		}
		if h.Kind == wal.Move {
			visits++
		}
		return err
	}))
	require.Equal(t, slots, visits)
	require.Less(t, looks, 2*minAhead*slots)
	require.Equal(t, maxAhead, r.room)
	require.Equal(t, want, contents(t, s))
	require.NoError(t, s.closeFiles())
}

// TestReplayInAnyOrder: in whatever order records were returned, Open reads their bucket a few times at
// most, even if a split in the log makes it, or if it is larger than what a replay reads ahead.
func TestReplayInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		slot    int64
		records int
		size    int
		buffer  int64
		times   int64
	}{
		{1001, 3000, 2000, 4 << 20, 3},
		{1100, 1500, 2000, 4 << 20, 6},
		{1001, 1100, 120_000, 64 << 20, 5},
	} {
		fs, o := vfs.NewMem(), small(Options{Buffer: tt.buffer})
		s := mustOpen(t, fs, o)
		for i := range tt.records {
			mustAdd(t, s, fmt.Sprint(i), tt.slot, strings.Repeat("x", tt.size))
		}
		require.NoError(t, s.checkpointNow())
		size := s.bucketOf(0).records.Bytes()
		var out []*Record
		due(t, s, tt.slot, func(r *Record) { out = append(out, r) })
		for n, i := range rand.New(rand.NewPCG(1, 2)).Perm(tt.records) {
			data := append([]byte(fmt.Sprint(n)), out[i].Data[4:]...)
			require.NoError(t, out[i].Reschedule(at(tt.slot+900), data))
		}
		want := contents(t, s)
		require.NoError(t, s.Sync())
		abandon(s)
		s = mustOpen(t, fs.Clone(), o)
		require.Less(t, s.Stats().BytesRead, tt.times*size, "slot %d", tt.slot)
		require.GreaterOrEqual(t, s.Stats().Replayed, int64(tt.records+1))
		require.Equal(t, want, contents(t, s))
		abandon(s)
	}
}
