package satstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// TestDamagedIDs: damage in the id index, which a merge meets, does not end visits, or changes of
// other ids. It is reported, and Repair loses nothing.
func TestDamagedIDs(t *testing.T) {
	t.Parallel()
	o := small(Options{Buffer: 16 << 10})
	fs := vfs.NewMem()
	s := mustOpen(t, fs, o)
	for i := range 3000 {
		mustAdd(t, s, fmt.Sprint("old", i), 1002, "d")
	}
	require.NoError(t, s.checkpointNow())
	names, err := fs.List()
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasPrefix(name, "ids-") {
			fs.Flip(name, 50, 0)
		}
	}
	for i, added := 0, 0; s.Stats().Damage == nil || added < 1000; i++ {
		switch _, err := s.Add(fmt.Sprint("new", i), at(5000), nil); {
		case err == nil:
			added++
		default: // the look-up met the damage
			require.ErrorIs(t, err, ErrCorrupt)
			require.NotErrorIs(t, err, ErrReadOnly)
		}
		require.Less(t, i, 100_000)
	}
	require.ErrorIs(t, s.Stats().Damage, ErrCorrupt)
	visited, reported := 0, 0
	for r, err := range s.Due(t.Context(), at(1002)) {
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			reported++
			continue
		}
		if visited++; visited%2 == 0 {
			require.NoError(t, r.Delete())
		} else {
			require.NoError(t, r.Reschedule(at(2000), r.Data))
		}
	}
	require.Equal(t, 3000, visited)
	require.Equal(t, 1, reported)
	require.NoError(t, s.Sync())
	want := datasOf(t, s)
	require.NoError(t, s.Close())
	to := vfs.NewMem()
	done, err := repair(fs, to, o)
	require.NoError(t, err)
	require.NotEmpty(t, done.Findings)
	repaired := datasOf(t, mustOpen(t, to, o))
	for id, data := range want {
		require.Contains(t, repaired, id)
		require.Equal(t, data, repaired[id])
	}
}

// TestBatchBesideDamagedIDs: of a batch, only the items that cannot be looked up are not added.
func TestBatchBesideDamagedIDs(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{Buffer: 1 << 20})
	s := mustOpen(t, fs, o)
	var old, batch []Item
	for i := range 3000 {
		old = append(old, Item{fmt.Sprint("old", i), at(1002), nil})
		batch = append(batch, Item{fmt.Sprint("new", i), at(1002), nil})
	}
	_, err := s.AddBatch(old)
	require.NoError(t, err)
	require.NoError(t, s.checkpointNow())
	names, err := fs.List()
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasPrefix(name, "ids-") {
			fs.Flip(name, 50, 0)
		}
	}
	added, err := s.AddBatch(append(batch, old...))
	require.ErrorIs(t, err, ErrCorrupt)
	require.Greater(t, added, 2900)
	require.LessOrEqual(t, added, 3000)
	require.EqualValues(t, 3000+added, s.Stats().Records)
}
