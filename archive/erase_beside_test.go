package archive

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// The shortest records of ours have room for what replaces them.
func TestEraseOfShortRecords(t *testing.T) {
	for _, c := range []warc.Compression{warc.Gzip, warc.Zstd} {
		for _, level := range []int{-1, 0, 1, 4} {
			for _, text := range []string{"", "x"} {
				a, err := OpenOn(vfs.NewMem(), Options{Compression: c, NoBlockDigest: true, Level: level})
				require.NoError(t, err)
				for i := range 3 {
					_, err := a.Append(Capture{URL: "http://a.test/", Time: someTime.Add(time.Duration(i) * time.Hour).Truncate(time.Second),
						Head: []byte("HTTP/1.1 204 No Content\r\n\r\n"), Body: []byte(text)})
					require.NoError(t, err)
				}
				report, err := a.Erase(t.Context(), Selection{URL: "http://a.test/"}, "asked for")
				require.NoError(t, err, "%v %d %q", c, level, text)
				require.Equal(t, 3, report.Erased)
				faults, _ := verify(t, a)
				require.Empty(t, faults)
				require.NoError(t, a.Close())
			}
		}
	}
}

// uncut is a disk that cannot cut a file while it fails.
type uncut struct {
	*vfs.Mem
	fails atomic.Bool
}

// uncutFile is a file there.
type uncutFile struct {
	vfs.File
	disk *uncut
}

// Create implements vfs.FS.
func (u *uncut) Create(name string) (vfs.File, error) {
	f, err := u.Mem.Create(name)
	return uncutFile{f, u}, err
}

// Truncate implements vfs.File.
func (f uncutFile) Truncate(size int64) error {
	if f.disk.fails.Load() {
		return syscall.EIO
	}
	return f.File.Truncate(size)
}

// A file keeps its torn end after two faults, and loses it at the next Open. Nothing is erased before that, and what
// an erasure has kept does not change after it.
func TestErasureFromATornFile(t *testing.T) {
	disk := &uncut{Mem: vfs.NewMem()}
	finished := map[string]bool{}
	opts := Options{Compressors: 1, Finished: func(path string) {
		finished[path] = exists(disk, filepath.Base(path))
	}}
	a, err := OpenOn(disk, opts)
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://a.test/", "secret", 1))
	require.NoError(t, appendText(a, "http://b.test/", "kept", 1))
	disk.fails.Store(true)
	disk.SetSpace(disk.Used() + 300)
	require.Error(t, appendText(a, "http://c.test/", strings.Repeat("torn", 1000), 1))
	disk.fails.Store(false)
	disk.SetSpace(-1)
	require.NoError(t, appendText(a, "http://c.test/", "again", 1))
	_, err = a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
	require.ErrorIs(t, err, errUnfinished)
	require.ErrorContains(t, err, unfinished+":")
	require.Equal(t, 3, requireBodies(t, a))
	require.NoError(t, a.Close())
	a, err = OpenOn(disk, opts)
	require.NoError(t, err)
	_, err = a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
	require.NoError(t, err)
	require.NotEmpty(t, finished)
	for path, there := range finished {
		require.True(t, there, path)
	}
	for range 2 {
		faults, _ := verify(t, a)
		require.Empty(t, faults)
		require.NoError(t, a.Close())
		a, err = OpenOn(disk, Options{Compressors: 1})
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
}

// Close returns when the erasure has stopped: the next process completes it, and may be killed at any
// step. Before the last file is written anew, Erase reports that it was closed.
func TestCloseWaitsForAnErasure(t *testing.T) {
	for k := 1; k < 30; k += 3 {
		disk := &beside{Mem: vfs.NewMem()}
		opts := Options{Compressors: 1, Level: -1, MaxFile: 1000}
		a, err := OpenOn(disk, opts)
		require.NoError(t, err)
		for i := range 10 {
			require.NoError(t, appendText(a, fmt.Sprint("http://b.test/", i), "kept", 1))
			require.NoError(t, appendText(a, fmt.Sprint("http://a.test/", i), "secret", 1))
		}
		require.NoError(t, a.Sync())
		var closed sync.WaitGroup
		var begun atomic.Bool
		disk.onRename(func(to string) {
			if to == eraseName && begun.CompareAndSwap(false, true) {
				closed.Go(func() {
					require.NoError(t, a.Close())
					disk.FailAt(disk.Steps()+k, vfs.ErrPower)
					_, _ = OpenOn(disk.Mem, opts)
					disk.FailAt(0)
				})
				for !a.files.isClosed() {
					time.Sleep(time.Millisecond)
				}
			}
		})
		_, err = a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
		require.ErrorIs(t, err, ErrClosed)
		closed.Wait()
		a, err = OpenOn(disk.Mem.Clone(), opts)
		require.NoError(t, err)
		require.Equal(t, 10, requireBodies(t, a), "step %d", k)
		faults, _ := verify(t, a)
		require.Empty(t, faults, "step %d", k)
		requireNoLeftovers(t, a.fs)
		require.NoError(t, a.Close())
	}
}

// A snapshot from before an erasure never takes the place of a record that has moved or was erased for a page.
func TestSnapshotsBesideAnErasure(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{Share: true})
	text := strings.Repeat("shared text ", 200)
	require.NoError(t, appendText(a, "http://a.test/gone", text, 1))
	require.NoError(t, appendText(a, "http://b.test/kept", text, 2))
	r := openDir(t, dir, Options{ReadOnly: true})
	var before []*Snapshot
	for _, by := range []*Archive{a, r} {
		s, err := by.Snapshot(Query{})
		require.NoError(t, err)
		defer s.Close()
		before = append(before, s)
	}
	_, err := a.Erase(t.Context(), Selection{Host: "a.test"}, "asked for")
	require.NoError(t, err)
	for _, s := range before {
		for d, err := range s.Documents() {
			require.NoError(t, err)
			_, err := d.Record()
			require.ErrorIs(t, err, ErrNotFound)
		}
		for result, err := range s.Scan(t.Context(), scan.Filter("cat"), scan.Options{}) {
			require.NoError(t, err)
			require.Error(t, result.Err)
		}
	}
}

// What an erasure has moved comes before later versions of its URL, whatever the clock said, and whether
// or not the index is made anew.
func TestMovedVersionsKeepTheirPlace(t *testing.T) {
	disk := vfs.NewMem()
	opts := Options{Share: true, Level: -1}
	a, err := OpenOn(disk, opts)
	require.NoError(t, err)
	ahead := int(time.Since(someTime)/time.Hour) + 2 // of the clock
	shared := strings.Repeat("shared ", 200)
	require.NoError(t, appendText(a, "http://b.test/", shared, ahead))
	require.NoError(t, appendText(a, "http://a.test/", "before", ahead+1))
	require.NoError(t, appendText(a, "http://a.test/", shared, ahead+2))
	_, err = a.Append(visit{"http://a.test/", someTime.Add(time.Duration(ahead+3) * time.Hour), 404, "gone"}.capture())
	require.NoError(t, err)
	_, err = a.Erase(t.Context(), Selection{Host: "b.test"}, "asked for")
	require.NoError(t, err)
	require.NoError(t, a.Close())
	_, err = RepairOn(disk, opts)
	require.NoError(t, err)
	a, err = OpenOn(disk, opts)
	require.NoError(t, err)
	_, err = a.Append(visit{"http://a.test/", someTime.Add(time.Duration(ahead+5) * time.Hour), 304, ""}.capture())
	require.NoError(t, err)
	v, err := a.At("http://a.test/", time.Time{})
	require.NoError(t, err)
	require.Equal(t, shared, body(t, a, v))
	require.NoError(t, a.Close())
}

// strained is a disk that cannot read a part of a file.
type strained struct {
	*vfs.Mem
	name     string
	from, to int64
}

// strainedFile is a file there.
type strainedFile struct {
	vfs.File
	disk *strained
	name string
}

// Open implements vfs.FS.
func (s *strained) Open(name string) (vfs.File, error) {
	f, err := s.Mem.Open(name)
	if err != nil {
		return nil, err
	}
	return strainedFile{f, s, name}, nil
}

// ReadAt implements io.ReaderAt.
func (f strainedFile) ReadAt(p []byte, at int64) (int, error) {
	d := f.disk
	if f.name != d.name || at >= d.to || at+int64(len(p)) <= d.from {
		return f.File.ReadAt(p, at)
	}
	n, _ := f.File.ReadAt(p[:max(d.from-at, 0)], at)
	return n, syscall.EIO
}

// A sector that cannot be read is reported, and all other files are there, also without the index. When
// it can be read again, nothing is lost. Meanwhile nothing is erased: it might be there.
func TestUnreadableSector(t *testing.T) {
	disk := &strained{Mem: vfs.NewMem()}
	opts := Options{Compressors: 1, Level: -1, MaxFile: 20_000}
	a, err := OpenOn(disk, opts)
	require.NoError(t, err)
	for i := range 60 {
		require.NoError(t, appendText(a, fmt.Sprint("http://b.test/", i), strings.Repeat("x", 500), 1))
	}
	v, err := a.At("http://b.test/5", time.Time{})
	require.NoError(t, err)
	require.NoError(t, a.Close())
	disk.name, disk.from, disk.to = v.Location.File, v.Location.Offset, v.Location.Offset+100
	a, err = OpenOn(disk, opts)
	require.NoError(t, err)
	faults, checked := verify(t, a)
	require.Equal(t, 60, checked.Versions)
	for _, f := range faults {
		require.Equal(t, disk.name, f.File)
		require.ErrorIs(t, f.Err, syscall.EIO)
	}
	require.Len(t, faults, 2, "the file, and the version there")
	_, err = a.Erase(t.Context(), Selection{URL: "http://b.test/59"}, "asked for")
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, disk.name)
	require.NoError(t, a.Close())

	report, err := RepairOn(disk, opts)
	require.NoError(t, err)
	require.Len(t, report.Damage, 1)
	require.ErrorIs(t, report.Damage[0].Err, syscall.EIO)
	disk.name = ""
	a, err = OpenOn(disk, opts)
	require.NoError(t, err)
	require.Equal(t, 60, requireBodies(t, a))
	require.NoError(t, a.Close())
}

// A file that a crash has left, and a disk that cannot read all of it, is not cut.
func TestUnreadableEndIsNotCut(t *testing.T) {
	disk := &strained{Mem: vfs.NewMem()}
	a, err := OpenOn(disk, Options{Level: -1})
	require.NoError(t, err)
	var last Location
	for i := range 5 {
		last, err = a.Append(page(fmt.Sprint("http://b.test/", i), "x"))
		require.NoError(t, err)
	}
	require.NoError(t, a.Sync())
	disk = &strained{Mem: disk.Crash(rand.New(rand.NewPCG(1, 1)))}
	disk.name, disk.from, disk.to = last.File+unfinished, last.Offset, last.Offset+10
	b, err := OpenOn(disk, Options{Level: -1})
	require.NoError(t, err)
	require.NotZero(t, b.Recovered().Faults)
	require.NoError(t, b.Close())
	disk.name = ""
	b, err = OpenOn(disk, Options{Level: -1})
	require.NoError(t, err)
	require.Equal(t, 5, requireBodies(t, b))
	require.NoError(t, b.Close())
}

// Records and Verify of a reader go as far as it knows the files, while they are finished and new ones
// begin. What somebody puts there is not read before it is indexed.
func TestReadersBesideRotations(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{MaxFile: 1})
	require.NoError(t, appendText(a, "http://b.test/1", "x", 1))
	r := openDir(t, dir, Options{ReadOnly: true})
	r.follower.due.Store(math.MaxInt64) // the view stays as it is
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a-foreign.warc.gz"), nil, 0o600))
	require.NoError(t, appendText(a, "http://b.test/2", "x", 1))
	require.NoError(t, appendText(a, "http://b.test/3", "x", 1))
	for _, by := range []*Archive{r, a} {
		n := 0
		for rec, err := range by.Records() {
			require.NoError(t, err)
			if rec.Type() == "response" {
				n++
			}
		}
		require.Equal(t, map[*Archive]int{r: 1, a: 3}[by], n)
		faults, _ := verify(t, by)
		require.Empty(t, faults)
	}
}

func TestImportOfOwnFileThroughALink(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{MaxFile: 1})
	require.NoError(t, appendText(a, "http://b.test/", "x", 1))
	require.NoError(t, appendText(a, "http://b.test/", "y", 2))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	_, err := a.Import(filepath.Join(link, filepath.Base(warcNames(t, dir)[0])))
	require.ErrorContains(t, err, "belongs to it already")
}

// Nothing is erased either if the disk could not read all of the file of a crashed writer, whether it can
// now or not: captures that are not indexed may be there.
func TestNoErasureOfAFileThatOpenCouldNotRead(t *testing.T) {
	for _, sector := range []int{0, 2} {
		disk := &strained{Mem: vfs.NewMem()}
		a, err := OpenOn(disk, Options{Level: -1})
		require.NoError(t, err)
		var at []Location
		for i := range 5 {
			loc, err := a.Append(page(fmt.Sprint("http://b.test/", i), "secret"))
			require.NoError(t, err)
			at = append(at, loc)
		}
		require.NoError(t, a.Sync())
		disk = &strained{Mem: disk.Crash(rand.New(rand.NewPCG(1, 1)))}
		disk.name, disk.from, disk.to = at[0].File+unfinished, at[sector].Offset, at[sector].Offset+10
		a, err = OpenOn(disk, Options{Level: -1})
		require.NoError(t, err)
		_, err = a.Erase(t.Context(), Selection{Host: "b.test"}, "asked for")
		require.ErrorContains(t, err, at[0].File)
		disk.name = ""
		_, err = a.Erase(t.Context(), Selection{Host: "b.test"}, "asked for")
		require.ErrorContains(t, err, at[0].File)
		require.NoError(t, a.Close())
		a, err = OpenOn(disk, Options{Level: -1})
		require.NoError(t, err)
		report, err := a.Erase(t.Context(), Selection{Host: "b.test"}, "asked for")
		require.NoError(t, err)
		require.Equal(t, 5, report.Erased)
		require.NoError(t, a.Close())
	}
}

// A reader says what the disk could not read, and looks at it again, also if the file is finished.
func TestReaderOfAFileThatPassinglyFails(t *testing.T) {
	disk := &strained{Mem: vfs.NewMem()}
	a, err := OpenOn(disk, Options{Level: -1, MaxFile: 1, Compressors: 1})
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://b.test/0", "x", 1))
	require.NoError(t, a.Sync())
	r, err := follow("/archive", disk, Options{ReadOnly: true})
	require.NoError(t, err)
	loc, err := a.Append(page("http://b.test/1", "x"))
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://b.test/2", "x", 1))
	disk.name, disk.from, disk.to = loc.File, 0, 1<<20
	require.NoError(t, r.follower.refresh(r))
	r.follower.due.Store(math.MaxInt64)
	require.ErrorIs(t, r.Stats().Index, syscall.EIO)
	require.ErrorContains(t, r.Stats().Index, loc.File)
	_, err = r.At("http://b.test/2", time.Time{})
	require.NoError(t, err, "of another file")
	disk.name = ""
	clear(r.follower.again)
	require.NoError(t, r.follower.refresh(r))
	r.follower.due.Store(math.MaxInt64)
	require.NoError(t, r.Stats().Index)
	_, err = r.At("http://b.test/1", time.Time{})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, a.Close())
}

// rationed is a disk that fails to open one WARC file, that after so many.
type rationed struct {
	*vfs.Mem
	left atomic.Int64
}

// Open implements vfs.FS.
func (r *rationed) Open(name string) (vfs.File, error) {
	if isWARC(name) && r.left.Add(-1) == 0 {
		return nil, syscall.EMFILE
	}
	return r.Mem.Open(name)
}

// A body that could not be looked at once is not taken for one that is lost.
func TestEraseWhileFilesCannotBeOpened(t *testing.T) {
	hour := func(n int) time.Time { return wholeSecond.Add(time.Duration(n) * time.Hour) }
	done := 0
	for k := int64(1); done < 3; k++ { // of the last ones, none is left to fail
		disk := &rationed{Mem: vfs.NewMem()}
		var file bytes.Buffer
		encodeAll(t, &file, warc.Gzip, response("http://c.test/", hour(1), okHead+"body"),
			revisitOf("http://b.test/", hour(2), warc.ProfileIdentical, "http://c.test/", hour(1), sha1Of([]byte("body")), okHead),
			revisitOf("http://a.test/", hour(3), warc.ProfileIdentical, "http://b.test/", hour(2), sha1Of([]byte("body")), okHead))
		disk.Put("foreign.warc.gz", file.Bytes())
		a, err := OpenOn(disk, Options{})
		require.NoError(t, err)
		disk.left.Store(k)
		_, err = a.Erase(t.Context(), Selection{From: hour(1), To: hour(2)}, "asked for")
		if disk.left.Store(0); err == nil {
			done++
		}
		require.NoError(t, a.Close())
		a, err = OpenOn(disk, Options{}) // completes what was planned
		require.NoError(t, err)
		v, err := a.At("http://a.test/", hour(3))
		require.NoError(t, err)
		require.Equal(t, "body", body(t, a, v), k)
		require.NoError(t, a.Close())
	}
}

// growing is a disk on which another program appends to a file when that is opened for the last of so many times.
type growing struct {
	*vfs.Mem
	name string
	more []byte
	left atomic.Int64
}

// Open implements vfs.FS.
func (g *growing) Open(name string) (vfs.File, error) {
	if name == g.name && g.left.Add(-1) == 0 {
		g.Put(name, append(bytes.Clone(g.Data(name)), g.more...))
	}
	return g.Mem.Open(name)
}

// A file to which another program writes meanwhile is named, and nothing is erased. What was appended after the
// decision stays.
func TestEraseOfAFileThatGrows(t *testing.T) {
	var file, more bytes.Buffer
	encodeAll(t, &file, warc.Gzip, response("http://gone.test/", minuteOf(1), okHead+strings.Repeat("secret ", 100)),
		response("http://kept.test/", minuteOf(2), okHead+"kept"))
	encodeAll(t, &more, warc.Gzip, response("http://later.test/", minuteOf(3), okHead+"later"))
	refused := 0
	for k, grown := int64(1), true; grown; k++ {
		disk := &growing{Mem: vfs.NewMem(), name: "foreign.warc.gz", more: more.Bytes()}
		disk.Put(disk.name, file.Bytes())
		a, err := OpenOn(disk, Options{})
		require.NoError(t, err)
		disk.left.Store(k)
		_, err = a.Erase(t.Context(), Selection{Host: "gone.test"}, "asked for")
		grown = disk.left.Load() <= 0
		if disk.left.Store(0); err != nil {
			refused++
			require.ErrorIs(t, err, errChanged)
			require.ErrorContains(t, err, disk.name)
			requireNoLeftovers(t, disk)
			require.Equal(t, 2, requireBodies(t, a))
			_, err = a.Erase(t.Context(), Selection{Host: "gone.test"}, "asked for")
			require.NoError(t, err)
		}
		require.NoError(t, a.Close())
		a, err = OpenOn(disk, Options{})
		require.NoError(t, err)
		requireNowhere(t, a, "secret")
		require.Equal(t, 1+min(1, max(0, len(disk.Data(disk.name))-file.Len())), requireBodies(t, a))
		faults, _ := verify(t, a)
		require.Empty(t, faults, "open %d", k)
		require.NoError(t, a.Close())
	}
	require.NotZero(t, refused)
}
