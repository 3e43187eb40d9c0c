package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// watched is a disk that calls before each opening and each sync of a file, and counts the bytes that are
// read of WARC files.
type watched struct {
	*vfs.Mem
	open func(name string)
	sync func() error
	read atomic.Int64
}

// Open implements vfs.FS.
func (w *watched) Open(name string) (vfs.File, error) {
	if w.open != nil {
		w.open(name)
	}
	f, err := w.Mem.Open(name)
	if err != nil || !isWARC(name) {
		return f, err
	}
	return watchedFile{f, w}, nil
}

// Create implements vfs.FS.
func (w *watched) Create(name string) (vfs.File, error) {
	f, err := w.Mem.Create(name)
	return watchedFile{f, w}, err
}

type watchedFile struct {
	vfs.File
	disk *watched
}

func (f watchedFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	f.disk.read.Add(int64(n))
	return n, err
}

func (f watchedFile) Sync() error {
	if f.disk.sync != nil {
		return f.disk.sync()
	}
	return f.File.Sync()
}

// A run that a merge removes between the reading of the manifest and of the run is not damage.
func TestReaderBesideAMerge(t *testing.T) {
	mem := vfs.NewMem()
	a, err := OpenOn(mem, Options{Compressors: 1, Level: -1, MaxFile: 20_000})
	require.NoError(t, err)
	defer a.Close()
	n := 0
	more := func() {
		for range 50 {
			n++
			require.NoError(t, appendText(a, fmt.Sprint("http://a.test/", n), strings.Repeat("text ", 100), n))
		}
		require.NoError(t, a.Commit())
	}
	disk := &watched{Mem: mem}
	merged := false
	mergeOnce := func() {
		merged = false
		disk.open = func(name string) {
			if merged || !strings.HasPrefix(name, indexName+"-") {
				return
			}
			merged = true
			for mem.Data(name) != nil {
				more()
			}
		}
	}
	for range 5 {
		more()
	}
	mergeOnce()
	r, err := follow("/archive", disk, Options{ReadOnly: true})
	require.NoError(t, err)
	defer r.Close()
	require.True(t, merged)
	for range 2 {
		require.NoError(t, r.Stats().IndexDamage)
		require.Zero(t, disk.read.Load())
		more()
		mergeOnce()
		require.NoError(t, r.follower.refresh(r))
		require.True(t, merged)
		_, err = r.At(fmt.Sprint("http://a.test/", n), time.Time{})
		require.NoError(t, err)
	}
}

// A reader forgets a capture that was never acknowledged, also if its file is gone.
func TestReaderOfAFileThatIsRemoved(t *testing.T) {
	disk := &watched{Mem: vfs.NewMem()}
	a, err := OpenOn(disk, Options{Compressors: 1, SyncEvery: 1})
	require.NoError(t, err)
	defer a.Close()
	r, err := follow("/archive", disk, Options{ReadOnly: true})
	require.NoError(t, err)
	defer r.Close()
	disk.sync = func() error {
		require.NoError(t, r.follower.refresh(r))
		require.NoError(t, r.follower.refresh(r)) // it has not grown since
		_, err := r.At("http://a.test/", time.Time{})
		require.NoError(t, err)
		return syscall.EIO
	}
	require.ErrorIs(t, appendText(a, "http://a.test/", "not acknowledged", 1), syscall.EIO)
	names, err := a.Files()
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, r.follower.refresh(r))
	require.NoError(t, r.follower.refresh(r))
	_, err = r.At("http://a.test/", time.Time{})
	require.ErrorIs(t, err, ErrNotFound)
	require.Empty(t, r.Missing())

	// A file that is finished is not gone.
	disk.sync = nil
	require.NoError(t, appendText(a, "http://a.test/", "text", 2))
	require.NoError(t, r.follower.refresh(r))
	view := r.follower.view.Load()
	require.NoError(t, a.files.finish())
	for range 3 {
		require.NoError(t, r.follower.refresh(r))
	}
	require.Same(t, view, r.follower.view.Load())
}

// A reader does not read the file that the writer imports at the time, but has of it what is committed.
func TestReaderBesideAnImport(t *testing.T) {
	const n = 3000
	from := filepath.Join(t.TempDir(), "in.warc.gz")
	var file bytes.Buffer
	heads := make([]warc.Head, n)
	for i := range heads {
		heads[i] = response(fmt.Sprint("http://in.test/", i), someTime, okHead+"x")
	}
	encodeAll(t, &file, warc.Gzip, heads...)
	require.NoError(t, os.WriteFile(from, file.Bytes(), 0o600))
	disk := &beside{Mem: vfs.NewMem()}
	a, err := OpenOn(disk, Options{Compressors: 1})
	require.NoError(t, err)
	defer a.Close()
	commitAt(a, 200)
	r, err := follow("/archive", disk, Options{ReadOnly: true})
	require.NoError(t, err)
	defer r.Close()
	most, commits := 0, 0
	disk.onRename(func(string) {
		if err := r.follower.refresh(r); err != nil {
			t.Error(err)
		}
		count, _ := r.follower.view.Load().index.lsm().Waiting()
		most = max(most, count)
		commits++
	})
	_, err = a.Import(from)
	require.NoError(t, err)
	a.index.ended.Wait()
	disk.onRename(nil)
	require.Zero(t, most, "entries in memory")
	require.Greater(t, commits, 3)
	require.NoError(t, r.follower.refresh(r))
	for _, i := range []int{0, n - 1} {
		v, err := r.At(fmt.Sprint("http://in.test/", i), time.Time{})
		require.NoError(t, err)
		require.Equal(t, "x", body(t, r, v))
	}

	// Without an index, a reader reads the imports itself.
	names, err := disk.List()
	require.NoError(t, err)
	require.NoError(t, a.Close())
	for _, name := range names {
		if strings.HasPrefix(name, indexName) {
			require.NoError(t, disk.Remove(name))
		}
	}
	alone, err := follow("/archive", disk, Options{ReadOnly: true})
	require.NoError(t, err)
	defer alone.Close()
	_, err = alone.At("http://in.test/7", time.Time{})
	require.NoError(t, err)
}

// Somebody sets the clock back by hours: the view gets too old by the time that passes, whatever the clock says.
func TestViewsAgeWithoutTheClock(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	r, err := Open(dir, Options{ReadOnly: true})
	require.NoError(t, err)
	require.Less(t, time.Duration(r.follower.due.Load()), time.Hour)
	require.NoError(t, r.Close())
	require.NoError(t, a.Close())
}
