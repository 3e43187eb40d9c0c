package satstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// A message for a record that was out arrives once after Repair.
func TestRepairRepeatsNoMessage(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, small(Options{Buffer: 1 << 20}))
	for i := range 300 {
		mustAdd(t, s, fmt.Sprintf("split%03d", i), 1060+int64(i%3), strings.Repeat("x", 1000))
	}
	require.NoError(t, s.checkpointNow())
	extents := s.numbers[s.places.get(0)].records.Extents()
	require.NoError(t, s.pass(1059))
	for r, err := range s.Due(t.Context(), at(1062)) {
		require.NoError(t, err)
		require.NoError(t, s.Update(r.ID, []byte("m")))
		require.NoError(t, r.Reschedule(at(7000), []byte("v")))
	}
	require.NoError(t, s.Sync())
	abandon(s)
	fs = fs.Clone()
	fs.Flip(extent.Name, extents[0].Offset()+int64(extents[0].Size)/2, 0)
	to := vfs.NewMem()
	_, err := repair(fs, to, s.o)
	require.NoError(t, err)
	n := map[int]int{}
	for _, text := range contents(t, mustOpen(t, to, s.o)) {
		n[strings.Count(text, "+m")]++
	}
	require.Zero(t, n[2])
}

// A store that has set records aside deletes one of them; nothing else is damaged.
func TestRepairAfterTheDeletionOfARecordAside(t *testing.T) {
	for _, touch := range []bool{false, true} {
		fs, o := damagedSplit(t, false)
		s := mustOpen(t, fs, o)
		for slot := int64(1001); s.stats.Split == 0; slot++ {
			require.NoError(t, s.pass(slot))
		}
		for range 3 {
			require.NoError(t, s.Close())
			s = mustOpen(t, fs, o)
		}
		ids := contentsOf(s)
		for i := range 200 {
			mustAdd(t, s, fmt.Sprint("well", i), 1100, "old")
		}
		require.NoError(t, s.checkpointNow())
		if touch {
			for i := range 300 {
				id := fmt.Sprint("https://a.test/", i)
				if _, ok := ids[id]; !ok {
					require.NoError(t, s.Delete(id))
					break
				}
			}
		}
		for _, err := range s.Due(t.Context(), at(1061)) {
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
		visited := 0
		for r, err := range s.Due(t.Context(), at(1100)) {
			require.NoError(t, err)
			visited++
			require.NoError(t, r.Reschedule(at(7000), []byte("new")))
		}
		require.Equal(t, 200, visited)
		require.NoError(t, s.Sync())
		abandon(s)
		to := vfs.NewMem()
		_, err := repair(fs.Clone(), to, s.o)
		require.NoError(t, err)
		n := map[string]int{}
		for id, text := range contents(t, mustOpen(t, to, s.o)) {
			if strings.HasPrefix(id, "well") {
				n[text]++
			}
		}
		require.Equal(t, map[string]int{"7000 new": 200}, n, "a deletion: %t", touch)
	}
}

// Buckets that were emptied while another one was spread do not stay.
func TestEmptiedDueBucketsGo(t *testing.T) {
	fs, o := vfs.NewMem(), small(Options{Buffer: 64 << 10})
	s := mustOpen(t, fs, o)
	mustAdd(t, s, "later", 1010, "x")
	for i := range 20000 {
		id := fmt.Sprint("a", i%300)
		mustAdd(t, s, id, 1000, "x")
		s.o.test.work = nil
		require.NoError(t, s.Delete(id))
		s.mu.Lock()
		split := s.split != nil
		s.mu.Unlock()
		if split { // an Add comes before the splitter is done
			mustAdd(t, s, "between", 1000, "x")
			require.NoError(t, s.Delete("between"))
		}
		s.o.test.work = workNow
	}
	require.Less(t, len(s.due), 5)
}

// The deletion of one record is in a damaged block of messages.
func TestRepairBesideADamagedDeletion(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, small(Options{Buffer: 1 << 20}))
	for i := range 100 {
		mustAdd(t, s, fmt.Sprintf("r%03d", i), 1012, fmt.Sprintf("data of %03d", i))
	}
	require.NoError(t, s.Delete("r000"))
	require.NoError(t, s.checkpointNow())
	coarse := s.numbers[s.places.get(1)]
	require.EqualValues(t, 4, coarse.width)
	for _, e := range coarse.messages.Extents() {
		fs.Flip(extent.Name, e.Offset()+int64(e.Size)-1, 0)
	}
	for _, err := range s.Due(t.Context(), at(1011)) {
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	}
	visited := 0
	for r, err := range s.Due(t.Context(), at(1012)) {
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			continue
		}
		if visited++; visited > 50 {
			break
		}
		if visited%2 == 0 {
			require.NoError(t, r.Delete())
		} else {
			r.Data[0] = 'D'
			require.NoError(t, r.Reschedule(at(7000), r.Data))
		}
	}
	want := contents(t, s)
	require.NoError(t, s.Sync())
	abandon(s)
	to := vfs.NewMem()
	_, err := repair(fs.Clone(), to, s.o)
	require.NoError(t, err)
	got := contents(t, mustOpen(t, to, s.o))
	for id, text := range want {
		require.Equal(t, text, got[id], id)
	}
}

// TestRepairBesideADeletionInDoubt: a deletion in a damaged block of messages, of which the saved bucket
// index does not know, shifts no records. With damaged ids, nobody knows: then Open refuses, and Repair
// repeats no visits of the bucket.
func TestRepairBesideADeletionInDoubt(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{Buffer: 1 << 20})
	s := mustOpen(t, fs, o)
	var items []Item
	for i := range 2*pageNumbers + 1000 {
		item := Item{fmt.Sprint("far", i), at(6000), nil}
		if i < 100 {
			item = Item{fmt.Sprintf("near%03d", i), at(1010), nil}
		}
		items = append(items, item)
	}
	_, err := s.AddBatch(items)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, s.checkpointNow())
	}
	require.NoError(t, s.Delete("near008"))
	require.NoError(t, s.Delete(fmt.Sprint("far", pageNumbers+1)))
	s.places.turn = 1 // so that this checkpoint saves the second page
	require.NoError(t, s.checkpointNow())
	flipIn(fs, &s.bucketOf(20).messages)
	for slot := int64(1001); slot <= 1010; slot++ {
		for r, err := range s.Due(t.Context(), at(slot)) {
			if err == nil {
				require.NoError(t, r.Reschedule(at(5000), []byte(r.ID)))
			}
		}
	}
	require.NoError(t, s.Sync())
	abandon(s)
	for _, damagedIDs := range []bool{false, true} {
		from, to := fs.Clone(), vfs.NewMem()
		if damagedIDs {
			names, err := from.List()
			require.NoError(t, err)
			for _, name := range names {
				if strings.HasPrefix(name, "ids-") {
					from.Flip(name, 50, 0)
				}
			}
			_, err = open(from, o)
			require.ErrorIs(t, err, ErrCorrupt)
		}
		_, err := repair(from, to, o)
		require.NoError(t, err)
		s := mustOpen(t, to, o)
		visited := 0
		for item, err := range s.Scan() {
			require.NoError(t, err)
			if len(item.Data) > 0 {
				require.Equal(t, item.ID, string(item.Data))
				visited++
			}
		}
		if !damagedIDs {
			require.Equal(t, 99, visited)
		}
		require.NoError(t, s.Close())
	}
}
