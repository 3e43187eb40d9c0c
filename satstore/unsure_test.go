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
				require.Equal(t, uint16(strayNumber), killed.places.get(20))
				require.ErrorIs(t, killed.Update("near20", []byte("lost")), ErrCorrupt)
				_, err := killed.Get("near20")
				require.ErrorIs(t, err, ErrCorrupt)
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

// unsureDamage returns the disk of unsureStore, and damages the records that moved there before the last
// checkpoint, so that Open does not find them. It returns how to undo that.
func unsureDamage(t *testing.T) (fs *vfs.Mem, o Options, undo func()) {
	fs, o = unsureStore(t, false)
	s := mustOpen(t, fs.Clone(), o)
	e := s.bucketOf(100).records.Extents()[0]
	require.NoError(t, s.Close())
	flip := func() { fs.Flip(extent.Name, e.Offset()+33, 0) }
	flip()
	return fs, o, flip
}

// TestUnsureRecordsAreThere: records that Open cannot find, as a block is unreadable at that moment, are
// handed out, split and repaired like others if it is readable later, unless they were deleted.
func TestUnsureRecordsAreThere(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		fs, o, undo := unsureDamage(t)
		s := mustOpen(t, fs, o)
		require.Equal(t, uint16(strayNumber), s.places.get(20))
		undo()
		require.NoError(t, s.Check())
		require.NoError(t, s.Delete("near20"))
		require.NoError(t, s.Check())
		if again {
			require.NoError(t, s.Close())
			s = mustOpen(t, fs, o)
		}
		_, _ = take(t, s, 1001) // reports what Open met
		ids, damage := take(t, s, 2000)
		require.Empty(t, damage)
		require.Len(t, ids, 299) // and one that was logged
		require.NotContains(t, ids, "near20")
		require.Zero(t, s.lost)
		require.NoError(t, s.Close())
		repaired := vfs.NewMem()
		done, err := repair(fs, repaired, o)
		require.NoError(t, err)
		require.Zero(t, done.Lost)
		require.EqualValues(t, 2*pageNumbers+1000-1, done.Records) // two deleted, one logged
		s = mustOpen(t, fs, o)
		require.NoError(t, s.Check())
		ids, _ = take(t, s, 2000)
		require.Len(t, ids, 300) // also near7, which was not returned
		require.NoError(t, s.Close())
	}
}

// TestUnsureMessage: a message is not accepted for a record whose place is unknown, since nobody would find
// it. Once the record has moved, its place is known.
func TestUnsureMessage(t *testing.T) {
	t.Parallel()
	fs, o, undo := unsureDamage(t)
	s := mustOpen(t, fs, o)
	undo()
	data := datasOf(t, s)["near20"]
	_, err := s.Get("near20")
	require.ErrorIs(t, err, ErrUnknown)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorIs(t, s.Update("near20", []byte("refused")), ErrCorrupt)
	_, _ = take(t, s, 1001)
	for r, err := range s.Due(t.Context(), at(2000)) {
		require.NoError(t, err)
		if r.ID == "near20" {
			require.Equal(t, data, string(r.Data))
			require.NoError(t, s.Update("near20", []byte("early"))) // since a split has moved it
			require.NoError(t, r.Reschedule(at(2005), []byte("v")))
			require.NoError(t, s.Update("near20", []byte("kept")))
		}
	}
	for r, err := range s.Due(t.Context(), at(2005)) {
		require.NoError(t, err)
		require.Equal(t, "near20", r.ID)
		require.Equal(t, "v+early+kept", string(r.Data))
	}
	require.NoError(t, s.Close())
}

// TestUnsureRecordsAreLost: damage that stays is counted once a split has met it, until the ids of the
// records are deleted.
func TestUnsureRecordsAreLost(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 5} { // deleted before the split
		fs, o, _ := unsureDamage(t)
		s := mustOpen(t, fs, o)
		for i := range before {
			require.NoError(t, s.Delete(fmt.Sprint("near", i)))
		}
		_, damage := take(t, s, 1999)
		require.NotEmpty(t, damage)
		require.Greater(t, s.lost.Records, uint64(50))
		require.Less(t, s.lost.Records, uint64(90))
		for i := before; i < 300; i++ {
			require.NoError(t, s.Delete(fmt.Sprint("near", i)))
		}
		require.Zero(t, s.lost.Records)
		require.NoError(t, s.Check())
		require.NoError(t, s.Close())
		s = mustOpen(t, fs, o)
		_, damage = take(t, s, 1999)
		require.Empty(t, damage)
		require.NoError(t, s.Check())
		require.NoError(t, s.Close())
	}
}
