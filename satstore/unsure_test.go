package satstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// unsureStore returns the disk of a killed store. Its saved bucket index says that 300 records are in
// the bucket of slot 1001, but 299 of them are in that of slot 2000, and Open has to read where. With
// deleted, the record that is still in the former was deleted then.
func unsureStore(t *testing.T, deleted bool) (*vfs.Mem, Options) {
	fs, o := vfs.NewMem(), small(Options{Buffer: 1 << 20})
	s := mustOpen(t, fs, o)
	var items []Item
	for i := range 2*pageNumbers + 1000 {
		item := Item{fmt.Sprint("far", i), at(6000), nil}
		if i < 300 {
			item = Item{fmt.Sprint("near", i), at(1001), []byte(strings.Repeat("x", 1000))}
		}
		items = append(items, item)
	}
	_, err := s.AddBatch(items)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, s.checkpointNow())
	}
	due(t, s, 1001, func(r *Record) {
		if r.ID != "near7" {
			require.NoError(t, r.Reschedule(at(2000), []byte(strings.Repeat("y", 1000))))
		}
	})
	if deleted {
		require.NoError(t, s.Delete("near8"))
	}
	require.NoError(t, s.Delete(fmt.Sprint("far", pageNumbers+1)))
	s.places.turn = 1 // so that this checkpoint saves the second page
	require.NoError(t, s.checkpointNow())
	require.True(t, s.places.pages[0].changed)
	mustAdd(t, s, "logged", 2000, "x")
	require.NoError(t, s.Sync())
	abandon(s)
	return fs.Clone(), o
}

// flipIn damages a block of each extent of a part.
func flipIn(fs *vfs.Mem, p *extent.Part) {
	for _, e := range p.Extents() {
		fs.Flip(extent.Name, e.Offset()+33, 0)
	}
}

// TestOpenBesideDamage: a damaged block that tells where records went does not prevent Open. The place
// that they had before does not count, so that a change of one of them harms no other record.
func TestOpenBesideDamage(t *testing.T) {
	t.Parallel()
	for _, messages := range []bool{false, true} {
		intact, o := unsureStore(t, messages)
		s := mustOpen(t, intact.Clone(), o)
		fs, later := intact.Clone(), s.bucketOf(100)
		if messages {
			flipIn(fs, &later.messages)
		} else {
			flipIn(fs, &later.records)
		}
		require.NoError(t, s.Close())

		for again := range 2 {
			killed := mustOpen(t, fs, o)
			_, damage := take(t, killed, 1000)
			require.Len(t, damage, 1-again, "all of the bucket index is saved now")
			if messages {
				require.Nil(t, killed.bucketOf(8), "it was deleted")
			} else {
				require.ErrorIs(t, killed.Delete("near100"), nil)
				require.NoError(t, killed.Update("near101", []byte("lost")))
				for i := range 300 {
					if i != 7 {
						_ = killed.Delete(fmt.Sprint("near", i))
					}
				}
			}
			require.NoError(t, killed.Sync())
			abandon(killed)
			fs = fs.Clone()
			if !messages {
				break
			}
		}
		s = mustOpen(t, fs, o)
		ids, _ := take(t, s, 1001)
		require.Equal(t, []string{"near7"}, ids)
		ids, _ = take(t, s, 2000)
		if messages {
			require.Len(t, ids, 299)
			require.NotContains(t, ids, "near8")
		}
		require.Contains(t, ids, "logged")
		ids, _ = take(t, s, 6000)
		require.Len(t, ids, 2*pageNumbers+1000-300-1)
		require.NoError(t, s.Close())
	}
}
