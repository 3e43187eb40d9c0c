package archive

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/lsm"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// damagedRun returns an archive with many pages, whose index has flipped bits in its blocks.
func damagedRun(t *testing.T, files *vfs.Mem, pages int) {
	t.Helper()
	a, err := OpenOn(files, Options{})
	require.NoError(t, err)
	for i := range pages {
		_, err := a.Append(page(fmt.Sprintf("http://a.test/%d", i), fmt.Sprint("body ", i)))
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
	names, err := files.List()
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasPrefix(name, indexName+"-") {
			for at := int64(100); at < int64(len(files.Data(name))*2/3); at += 1000 {
				files.Flip(name, at, 3)
			}
		}
	}
}

// A damaged index refuses no capture. Stats tells, and the next Open makes it anew, even if that fails at first.
func TestDamagedIndexRefusesNothing(t *testing.T) {
	files := vfs.NewMem()
	const pages = 400
	damagedRun(t, files, pages)
	a, err := OpenOn(files, Options{})
	require.NoError(t, err)
	for i := range pages {
		_, err := a.Append(page(fmt.Sprintf("http://a.test/%d", i), fmt.Sprint("body ", i)))
		require.NoError(t, err)
		_, err = a.Append(page(fmt.Sprintf("http://b.test/%d", i), "new"))
		require.NoError(t, err)
	}
	require.ErrorIs(t, a.Stats().IndexDamage, ErrIndex)
	require.ErrorIs(t, a.Stats().Index, ErrIndex)
	require.ErrorIs(t, a.Sync(), ErrIndex)
	require.NoError(t, a.Sync(), "it is told once")
	_, err = a.Verify(t.Context(), nil)
	require.ErrorIs(t, err, ErrIndex)
	require.NoError(t, a.Close())
	reader, err := follow("/archive", files.Clone(), Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = reader.Verify(t.Context(), nil)
	require.ErrorIs(t, err, ErrIndex)
	require.NoError(t, reader.Close())
	a, err = openOrRebuild("/archive", files.Clone(), Options{})
	require.NoError(t, err)
	require.ErrorIs(t, a.Stats().IndexDamage, ErrIndex)
	require.NoError(t, a.Close())
	for step := 1; ; step++ {
		files.FailAt(files.Steps()+step, syscall.EIO)
		a, err = openOrRebuild("/archive", files, Options{})
		files.FailAt(0, nil)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, syscall.EIO)
		files = files.Clone()
	}
	for i := range pages {
		for _, host := range []string{"a", "b"} {
			v, err := a.At(fmt.Sprintf("http://%s.test/%d", host, i), time.Time{})
			require.NoError(t, err)
			require.NotEmpty(t, body(t, a, v))
		}
	}
	require.NoError(t, a.Close())
	a, err = OpenOn(files, Options{})
	require.NoError(t, err)
	require.NoError(t, a.Stats().IndexDamage)
	faults, checked := verify(t, a)
	require.Empty(t, faults)
	require.Equal(t, 3*pages, checked.Versions)
	require.NoError(t, a.Close())
}

// Errors of merges reach the next Sync and Stats.
func TestBackgroundErrorsAreTold(t *testing.T) {
	files := vfs.NewMem()
	a, err := OpenOn(files, Options{})
	require.NoError(t, err)
	for i := range 5 {
		_, err := a.Append(page(fmt.Sprintf("http://a.test/%d", i), "x"))
		require.NoError(t, err)
		require.NoError(t, a.Commit())
	}
	a.index.ended.Wait()
	a.index.mu.Lock()
	a.index.failed, a.index.unsaid = syscall.EIO, syscall.EIO
	a.index.mu.Unlock()
	require.ErrorIs(t, a.Stats().Index, syscall.EIO)
	require.ErrorIs(t, a.Sync(), syscall.EIO)
	require.NoError(t, a.Sync())
	require.NoError(t, a.Close())
}

// The index is damaged when Open needs it, to index what a killed process has appended. That is no damage of
// the WARC file, whose captures must not be cut off.
func TestIndexDamageIsNotThatOfAFile(t *testing.T) {
	const pages = 400
	whole := vfs.NewMem()
	a, err := OpenOn(whole, Options{})
	require.NoError(t, err)
	for i := range pages {
		require.NoError(t, appendText(a, fmt.Sprint("http://a.test/", i), "text", 1))
	}
	require.NoError(t, a.Close())
	a, err = OpenOn(whole, Options{})
	require.NoError(t, err)
	for i := range pages {
		_, err = a.Append(visit{fmt.Sprint("http://a.test/", i), someTime.Add(2 * time.Hour), 404, "gone"}.capture())
		require.NoError(t, err)
	}
	killed := whole.Clone()
	names, err := killed.List()
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasPrefix(name, indexName+"-") {
			for at := int64(100); at < 8_000; at += 1000 { // of blocks, which only look-ups read
				killed.Flip(name, at, 3)
			}
		}
	}
	_, err = follow("/archive", killed, Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrIndex)
	a, err = openOrRebuild("/archive", killed, Options{})
	require.NoError(t, err)
	require.Empty(t, a.Recovered().Damage)
	require.Equal(t, 2*pages, requireBodies(t, a))
	require.NoError(t, a.Close())
}

// A file that was cut between two records, or is gone, is reported though the index that knew it is
// damaged, whatever part of that, and at each Open, until Reindex takes the files for what they are.
func TestLossIsReportedWithADamagedIndex(t *testing.T) {
	for _, broken := range []string{indexName + ".manifest", indexName + "-00000001", indexName + ".meta"} {
		for _, gone := range []bool{false, true} {
			files := vfs.NewMem()
			a, err := OpenOn(files, Options{MaxFile: 1})
			require.NoError(t, err)
			var last Location
			for i := range 3 {
				last, err = a.Append(page(fmt.Sprint("http://a.test/", i), "text"))
				require.NoError(t, err)
			}
			require.NoError(t, a.Close())
			require.NoError(t, files.Remove(broken))
			if gone {
				require.NoError(t, files.Remove(last.File))
			} else {
				files.Put(last.File, files.Data(last.File)[:last.Offset])
			}
			for range 2 {
				a, err = openOrRebuild("/archive", files, Options{})
				require.NoError(t, err)
				if gone {
					require.Equal(t, []string{last.File}, a.Missing(), broken)
				} else {
					require.Len(t, a.Recovered().Damage, 1, broken)
					require.Equal(t, last.File, a.Recovered().Damage[0].File)
					require.Equal(t, last.Offset, a.Recovered().Damage[0].Offset)
				}
				faults, _ := verify(t, a)
				require.NotEmpty(t, faults)
				require.Equal(t, last.File, faults[0].File)
				require.NoError(t, a.Close())
			}
			report, err := RepairOn(files, Options{})
			require.NoError(t, err)
			require.Equal(t, gone, len(report.Missing) == 1)
			require.Equal(t, !gone, len(report.Damage) == 1)
			if gone {
				require.NotContains(t, string(lsm.Meta(files)), last.File)
			}
			a, err = OpenOn(files, Options{MaxFile: 1})
			require.NoError(t, err)
			require.NoError(t, appendText(a, "http://b.test/", "x", 1))
			requireBodies(t, a)
			require.NoError(t, a.Close())
			report, err = RepairOn(files, Options{})
			require.NoError(t, err)
			require.Empty(t, report.Missing)
			require.Empty(t, report.Damage)
		}
	}
}

// A sync fails, and the system takes what it has in memory for what is on disk. The next process finds the
// captures there, and refers to them: they are written once more, so that a power failure takes neither.
func TestCapturesAfterAFailedSyncAreWrittenAgain(t *testing.T) {
	for seed := range uint64(20) {
		files := vfs.NewMem()
		a, err := OpenOn(files, Options{Level: -1})
		require.NoError(t, err)
		require.NoError(t, appendText(a, "http://a.test/", "text", 1))
		files.FailAt(files.Steps()+1, syscall.EIO)
		require.ErrorIs(t, a.Sync(), syscall.EIO)
		files = files.Clone()
		a, err = OpenOn(files, Options{Level: -1})
		require.NoError(t, err)
		require.NoError(t, appendText(a, "http://a.test/", "text", 2)) // again, as Sync has asked for
		require.NoError(t, a.Sync())
		a, err = OpenOn(files.Crash(rand.New(rand.NewPCG(seed, 0))), Options{})
		require.NoError(t, err)
		require.Equal(t, 2, requireBodies(t, a))
		require.NoError(t, a.Close())
	}
}
