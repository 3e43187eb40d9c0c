package satstore

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// flipBlock inverts a bit in the nth block with a magic, and returns whether there is one.
func flipBlock(fs *vfs.Mem, magic uint32, nth int) bool {
	b := fs.Data(extent.Name)
	for at := 4096; at < len(b); at += 4096 {
		for to := at; to < len(b); {
			found, size, reason := extent.Open(b[to:])
			if reason != "" {
				break
			}
			if to += size; found.Magic != magic {
				continue
			}
			if nth--; nth < 0 {
				fs.Flip(extent.Name, int64(to-1), 3)
				return true
			}
		}
	}
	return false
}

// take takes all records that are due until a slot and returns their ids in order, and the damage
// that Due reports.
func take(t *testing.T, s *Store, slot int64) (ids []string, damage []error) {
	t.Helper()
	for r, err := range s.Due(t.Context(), at(slot)) {
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			damage = append(damage, err)
			continue
		}
		ids = append(ids, r.ID)
	}
	return ids, damage
}

// asideStore returns the disk of a closed store with records of 2,000 bytes in one slot.
func asideStore(t *testing.T, o Options, slot int64) (*vfs.Mem, []string) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, o)
	var ids []string
	for i := range 300 {
		id := fmt.Sprintf("https://a.test/%03d", i)
		mustAdd(t, s, id, slot, strings.Repeat("x", 2000))
		ids = append(ids, id)
	}
	require.NoError(t, s.Close())
	return fs, ids
}

// TestDueSetsDamageAside: a damaged block is reported once. All other records come, in order, and
// again in later units. The next Open reports it again, and Repair keeps the others.
func TestDueSetsDamageAside(t *testing.T) {
	t.Parallel()
	o := small(Options{Buffer: 1 << 20})
	intact, all := asideStore(t, o, 1001)
	for nth := 0; ; nth++ {
		fs := intact.Clone()
		if !flipBlock(fs, extent.Records, nth) {
			require.Greater(t, nth, 5)
			break
		}
		s := mustOpen(t, fs, o)
		ids, damage := take(t, s, 1001)
		require.Len(t, damage, 1)
		var where *CorruptError
		require.ErrorAs(t, damage[0], &where)
		require.Equal(t, extent.Name, where.File)
		require.Positive(t, where.Offset)
		require.Greater(t, len(ids), len(all)-60)
		require.Less(t, len(ids), len(all))
		requireSubsequence(t, all, ids)
		mustAdd(t, s, "https://a.test/more", 1002, "x")
		ids2, damage := take(t, s, 1010)
		require.Empty(t, damage, "it was reported")
		require.Equal(t, []string{"https://a.test/more"}, ids2)
		require.ErrorIs(t, s.Check(), ErrCorrupt)
		require.NoError(t, s.Close())

		s = mustOpen(t, fs, o)
		again, damage := take(t, s, 1010)
		require.Len(t, damage, 1)
		require.Equal(t, append(ids, ids2...), again)
		require.NoError(t, s.Close())
		to := vfs.NewMem()
		done, err := repair(fs, to, o)
		require.NoError(t, err)
		require.EqualValues(t, len(all)-len(ids), done.Lost)
		require.EqualValues(t, len(again), done.Records)
	}
}

func requireSubsequence(t *testing.T, all, some []string) {
	t.Helper()
	for _, id := range all {
		if len(some) > 0 && some[0] == id {
			some = some[1:]
		}
	}
	require.Empty(t, some, "order")
}

// TestDueStopsAfterAnError: callers that end the iteration at an error continue with the next one.
func TestDueStopsAfterAnError(t *testing.T) {
	t.Parallel()
	o := small(Options{Buffer: 1 << 20})
	fs, all := asideStore(t, o, 1001)
	require.True(t, flipBlock(fs, extent.Records, 4))
	require.True(t, flipBlock(fs, extent.Records, 2))
	s := mustOpen(t, fs, o)
	var ids []string
	stops := 0
	for stopped := true; stopped; {
		stopped = false
		for r, err := range s.Due(t.Context(), at(1005)) {
			if err != nil {
				stops, stopped = stops+1, true
				break
			}
			ids = append(ids, r.ID)
		}
	}
	require.Equal(t, 2, stops)
	require.Less(t, len(ids), len(all))
	requireSubsequence(t, all, ids)
}

// TestDamagedMessages: a damaged block of messages is reported once, and loses its messages. No
// deleted record returns.
func TestDamagedMessages(t *testing.T) {
	t.Parallel()
	o := small(Options{Buffer: 1 << 20})
	intact := vfs.NewMem()
	s := mustOpen(t, intact, o)
	want := map[string]string{}
	for i := range 100 {
		id := fmt.Sprint("https://a.test/", i)
		mustAdd(t, s, id, 1060, "x")
		require.NoError(t, s.Update(id, []byte(strings.Repeat("m", 2000))))
		want[id] = "x"
		if i%3 == 0 {
			require.NoError(t, s.Delete(id))
			delete(want, id)
		}
	}
	require.NoError(t, s.Close())
	nth, lost := 0, 0
	for ; ; nth++ {
		fs := intact.Clone()
		if !flipBlock(fs, extent.Messages, nth) {
			break
		}
		s := mustOpen(t, fs, o)
		got, damage := map[string]string{}, 0
		for r, err := range s.Due(t.Context(), at(1060)) {
			if err != nil {
				require.ErrorIs(t, err, ErrCorrupt)
				damage++
				continue
			}
			if !strings.Contains(string(r.Data), "+") {
				lost++
			}
			got[r.ID], _, _ = strings.Cut(string(r.Data), "+")
		}
		require.Equal(t, want, got)
		require.Equal(t, 1, damage)
	}
	require.Greater(t, nth, 2)
	require.LessOrEqual(t, lost, len(want))
	require.Greater(t, lost, len(want)/2)
}

// TestSplitsSetDamageAside: damage in a bucket that is split is reported by Due, once. All other
// records are due in time, also after a kill at any moment. The lost ids can be deleted and added
// again.
func TestSplitsSetDamageAside(t *testing.T) {
	t.Parallel()
	o := small(Options{Buffer: 1 << 20})
	intact, all := asideStore(t, o, 1100)
	for nth := 0; ; nth++ {
		fs := intact.Clone()
		if !flipBlock(fs, extent.Records, nth) {
			require.Greater(t, nth, 5)
			break
		}
		s := mustOpen(t, fs, o)
		var damage []error
		for slot := int64(1001); slot < 1100; slot += 3 {
			none, found := take(t, s, slot)
			require.Empty(t, none)
			damage = append(damage, found...)
			killed := mustOpen(t, fs.Clone(), o)
			require.LessOrEqual(t, len(contentsOf(killed)), len(all))
			require.NoError(t, killed.Close())
		}
		ids, found := take(t, s, 1100)
		damage = append(damage, found...)
		require.Len(t, damage, 1)
		require.Greater(t, len(ids), len(all)-60)
		require.Less(t, len(ids), len(all))
		requireSubsequence(t, all, ids)
		require.EqualValues(t, len(all), s.Stats().Records)
		got := map[string]bool{}
		for _, id := range ids {
			got[id] = true
		}
		for _, id := range all {
			if !got[id] {
				require.NoError(t, s.Delete(id))
				mustAdd(t, s, id, 1200, "again")
			}
		}
		require.NoError(t, s.Check())
		require.Len(t, contents(t, s), len(all))
		require.NoError(t, s.Close())
	}
}

// contentsOf returns the records that can be read.
func contentsOf(s *Store) map[string]string {
	all := map[string]string{}
	for item, err := range s.Scan() {
		if err == nil {
			all[item.ID] = string(item.Data)
		}
	}
	return all
}

// TestBrokenStoreEndsDue: a store that is read-only because of damage to the id index ends an
// iteration, and does not report the same error for ever.
func TestBrokenStoreEndsDue(t *testing.T) {
	s := mustOpen(t, vfs.NewMem(), small(Options{}))
	mustAdd(t, s, "a", 1000, "x")
	s.mu.Lock()
	_ = s.fail(fmt.Errorf("merge: %w", ErrCorrupt))
	s.mu.Unlock()
	n := 0
	for _, err := range s.Due(t.Context(), at(1000)) {
		require.ErrorIs(t, err, ErrReadOnly)
		n++
	}
	require.Equal(t, 1, n)
}

// TestDeleteAndAddAgain: far records that are deleted and added again and again take bounded space,
// and a kill at any moment loses none.
func TestDeleteAndAddAgain(t *testing.T) {
	t.Parallel()
	for _, slot := range []int64{1003, 1100, 9000} { // near, shared and far
		fs, o := vfs.NewMem(), small(Options{Buffer: 64 << 10})
		s := mustOpen(t, fs, o)
		want := map[string]string{}
		for round := range 40 {
			for i := range 100 {
				id := fmt.Sprint("https://a.test/", i)
				if round > 0 {
					require.NoError(t, s.Update(id, []byte("message")))
					require.NoError(t, s.Delete(id))
				}
				mustAdd(t, s, id, slot, fmt.Sprint(round, strings.Repeat("x", 200)))
				want[id] = fmt.Sprint(slot, " ", round, strings.Repeat("x", 200))
			}
			most := uint64(0)
			for b := range s.buckets {
				most = max(most, b.records.Count(), b.messages.Count())
			}
			require.LessOrEqual(t, most, uint64(2*(2*100+minGone)+10))
			if round%5 == 4 {
				require.NoError(t, s.checkpointNow())
				killed := mustOpen(t, fs.Clone(), o)
				require.Equal(t, want, contents(t, killed))
				require.NoError(t, killed.Check())
				require.NoError(t, killed.Close())
			}
		}
		require.Equal(t, want, contents(t, s))
		require.NoError(t, s.Check())
		require.NoError(t, s.checkpointNow())
		require.NoError(t, s.checkpointNow())
		got := s.Stats()
		require.Less(t, got.DiskSize, int64(1<<20), "40 rounds of 25 KB each are more")
		require.EqualValues(t, 100, got.Records)
		require.Len(t, due(t, s, slot, nil), 100)
	}
}

// TestWaitingMessagesAreBounded: the messages that wait for a record that is out, and are logged
// with its visit, are bounded. The visit succeeds.
func TestWaitingMessagesAreBounded(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{})
	s := mustOpen(t, fs, o)
	mustAdd(t, s, "a", 1000, "x")
	mustAdd(t, s, "b", 1000, "x")
	out := map[string]*Record{}
	due(t, s, 1000, func(r *Record) { out[r.ID] = r })
	sent := 0
	var err error
	for ; err == nil && sent < 100; sent++ {
		err = s.Update("a", make([]byte, 100<<10))
	}
	require.ErrorIs(t, err, ErrSize)
	require.Equal(t, 11, sent)
	require.ErrorIs(t, s.Update("b", make([]byte, 100<<10)), ErrSize, "another record")
	require.NoError(t, out["a"].Reschedule(at(1005), []byte("visited")))
	require.NoError(t, s.Update("a", []byte("more")))
	want := datasOf(t, s)
	require.Greater(t, len(want["a"]), 1000<<10)
	killed := mustOpen(t, fs.Clone(), o)
	require.True(t, maps.Equal(want, datasOf(t, killed)))
	require.NoError(t, killed.Check())
}

// TestForeignBlocks: a reader that looks for the next sound block skips those of other buckets,
// which entries may contain.
func TestForeignBlocks(t *testing.T) {
	t.Parallel()
	fs, o := vfs.NewMem(), small(Options{Buffer: 1 << 20})
	s := mustOpen(t, fs, o)
	fake := make([]byte, extent.Header+9)
	extent.Block{Magic: extent.Records, Bucket: 77, First: 5, Count: 2}.Seal(fake, 0)
	mine := make([]byte, extent.Header+9)
	extent.Block{Magic: extent.Records, Bucket: 0, First: 1 << 40, Count: 2}.Seal(mine, 0)
	for i := range 300 {
		mustAdd(t, s, fmt.Sprint(i), 1001, strings.Repeat(string(fake)+string(mine), 40))
	}
	require.NoError(t, s.Close())
	require.True(t, flipBlock(fs, extent.Records, 1))
	s = mustOpen(t, fs, o)
	ids, damage := take(t, s, 1001)
	require.Len(t, damage, 1)
	require.Greater(t, len(ids), 200)
}
