package satstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// damagedVisits returns a killed store: a block of records that are due is damaged. The log has visits
// to the first ones of that bucket, and then changes that have nothing to do with it.
func damagedVisits(t *testing.T, visits int) (fs *vfs.Mem, s *Store) {
	fs = vfs.NewMem()
	s = mustOpen(t, fs, small(Options{Buffer: 1 << 20}))
	for i := range 100 {
		mustAdd(t, s, fmt.Sprint("due", i), 1001, "x")
		mustAdd(t, s, fmt.Sprint("old", i), 5000, "x")
		mustAdd(t, s, fmt.Sprint("well", i), 1002, "x")
	}
	require.NoError(t, s.checkpointNow())
	require.NoError(t, s.pass(1001))
	lossy := s.bucketOf(0).records.Extents()
	n := 0
	for r, err := range s.Due(t.Context(), at(1001)) {
		require.NoError(t, err)
		if n++; n > visits {
			break
		}
		if n%10 == 0 {
			require.NoError(t, r.Delete())
		} else {
			require.NoError(t, r.Reschedule(at(2000), []byte("y")))
		}
	}
	if visits > 0 { // these come after the others in the bucket of slot 2000
		for r, err := range s.Due(t.Context(), at(1002)) {
			require.NoError(t, err)
			if strings.HasPrefix(r.ID, "well") {
				require.NoError(t, r.Reschedule(at(2000), []byte("moved")))
			}
		}
	}
	for i := range 1000 {
		mustAdd(t, s, fmt.Sprint("new", i), 6000, "x")
	}
	for i := range 100 {
		require.NoError(t, s.Delete(fmt.Sprint("old", i)))
	}
	require.NoError(t, s.Sync())
	abandon(s)
	for _, e := range lossy {
		fs.Flip(extent.Name, e.Offset()+40, 0)
	}
	return fs.Clone(), s
}

// TestRepairAfterDamagedVisits: a damaged block to which the log refers loses its records. They are
// counted, and all other changes are repeated, in the right places.
func TestRepairAfterDamagedVisits(t *testing.T) {
	t.Parallel()
	for _, visits := range []int{0, 1, 37, 100} {
		fs, s := damagedVisits(t, visits)
		if visits > 0 {
			_, err := open(fs.Clone(), s.o)
			require.ErrorIs(t, err, ErrCorrupt)
		}
		to := vfs.NewMem()
		done, err := repair(fs, to, s.o)
		require.NoError(t, err)
		got := contents(t, mustOpen(t, to, s.o))
		require.Len(t, got, 1100, "%d visits: %v", visits, done)
		require.EqualValues(t, 100-visits/10, done.Lost)
		require.NotEmpty(t, done.Findings)
		for i := range 1000 {
			require.Equal(t, "6000 x", got[fmt.Sprint("new", i)])
		}
		well := "2000 moved"
		if visits == 0 {
			well = "1002 x"
		}
		for i := range 100 {
			require.Equal(t, well, got[fmt.Sprint("well", i)])
		}
	}
}

// TestRepairAfterADamagedSplit: when the log repeats a split of damaged records, positions in buckets
// are unknown. Visits after that are skipped and counted; additions and deletions are repeated.
func TestRepairAfterADamagedSplit(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	s := mustOpen(t, fs, small(Options{Buffer: 1 << 20}))
	for i := range 300 {
		mustAdd(t, s, fmt.Sprintf("split%03d", i), 1060+int64(i%3), strings.Repeat("x", 1000))
		mustAdd(t, s, fmt.Sprint("old", i), 5000, "x")
	}
	require.NoError(t, s.checkpointNow())
	split := s.bucketOf(0)
	extents := split.records.Extents()
	require.NoError(t, s.pass(1059))
	require.True(t, split.dead)
	visited := 0
	for r, err := range s.Due(t.Context(), at(1062)) {
		require.NoError(t, err)
		if visited++; visited%2 == 0 {
			require.NoError(t, r.Delete())
		} else {
			require.NoError(t, r.Reschedule(at(7000), []byte("visited")))
		}
	}
	require.Equal(t, 300, visited)
	for i := range 300 {
		mustAdd(t, s, fmt.Sprint("new", i), 6000, "x")
		require.NoError(t, s.Delete(fmt.Sprint("old", i)))
	}
	require.NoError(t, s.Sync())
	abandon(s)
	fs = fs.Clone()
	fs.Flip(extent.Name, extents[0].Offset()+int64(extents[0].Size)/2, 0)
	_, err := open(fs.Clone(), s.o)
	require.ErrorIs(t, err, ErrCorrupt)
	to := vfs.NewMem()
	done, err := repair(fs, to, s.o)
	require.NoError(t, err)
	kinds := map[string]int{}
	for id, text := range contents(t, mustOpen(t, to, s.o)) {
		kinds[id[:3]]++
		if id[:3] == "new" {
			require.Equal(t, "6000 x", text)
		}
	}
	require.Equal(t, 300, kinds["new"])
	require.Zero(t, kinds["old"])
	require.Positive(t, kinds["spl"])
	require.LessOrEqual(t, kinds["spl"], 150, "the others were deleted")
	require.GreaterOrEqual(t, kinds["spl"]+int(done.Lost), 150)
	texts := fmt.Sprint(done.Findings)
	require.Regexp(t, `log-[0-9]+: byte [0-9]+: before this`, texts)
	require.Regexp(t, `[0-9]+ visits and steps of splits in the log could not be repeated`, texts)
}

// TestRepairRepeatsSplitsBesideHoles: records that cannot be read, but whose visits are in the log, take
// their places in later splits. After a message for one of them, only a split of a bucket that may have
// it is unknown.
func TestRepairRepeatsSplitsBesideHoles(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"", "update", "delete", "while it is out"} {
		fs := vfs.NewMem()
		s := mustOpen(t, fs, small(Options{Buffer: 1 << 20}))
		for i := range 100 {
			mustAdd(t, s, fmt.Sprint("lost", i), 1001, "x")
			mustAdd(t, s, fmt.Sprint("well", i), 1002, "x")
			mustAdd(t, s, fmt.Sprint("else", i), 1060+int64(i%3), "x")
		}
		require.NoError(t, s.checkpointNow())
		lossy := s.bucketOf(0)
		extents := lossy.records.Extents()
		for slot, i := int64(1001), 0; slot <= 1002; slot++ {
			for r, err := range s.Due(t.Context(), at(slot)) {
				require.NoError(t, err)
				if message == "while it is out" && r.ID == "lost7" {
					require.NoError(t, s.Update(r.ID, []byte("m")))
				}
				require.NoError(t, r.Reschedule(at(5000+int64(i%4)), []byte("once")))
				i++
			}
		}
		require.True(t, lossy.dead)
		switch message {
		case "update":
			require.NoError(t, s.Update("lost7", []byte("m")))
		case "delete":
			require.NoError(t, s.Delete("lost7"))
		}
		for _, slot := range []int64{1062, 5003} {
			for r, err := range s.Due(t.Context(), at(slot)) {
				require.NoError(t, err)
				require.NoError(t, r.Reschedule(at(7000), []byte("again")))
			}
		}
		require.NoError(t, s.Sync())
		abandon(s)
		fs = fs.Clone()
		for _, e := range extents {
			fs.Flip(extent.Name, e.Offset()+40, 0)
		}
		to := vfs.NewMem()
		done, err := repair(fs, to, s.o)
		require.NoError(t, err)
		kinds := map[string]int{}
		for id, text := range contents(t, mustOpen(t, to, s.o)) {
			kinds[id[:4]+" "+text]++
		}
		require.Equal(t, 100, kinds["else 7000 again"], "%s: %v, %v", message, kinds, done)
		if message == "" {
			require.Equal(t, map[string]int{"else 7000 again": 100, "well 7000 again": 100}, kinds)
			require.EqualValues(t, 100, done.Lost)
		} else {
			require.Contains(t, fmt.Sprint(done.Findings), "could not be repeated")
			require.Len(t, kinds, 5, "well, in one of four slots each: %v", kinds)
		}
	}
}
