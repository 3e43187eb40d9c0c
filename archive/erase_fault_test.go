package archive

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// beside is a disk that calls before each rename, so that a test does something in the middle of an
// operation.
type beside struct {
	*vfs.Mem
	mu     sync.Mutex // the archive renames in the background, too
	rename func(to string)
}

// onRename sets what is called before each rename.
func (b *beside) onRename(f func(to string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rename = f
}

// Rename implements vfs.FS.
func (b *beside) Rename(from, to string) error {
	b.mu.Lock()
	rename := b.rename
	b.mu.Unlock()
	if rename != nil {
		rename(to)
	}
	return b.Mem.Rename(from, to)
}

// once returns a function that calls another one only the first time.
func once(do func()) func() {
	done := false
	return func() {
		if !done {
			done = true
			do()
		}
	}
}

func appendText(a *Archive, url, text string, hours int) error {
	_, err := a.Append(visit{url, someTime.Add(time.Duration(hours) * time.Hour), 200, text}.capture())
	return err
}

// requireBodies requires that all versions can be read, and returns their number.
func requireBodies(t *testing.T, a *Archive) (n int) {
	t.Helper()
	for v, err := range a.All() {
		require.NoError(t, err)
		_, err = a.Body(v)
		require.NoError(t, err, v.URL)
		n++
	}
	return n
}

// An error at any step, also while the new index is filled, loses no other page.
func TestFailedErasureKeepsTheIndex(t *testing.T) {
	for k, failed := 1, true; failed; k++ {
		files := vfs.NewMem()
		a, err := OpenOn(files, Options{Compressors: 1})
		require.NoError(t, err)
		for i := range 10 {
			require.NoError(t, appendText(a, fmt.Sprint("http://b.test/", i), "kept", 1))
		}
		require.NoError(t, appendText(a, "http://a.test/", "secret", 1))
		require.NoError(t, a.Sync())
		files.FailAt(files.Steps()+k, syscall.ENOSPC)
		_, err = a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
		failed = err != nil
		files.FailAt(0)
		require.GreaterOrEqual(t, requireBodies(t, a), 10, "step %d: %v", k, err)
		_ = a.Close()
		a, err = OpenOn(files.Clone(), Options{Compressors: 1})
		require.NoError(t, err)
		require.GreaterOrEqual(t, requireBodies(t, a), 10, "step %d", k)
		require.NoError(t, a.Close())
	}
}

// The power fails after an index was made anew by Erase, while captures were appended and not synced. It
// points to none of them that is lost.
func TestNewIndexPointsToNoLostRecords(t *testing.T) {
	more := func(a *Archive) func() {
		return once(func() {
			for i := range 3 {
				require.NoError(t, appendText(a, fmt.Sprint("http://c.test/", i), "not synced", 2))
			}
		})
	}
	for seed := range uint64(10) {
		disk := &beside{Mem: vfs.NewMem()}
		a, err := OpenOn(disk, Options{Compressors: 1})
		require.NoError(t, err)
		for i := range 50 {
			require.NoError(t, appendText(a, fmt.Sprintf("http://a.test/%d", i), "x", 1))
		}
		require.NoError(t, appendText(a, "http://b.test/", "secret", 1))
		require.NoError(t, a.Commit())
		begin := more(a)
		disk.onRename(func(to string) {
			if to == "index.manifest" {
				begin()
			}
		})
		_, err = a.Erase(t.Context(), Selection{Host: "b.test"}, "asked for")
		require.NoError(t, err)
		a, err = OpenOn(disk.Crash(rand.New(rand.NewPCG(seed, 1))), Options{Compressors: 1})
		require.NoError(t, err)
		require.GreaterOrEqual(t, requireBodies(t, a), 50)
		require.Empty(t, a.Recovered().Damage, "of what was indexed")
		require.NoError(t, a.Close())
	}
}

// An erasure of another version is refused by name, and left as it is.
func TestErasureOfAnotherVersionIsRefused(t *testing.T) {
	files := vfs.NewMem()
	a, err := OpenOn(files, Options{})
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://a.test/", "x", 1))
	require.NoError(t, a.Close())
	other := durable.Seal("SPNERAS0", []byte("{}"))
	files.Put(eraseName, other)
	_, err = OpenOn(files, Options{})
	require.ErrorIs(t, err, ErrVersion)
	require.ErrorContains(t, err, eraseName)
	require.Equal(t, other, files.Data(eraseName))
}

// The name of a file is any string of bytes, and in the plan.
func TestErasureIsCompletedWhateverTheNames(t *testing.T) {
	const name = "b\xf6se.warc.gz"
	files := vfs.NewMem()
	var file bytes.Buffer
	encodeAll(t, &file, warc.Gzip, response("http://a.test/", wholeSecond, okHead+strings.Repeat("secret", 50)))
	files.Put(name, file.Bytes())
	ctx, cancel := context.WithCancel(t.Context())
	a, err := OpenOn(files, Options{Finished: func(string) { cancel() }}) // that with the tombstone
	require.NoError(t, err)
	_, err = a.Erase(ctx, Selection{Host: "a.test"}, "asked for")
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, a.Close())
	a, err = OpenOn(files, Options{})
	require.NoError(t, err)
	requireNowhere(t, a, "secret")
	require.NoError(t, a.Close())
}

// Open removes what erasures have left behind, and nothing else.
func TestOpenSweepsWhatErasuresLeft(t *testing.T) {
	files := vfs.NewMem()
	a, err := OpenOn(files, Options{})
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://a.test/", "x", 1))
	require.NoError(t, a.Close())
	before, err := files.List()
	require.NoError(t, err)
	ours := before[slices.IndexFunc(before, isWARC)]
	unknown := strings.Replace(ours, "-00000-", "-00007-", 1)
	files.Put(unknown+moving, []byte("left"))
	kept := []string{ours + moving, "foreign.warc.gz.moving", "notes.moving"}
	for _, name := range kept {
		files.Put(name, []byte("kept"))
	}
	a, err = OpenOn(files, Options{})
	require.NoError(t, err)
	require.NoError(t, a.Close())
	after, err := files.List()
	require.NoError(t, err)
	require.ElementsMatch(t, append(before, kept...), after)
}

// later appends captures of another time, some of which have bodies that are stored already.
func (m *eraseModel) later(a *Archive, hours int) {
	for i := range 3 {
		v := remembered{fmt.Sprintf("http://host%d.test/path1", i), strings.Repeat(fmt.Sprintf("body%d ", i), 200),
			someTime.UTC().Truncate(time.Microsecond).Add(time.Duration(hours+i) * time.Hour)}
		if appendText(a, v.url, v.body, hours+i) == nil {
			m.versions = append(m.versions, v)
		}
	}
}

// requireNoLeftovers requires that no file of an erasure is left.
func requireNoLeftovers(t *testing.T, disk vfs.FS) {
	t.Helper()
	names, err := disk.List()
	require.NoError(t, err)
	for _, name := range names {
		for _, ending := range []string{moving, erasing, eraseName} {
			require.False(t, strings.HasSuffix(name, ending), "%s is left", name)
		}
	}
}

// One step of an erasure fails, at any place, while captures are appended. The program goes on: it
// appends, perhaps erases again, and ends or loses its power. Nothing that was appended is lost, and the
// erasure is complete or has not happened.
func TestFailedErasureMatchesModel(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 46))
			made := archiveToErase(t, r)
			s, selects := made.selection(r)
			gone := func(v remembered) bool { return selects(v) && v.time.Before(someTime.Add(50*time.Hour)) }
			whole := made.files.Clone()
			a, err := OpenOn(whole, made.opts)
			require.NoError(t, err)
			before := whole.Steps()
			_, err = a.Erase(t.Context(), s, "asked for")
			require.NoError(t, err)
			for k := range whole.Steps() - before + 20 {
				if k%4 != int(seed%4) {
					continue
				}
				m := &eraseModel{opts: made.opts, versions: slices.Clone(made.versions)}
				m.failedErasure(t, r, &beside{Mem: made.files.Clone()}, s, gone, k+1)
				if t.Failed() {
					t.Logf("step %d of %+v", k+1, s)
					return
				}
			}
		})
	}
}

func (m *eraseModel) failedErasure(t *testing.T, r *rand.Rand, disk *beside, s Selection,
	gone func(remembered) bool, k int) {
	a, err := OpenOn(disk, m.opts)
	require.NoError(t, err)
	var begun atomic.Bool // not a sync.Once: what is appended may rename, too
	ended := make(chan struct{})
	meanwhile := func() {
		if begun.CompareAndSwap(false, true) {
			m.later(a, 100)
			close(ended)
		}
	}
	at := []string{eraseName, "index.manifest", erasing, ".gz"}[r.IntN(4)]
	disk.onRename(func(to string) {
		if strings.HasSuffix(to, at) {
			meanwhile()
		}
	})
	disk.FailAt(disk.Steps()+k, syscall.EIO)
	_, err = a.Erase(t.Context(), s, "asked for")
	done := err == nil
	disk.FailAt(0)
	disk.onRename(nil)
	if !begun.CompareAndSwap(false, true) {
		<-ended
	}
	m.later(a, 200)
	if r.IntN(2) == 0 {
		if again := s; r.IntN(2) == 0 {
			if again.To.IsZero() { // s selects what was appended since
				again.To = someTime.Add(50 * time.Hour)
			}
			_, err = a.Erase(t.Context(), again, "again")
			done = done || err == nil
		} else {
			_, err = a.Erase(t.Context(), Selection{Host: "unknown.test"}, "another")
		}
		if err == nil {
			done = m.check(t, a, gone) || done
		}
		m.later(a, 300)
	}
	if r.IntN(2) == 0 && a.Sync() == nil {
		disk = &beside{Mem: disk.Crash(r)} // the old one may still be in use
	} else {
		_ = a.Close()
		disk = &beside{Mem: disk.Clone()}
	}
	for range 2 {
		a, err = OpenOn(disk, m.opts)
		require.NoError(t, err)
		erased := m.check(t, a, gone)
		require.True(t, erased || !done || len(m.versions) == 0 || !slices.ContainsFunc(m.versions, gone))
		requireNoLeftovers(t, disk)
		require.NoError(t, a.Close())
		_, err = RepairOn(disk, m.opts) // the index is what the files say
		require.NoError(t, err)
	}
}

// An erasure that was abandoned leaves no file that Verify or a new index misses.
func TestAbandonedErasureLacksNothing(t *testing.T) {
	for k := 1; ; k++ {
		disk := vfs.NewMem()
		a, err := OpenOn(disk, Options{Level: -1})
		require.NoError(t, err)
		require.NoError(t, appendText(a, "http://a.test/", "secret", 1))
		require.NoError(t, appendText(a, "http://b.test/", "kept", 1))
		disk.FailAt(disk.Steps()+k, syscall.EIO)
		_, erased := a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
		disk.FailAt(0)
		require.NoError(t, appendText(a, "http://b.test/", "later", 2))
		_ = a.Commit() // fails if the sync did
		disk = disk.Crash(rand.New(rand.NewPCG(uint64(k), 1)))
		for range 2 {
			a, err = OpenOn(disk, Options{})
			require.NoError(t, err, "step %d", k)
			require.Empty(t, a.Missing(), "step %d", k)
			_, err = a.Verify(t.Context(), func(f Fault) { require.NotErrorIs(t, f.Err, fs.ErrNotExist, "step %d", k) })
			require.NoError(t, err)
			require.NoError(t, a.Close())
			report, err := RepairOn(disk, Options{})
			require.NoError(t, err)
			require.Empty(t, report.Missing)
		}
		if erased == nil {
			break
		}
	}
}

// After a failed sync nothing is erased: files may lack what a tombstone would say is kept.
func TestNoErasureAfterAFailedSync(t *testing.T) {
	disk := vfs.NewMem()
	a, err := OpenOn(disk, Options{})
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://a.test/", "x", 1))
	disk.FailAt(disk.Steps()+1, syscall.EIO)
	require.ErrorIs(t, a.Sync(), syscall.EIO)
	disk.FailAt(0)
	_, err = a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
	require.ErrorIs(t, err, syscall.EIO)
	require.Nil(t, disk.Data(eraseName))
	_ = a.Close()
}

// The power fails in the middle of an erasure, and the index is damaged, too. Open completes it.
func TestErasureIsCompletedWithoutTheIndex(t *testing.T) {
	completed := 0
	for k := 1; ; k++ {
		disk := vfs.NewMem()
		a, err := OpenOn(disk, Options{Level: -1})
		require.NoError(t, err)
		for i := range 20 {
			require.NoError(t, appendText(a, fmt.Sprint("http://b.test/", i), "kept", 1))
		}
		require.NoError(t, appendText(a, "http://a.test/", "secret", 1))
		require.NoError(t, a.Commit())
		disk.FailAt(disk.Steps()+k, vfs.ErrPower)
		_, erased := a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
		disk = disk.Crash(rand.New(rand.NewPCG(uint64(k), 1)))
		if exists(disk, eraseName) {
			completed++
			names, err := disk.List()
			require.NoError(t, err)
			for _, name := range names {
				if strings.HasPrefix(name, indexName+"-") {
					disk.Flip(name, 100, 1)
				}
			}
			a, err = openOrRebuild("/archive", disk, Options{})
			require.NoError(t, err, "step %d", k)
			require.Equal(t, 20, requireBodies(t, a))
			requireNowhere(t, a, "secret")
			require.NoError(t, a.Close())
		}
		if erased == nil {
			break
		}
	}
	require.NotZero(t, completed)
}

// An erasure is not complete as long as a file from which something has to go is away, or another one: there it
// would hit other pages.
func TestErasureWaitsForAMissingFile(t *testing.T) {
	disk := &beside{Mem: vfs.NewMem()}
	a, err := OpenOn(disk, Options{})
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://a.test/", "secret", 1))
	names, err := a.Files()
	require.NoError(t, err)
	name := strings.TrimSuffix(names[0], unfinished)
	var planned *vfs.Mem
	disk.onRename(func(to string) {
		if to == name && exists(disk, eraseName) { // the file that is written anew
			planned = disk.Mem.Crash(rand.New(rand.NewPCG(1, 1)))
		}
	})
	_, err = a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, planned.Rename(name, "away"))
	_, err = OpenOn(planned, Options{})
	require.ErrorContains(t, err, name)
	data, other := planned.Data("away"), []byte(strings.Repeat("x", 10_000))
	planned.Put(name, other)
	_, err = OpenOn(planned, Options{})
	require.ErrorIs(t, err, errChanged)
	require.Equal(t, other, planned.Data(name))
	require.NoError(t, planned.Remove("away"))
	planned.Put(name, data)
	a, err = OpenOn(planned, Options{})
	require.NoError(t, err)
	requireNowhere(t, a, "secret")
	requireNoLeftovers(t, planned)
	require.NoError(t, a.Close())
}
