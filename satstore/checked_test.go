package satstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// TestCheckFindsWhatOpenRefuses: Check reads everything that the next Open needs, also after a kill.
func TestCheckFindsWhatOpenRefuses(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), logged()
	o.test.work, o.test.pending = workNow, 32<<10
	s := mustOpen(t, fs, o)
	for i := range int64(5) {
		mustAdd(t, s, fmt.Sprint(i), i, "data")
	}
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, o)
	for i := range 2 {
		mustAdd(t, s, fmt.Sprint("new", i), 1, "data")
		require.NoError(t, s.Sync())
	}
	require.NoError(t, s.Check())
	names, err := fs.List()
	require.NoError(t, err)
	refused := map[string]int{}
	for _, name := range names {
		b, err := durable.ReadFile(fs, name)
		require.NoError(t, err)
		if name == lockName || name == wal.PendingName || name == manifest.Name { // which is there twice
			continue
		}
		if name == extent.Name {
			b = b[:len(extent.FileHeader)]
		}
		for at := range b {
			fs.Flip(name, int64(at), 2)
			found := s.Check()
			copied, err := open(fs.Clone(), o)
			if err == nil {
				abandon(copied)
			} else {
				refused[name[:3]]++
				require.Error(t, found, "%s, byte %d: %v", name, at, err)
			}
			fs.Flip(name, int64(at), 2)
		}
	}
	require.Len(t, refused, 3, "the data file, ids and a log")
	require.NoError(t, s.Check())
	require.NoError(t, s.Close())
}

// TestDataFileIsBounded: a visit logs what it has changed, but may leave much more garbage.
func TestDataFileIsBounded(t *testing.T) {
	t.Parallel()
	o := Options{Start: at(1000), Commit: -1, Buffer: 1 << 20, test: testOptions{work: workNow}}
	s := mustOpen(t, vfs.NewMem(), o)
	const records, size = 200, 32 << 10
	for i := range int64(records) {
		mustAdd(t, s, fmt.Sprint(i), 1001+i%3, strings.Repeat("x", size))
	}
	for slot := int64(1001); slot < 1100; slot++ {
		due(t, s, slot, func(r *Record) {
			r.Data[slot%7]++
			require.NoError(t, r.Reschedule(r.At().Add(3*time.Hour), r.Data))
		})
		require.LessOrEqual(t, s.Stats().DiskSize, int64(3*records*size), "slot %d", slot)
	}
	require.Less(t, s.Stats().Checkpoints, int64(60))
	require.NoError(t, s.Close())
}

// TestRepairMemory: Repair repeats the changes of the log in bounded memory, on disk that it gives back,
// and changes nothing in the old store.
func TestRepairMemory(t *testing.T) {
	t.Parallel()
	o := Options{Start: at(1000), Commit: -1, Buffer: 1 << 20, test: testOptions{work: workNow}}
	fs := vfs.NewMem()
	s := mustOpen(t, fs, o)
	const records = 10_000
	for i := range int64(records) {
		mustAdd(t, s, fmt.Sprint(i), 1500+i%10, strings.Repeat("x", 300))
		mustAdd(t, s, fmt.Sprint("far", i), 90_000, strings.Repeat("x", 300))
	}
	require.NoError(t, s.checkpointNow())
	before := s.Stats()
	require.Empty(t, due(t, s, 1498, nil))
	require.GreaterOrEqual(t, s.Stats().Split-before.Split, int64(records))
	due(t, s, 1502, func(r *Record) { require.NoError(t, r.Reschedule(at(1700), r.Data)) })
	require.Equal(t, before.Checkpoints, s.Stats().Checkpoints)
	want := contents(t, s)
	require.NoError(t, s.Sync())
	abandon(s)
	fs = fs.Clone()
	was := filesOf(t, fs)

	to := vfs.NewMem()
	spill, err := to.Create(spillName)
	require.NoError(t, err)
	v := &salvage{}
	require.NoError(t, v.open(fs, spill, o))
	require.Equal(t, o.Buffer, v.old.pool.Limit())
	size, err := spill.Size()
	require.NoError(t, err)
	require.Greater(t, size, o.Buffer)
	require.NoError(t, v.old.closeFiles())
	durable.Discard(to, spillName, spill)

	done, err := repair(fs, to, o)
	require.NoError(t, err)
	require.Empty(t, done.Findings)
	require.Zero(t, done.Lost)
	names, err := to.List()
	require.NoError(t, err)
	require.NotContains(t, names, spillName)
	require.Equal(t, was, filesOf(t, fs))
	s = mustOpen(t, to, o)
	require.Equal(t, want, contents(t, s))
	require.NoError(t, s.Close())
}

func filesOf(t *testing.T, fs vfs.FS) map[string]string {
	files := map[string]string{}
	names, err := fs.List()
	require.NoError(t, err)
	for _, name := range names {
		b, err := durable.ReadFile(fs, name)
		require.NoError(t, err)
		files[name] = string(b)
	}
	return files
}
