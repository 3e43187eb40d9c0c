package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

	"github.com/spinneret-go/spinneret/archive/internal/lsm"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// From and To may be finer than the times of versions.
func TestEraseBetweenFinerTimes(t *testing.T) {
	for _, limit := range []struct {
		s    Selection
		gone int
	}{{Selection{From: wholeSecond.Add(1)}, 0}, {Selection{To: wholeSecond.Add(1)}, 1}} {
		a := openDir(t, t.TempDir(), Options{})
		_, err := a.Append(visit{"http://a.test/", wholeSecond, 200, "text"}.capture())
		require.NoError(t, err)
		requireErased(t, a, limit.s, limit.gone)
	}
}

// Versions that an erasure has moved can be read, here and by a reader: each of several of one instant has its
// own body.
func TestVersionsMovedByAnErasure(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir, Options{Share: true})
	texts := func(i int) string { return strings.Repeat(fmt.Sprint("text ", i), 300) }
	put := func(url, request, text string, at time.Time) {
		_, err := a.Append(Capture{URL: url, Time: at, Request: []byte(request + " / HTTP/1.1\r\n\r\n"), Body: []byte(text),
			Head: []byte("HTTP/1.1 200 OK\r\nETag: \"" + text[:6] + "\"\r\n\r\n")})
		require.NoError(t, err)
	}
	for i := range 3 {
		put(fmt.Sprint("http://gone.test/", i), "GET", texts(i), minuteOf(1))
	}
	for i, method := range []string{"GET", "GET", "POST"} {
		put("http://kept.test/", method, texts(i), minuteOf(2))
	}
	reader := openDir(t, dir, Options{ReadOnly: true})
	_, err := a.Erase(t.Context(), Selection{Host: "gone.test"}, "asked for")
	require.NoError(t, err)
	require.NoError(t, reader.follower.refresh(reader))
	for _, by := range []*Archive{a, reader} {
		i := -1
		for v, err := range by.All() {
			require.NoError(t, err)
			i++
			text, err := by.Body(v)
			require.NoError(t, err)
			require.Equal(t, texts(i), string(text))
			etag, _, err := by.Validators(v)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%q", texts(i)[:6]), etag)
			resp, err := by.Response(v)
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, texts(i), string(got))
			require.Equal(t, v.Method, resp.Request.Method)
			require.NoError(t, resp.Body.Close())
		}
		require.Equal(t, 2, i)
	}
}

// shortOfFiles is a disk of which one open fails.
type shortOfFiles struct {
	*vfs.Mem
	left atomic.Int64
}

// Open implements vfs.FS.
func (s *shortOfFiles) Open(name string) (vfs.File, error) {
	if s.left.Add(-1) == 0 {
		return nil, syscall.EMFILE
	}
	return s.Mem.Open(name)
}

// The file of moved records gets its name, or the erasure fails: a new index would take it for a leftover.
func TestEraseOutOfDescriptors(t *testing.T) {
	for k, done := int64(1), false; !done; k++ {
		disk := &shortOfFiles{Mem: vfs.NewMem()}
		a, err := OpenOn(disk, Options{Compressors: 1, Share: true})
		require.NoError(t, err)
		text := strings.Repeat("shared ", 300)
		require.NoError(t, appendText(a, "http://gone.test/", text, 1))
		require.NoError(t, appendText(a, "http://kept.test/", text, 2))
		disk.left.Store(k)
		_, err = a.Erase(t.Context(), Selection{Host: "gone.test"}, "asked for")
		done = disk.left.Load() > 0
		disk.left.Store(0)
		_ = a.Close()
		a, failed := OpenOn(disk, Options{})
		require.NoError(t, failed)
		require.NoError(t, a.Close())
		_, failed = RepairOn(disk, Options{})
		require.NoError(t, failed)
		a, failed = OpenOn(disk, Options{})
		require.NoError(t, failed)
		v, failed := a.At("http://kept.test/", time.Time{})
		require.NoError(t, failed, "open %d: %v", k, err)
		require.Equal(t, text, body(t, a, v), "open %d: %v", k, err)
		require.NoError(t, a.Close())
	}
}

// The index turns out to be damaged when files are written anew. The next Open makes it anew.
func TestIndexIsDamagedDuringAnErasure(t *testing.T) {
	disk := &beside{Mem: vfs.NewMem()}
	a, err := OpenOn(disk, Options{Compressors: 1, Share: true})
	require.NoError(t, err)
	text := strings.Repeat("shared ", 300)
	require.NoError(t, appendText(a, "http://gone.test/", text, 1))
	require.NoError(t, appendText(a, "http://kept.test/", text, 2))
	require.NoError(t, a.Commit())
	var done atomic.Bool
	disk.onRename(func(to string) {
		if !strings.HasSuffix(to, ".warc.gz") || len(disk.Data(to)) == 0 || !done.CompareAndSwap(false, true) {
			return
		}
		names, err := disk.Mem.List()
		require.NoError(t, err)
		for _, name := range names {
			for i := range disk.Data(name) {
				if strings.HasPrefix(name, indexName+"-") {
					disk.Flip(name, int64(i), 3)
				}
			}
		}
		_, err = a.At("http://kept.test/", time.Time{})
		require.ErrorIs(t, err, ErrIndex)
	})
	_, err = a.Erase(t.Context(), Selection{Host: "gone.test"}, "asked for")
	require.NoError(t, err)
	disk.onRename(nil)
	require.True(t, done.Load())
	_ = a.Close()
	for range 2 {
		a, err = openOrRebuild("/archive", disk, Options{})
		require.NoError(t, err)
		require.Equal(t, 1, requireBodies(t, a))
		faults, _ := verify(t, a)
		require.Empty(t, faults)
		require.NoError(t, a.Close())
	}
}

// The process ends at any step, and the index is made anew from files of before and after.
func TestErasureIsCompletedWithANewIndex(t *testing.T) {
	text := strings.Repeat("shared ", 300)
	for k, failed := 1, true; failed; k++ {
		disk := vfs.NewMem()
		a, err := OpenOn(disk, Options{Compressors: 1, Share: true, MaxFile: 1})
		require.NoError(t, err)
		for i, method := range []string{"GET", "GET", "POST", "POST"} {
			_, err := a.Append(Capture{URL: []string{"http://gone.test/", "http://kept.test/"}[min(i, 1)], Time: minuteOf(i),
				Request: []byte(method + " / HTTP/1.1\r\n\r\n"), Head: []byte(okHead), Body: []byte(text)})
			require.NoError(t, err)
		}
		require.NoError(t, a.Commit())
		disk.FailAt(disk.Steps()+k, vfs.ErrPower)
		_, err = a.Erase(t.Context(), Selection{Host: "gone.test"}, "asked for")
		failed = err != nil
		disk = disk.Clone()
		_ = a.Close()
		_, err = RepairOn(disk, Options{})
		require.NoError(t, err)
		a, err = OpenOn(disk, Options{})
		require.NoError(t, err)
		n := requireBodies(t, a)
		require.True(t, n == 4 && failed || n == 3, "step %d: %d", k, n)
		faults, _ := verify(t, a)
		require.Empty(t, faults, "step %d", k)
		require.NoError(t, a.Close())
	}
}

// A page whose only record is damaged has a name in the index.
func TestEraseOfADamagedRecord(t *testing.T) {
	disk := vfs.NewMem()
	a, err := OpenOn(disk, Options{Level: -1})
	require.NoError(t, err)
	loc, err := a.Append(Capture{URL: "http://secret.test/name", Time: someTime, Head: []byte(okHead), Body: []byte("x")})
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://b.test/", "x", 1))
	require.NoError(t, a.Close())
	disk.Flip(loc.File, loc.Offset+loc.Length-3, 1)
	a, err = OpenOn(disk, Options{Level: -1})
	require.NoError(t, err)
	report, err := a.Erase(t.Context(), Selection{Host: "secret.test"}, "asked for")
	require.NoError(t, err)
	require.Equal(t, 1, report.Faults)
	_, err = a.At("http://secret.test/name", time.Time{})
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, a.Close())
	names, err := disk.List()
	require.NoError(t, err)
	for _, name := range names {
		require.False(t, strings.HasPrefix(name, indexName) && bytes.Contains(disk.Data(name), []byte("secret")), name)
	}
}

// Whether a record fits in the place of another one does not change after an erasure was decided.
func TestFillersAreTheSameEachTime(t *testing.T) {
	filled := 0
	for length := int64(150); length < 320; length += 3 {
		f := &filler{erasure: &erasure{ID: warc.NewID(), Time: someTime}, name: "a.warc.gz"}
		h := hole{7 * length, length}
		file := bytes.NewReader(append(make([]byte, h.Offset), "\x1f\x8b\x08\x00"...))
		var want bytes.Buffer
		failed := f.hole(&want, file, h)
		if failed == nil {
			filled++
			require.EqualValues(t, length, want.Len())
		}
		for range 2 {
			var got bytes.Buffer
			err := f.hole(&got, file, h)
			require.Equal(t, failed, err, length)
			require.Equal(t, want.Bytes(), got.Bytes())
		}
	}
	require.Greater(t, filled, 30)
}

// An erasure closes the index before it, and look-ups beside it go on in the new one.
func TestErasuresKeepNoOldIndex(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	for i := range 50 {
		require.NoError(t, appendText(a, fmt.Sprint("http://gone.test/", i), "x", 1))
	}
	require.NoError(t, appendText(a, "http://kept.test/", "x", 1))
	var ended atomic.Bool
	var group sync.WaitGroup
	failed := make(chan error, 4)
	for range cap(failed) {
		group.Go(func() {
			for !ended.Load() {
				_, err := a.At("http://kept.test/", time.Time{})
				versions, failing := a.Versions("http://kept.test/")
				if err = errors.Join(err, failing); err != nil || len(versions) != 1 {
					failed <- fmt.Errorf("%d versions: %w", len(versions), err)
					return
				}
			}
		})
	}
	for i := range 20 {
		before := a.index.lsm()
		_, err := a.Erase(t.Context(), Selection{URL: fmt.Sprint("http://gone.test/", i)}, "asked for")
		require.NoError(t, err)
		require.ErrorIs(t, before.Around(new(lsm.Neighbors), []byte("x"), 1), lsm.ErrClosed)
	}
	ended.Store(true)
	group.Wait()
	select {
	case err := <-failed:
		require.NoError(t, err)
	default:
	}
}

// The last change before a version is as the captures came, unless versions of its URL go.
func TestEraseLeavesOtherURLsAlone(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	put := func(url string, n, status int, text string) {
		_, err := a.Append(visit{url, minuteOf(n), status, text}.capture())
		require.NoError(t, err)
	}
	put("http://gone.test/", 1, 200, "x")
	put("http://b.test/", 10, 200, "one")
	put("http://b.test/", 12, 304, "")
	put("http://b.test/", 11, 200, "two") // its worker was slower
	_, err := a.Erase(t.Context(), Selection{Host: "gone.test"}, "asked for")
	require.NoError(t, err)
	put("http://b.test/", 13, 304, "")
	v, err := a.At("http://b.test/", time.Time{})
	require.NoError(t, err)
	require.Equal(t, "one", body(t, a, v))
}

// A large hole gets several records, which any reader can read.
func TestFillersOfAnySize(t *testing.T) {
	for _, c := range []warc.Compression{warc.Gzip, warc.Zstd, warc.None} {
		var first bytes.Buffer
		encodeAll(t, &first, c, response("http://a.test/", wholeSecond, okHead))
		for _, length := range []int64{1 << 10, maxFiller - 1, maxFiller, maxFiller + 1, 2*maxFiller - 1<<10, 3 * maxFiller, 1<<20 + 7} {
			file := append(first.Bytes()[:first.Len():first.Len()], make([]byte, length)...)
			f := &filler{erasure: &erasure{ID: warc.NewID(), Time: someTime}, name: "a" + c.Extension()}
			var filled bytes.Buffer
			require.NoError(t, f.hole(&filled, bytes.NewReader(file), hole{0, length}))
			require.EqualValues(t, length, filled.Len())
			r := warc.NewReader(&filled, warc.ReaderOptions{Verify: true})
			end := int64(0)
			for rec, err := range r.Records() {
				require.NoError(t, err)
				require.True(t, isHole(rec))
				require.Equal(t, end, rec.Offset)
				require.NoError(t, rec.Close())
				end += rec.Length
			}
			require.Equal(t, length, end, "%v", c)
			r.Close()
		}
	}
}

// Two captures of a file with large bodies go, one after the other.
func TestEraseOfLargeBodies(t *testing.T) {
	for _, c := range []warc.Compression{warc.Gzip, warc.Zstd} {
		a, err := OpenOn(vfs.NewMem(), Options{Compression: c})
		require.NoError(t, err)
		random := rand.New(rand.NewPCG(1, 1))
		for i := range 3 {
			text := make([]byte, 300_000)
			for k := range text {
				text[k] = byte(random.Uint32())
			}
			require.NoError(t, appendText(a, fmt.Sprint("http://a.test/", i), string(text), 1))
		}
		for i := range 2 {
			report, err := a.Erase(t.Context(), Selection{URL: fmt.Sprint("http://a.test/", i)}, "asked for")
			require.NoError(t, err)
			require.Equal(t, 1, report.Erased)
			faults, _ := verify(t, a)
			require.Empty(t, faults)
		}
		require.Equal(t, 1, requireBodies(t, a))
		require.NoError(t, a.Close())
	}
}

// TestAFileThatChangesBeforeAnErasureIsCompleted: the process has ended after its plan was on disk, and
// another program has written a file anew. The error's advice leads to an archive without faults.
func TestAFileThatChangesBeforeAnErasureIsCompleted(t *testing.T) {
	disk := &beside{Mem: vfs.NewMem()}
	var file bytes.Buffer
	write := func() {
		file.Reset()
		encodeAll(t, &file, warc.Gzip, response("http://gone.test/x", minuteOf(1), okHead+"shared body"),
			response("http://other.test/", minuteOf(2), okHead+"other"),
			revisitOf("http://stays.test/", minuteOf(3), warc.ProfileIdentical, "http://gone.test/x", minuteOf(1), "", okHead))
	}
	write()
	disk.Put("foreign.warc.gz", bytes.Clone(file.Bytes()))
	a, err := OpenOn(disk, Options{Compressors: 1})
	require.NoError(t, err)
	var killed *vfs.Mem
	disk.onRename(func(to string) {
		if to == "index.manifest" && killed == nil && exists(disk.Mem, eraseName) {
			killed = disk.Mem.Clone()
		}
	})
	_, err = a.Erase(t.Context(), Selection{Host: "gone.test"}, "asked for")
	require.NoError(t, err)
	require.NotNil(t, killed)
	write() // with other IDs
	killed.Put("foreign.warc.gz", file.Bytes())
	_, err = openOrRebuild("/archive", killed, Options{Compressors: 1})
	require.ErrorContains(t, err, "Reindex")
	require.NoError(t, killed.Remove(eraseName))
	for range 2 {
		a, err = reindex("/archive", killed, Options{Compressors: 1})
		require.NoError(t, err)
		versions, err := a.Versions("http://stays.test/")
		require.NoError(t, err)
		require.Len(t, versions, 1)
		faults, _ := verify(t, a)
		require.Empty(t, faults)
		_, err = a.Erase(t.Context(), Selection{Host: "gone.test"}, "asked for")
		require.NoError(t, err)
		require.NoError(t, a.Close())
	}
}

// A 304 is appended during an erasure of what it confirms, and a new index is made before that is completed.
func TestErasureOfWhatALater304Confirms(t *testing.T) {
	disk := vfs.NewMem()
	ctx, cancel := context.WithCancel(t.Context())
	a, err := OpenOn(disk, Options{Finished: func(name string) {
		if exists(disk, eraseName) {
			cancel()
		}
	}})
	require.NoError(t, err)
	require.NoError(t, appendText(a, "http://a.test/", "secret", 1))
	_, err = a.Erase(ctx, Selection{URL: "http://a.test/"}, "asked for")
	require.ErrorIs(t, err, context.Canceled)
	_, err = a.Append(visit{"http://a.test/", someTime.Add(2 * time.Hour), 304, ""}.capture())
	require.NoError(t, err)
	require.NoError(t, a.Close())
	a, err = reindex("/archive", disk, Options{})
	require.NoError(t, err)
	v, err := a.At("http://a.test/", time.Time{})
	require.NoError(t, err)
	require.Zero(t, v.Content)
	require.Empty(t, v.Digest())
	faults, _ := verify(t, a)
	require.Empty(t, faults)
	require.NoError(t, a.Close())
}

// Metadata about what is being erased are refused, and others are not.
func TestMetadataDuringAnErasure(t *testing.T) {
	var a *Archive
	var gone, kept Location
	refused := 0
	a = openDir(t, t.TempDir(), Options{Finished: func(string) {
		if !a.Erasing() {
			return
		}
		_, err := a.AppendMetadata(gone, warc.Field{Name: "text", Value: "secret"})
		require.ErrorIs(t, err, ErrNotFound)
		refused++
		_, err = a.AppendMetadata(kept, warc.Field{Name: "text", Value: "kept"})
		require.NoError(t, err)
	}})
	gone, err := a.Append(page("http://a.test/", "secret"))
	require.NoError(t, err)
	kept, err = a.Append(page("http://b.test/", "kept"))
	require.NoError(t, err)
	_, err = a.Erase(t.Context(), Selection{URL: "http://a.test/"}, "asked for")
	require.NoError(t, err)
	require.NotZero(t, refused)
	requireNowhere(t, a, "secret")
}

// An erasure that another version has begun, in a plan that this one cannot read, is not taken for none.
func TestPlanOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	plan := filepath.Join(dir, "erase.json")
	require.NoError(t, os.WriteFile(plan, []byte("{}"), 0o600))
	_, err := Open(dir, Options{})
	require.ErrorIs(t, err, ErrVersion)
	require.FileExists(t, plan)
}
