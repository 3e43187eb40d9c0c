package archive_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/export"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// history is a model of the operations on an archive.
type history struct {
	bodies   map[string]string // by URL and time of the version, acknowledged or not
	pending  []string          // keys of versions that were acknowledged, but not yet synced
	safe     map[string]bool   // keys of versions that must survive a power failure
	imported string            // path of a file of another program
	foreign  bool              // the import was acknowledged
}

var powerTime = time.Date(2026, 11, 3, 4, 5, 6, 0, time.UTC)

func keyOf(url string, at time.Time) string { return url + " " + at.Format(time.RFC3339Nano) }

var powerOptions = archive.Options{
	MaxFile: 5000, SyncEvery: 3000, Level: -1, Compressors: 1, Share: true,
}

// visit appends a version of a page. Bodies repeat, under the same URL and others.
func (h *history) visit(a *archive.Archive, i int) error {
	url := fmt.Sprintf("http://%d.test/", i%4)
	at := powerTime.Add(time.Duration(i) * time.Minute)
	body := strings.Repeat(fmt.Sprint("body ", i/3%4), 300)
	h.bodies[keyOf(url, at)] = body
	_, err := a.Append(archive.Capture{URL: url, Time: at, Body: []byte(body),
		Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")})
	if err == nil {
		h.pending = append(h.pending, keyOf(url, at))
	}
	return err
}

func (h *history) synced() {
	for _, key := range h.pending {
		h.safe[key] = true
	}
	h.pending = nil
}

// live opens an archive, appends, syncs, commits its index, imports and closes it, twice.
func (h *history) live(files vfs.FS) error {
	for round := range 2 {
		a, err := archive.OpenOn(files, powerOptions)
		if err != nil {
			return err
		}
		if err := errors.Join(h.use(a, round), a.Close()); err != nil {
			return err
		}
		h.synced()
	}
	return nil
}

func (h *history) use(a *archive.Archive, round int) error {
	for i := range 14 {
		if err := h.visit(a, round*14+i); err != nil {
			return err
		}
		var err error
		switch i {
		case 3, 8, 11:
			err = a.Commit()
		case 5:
			if err = a.Sync(); err == nil {
				h.synced()
			}
		case 9:
			if _, err = a.Import(h.imported); err == nil {
				h.foreign = true
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func newHistory(t testing.TB) *history {
	h := &history{bodies: map[string]string{}, safe: map[string]bool{},
		imported: filepath.Join(t.TempDir(), "x.warc.gz")}
	var out bytes.Buffer
	enc, err := warc.NewEncoder(warc.EncoderOptions{})
	require.NoError(t, err)
	_, _, err = enc.Encode(&out, &warc.Head{Type: "resource", Date: powerTime,
		ContentType: "text/plain", TargetURI: "http://foreign.test/"}, []byte("foreign"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.imported, out.Bytes(), 0o644))
	h.bodies[keyOf("http://foreign.test/", powerTime)] = "foreign"
	return h
}

// requireKept requires that the archive has all safe versions with their bodies, that it has no
// version that was never appended, and that index and files agree.
func (h *history) requireKept(t testing.TB, a *archive.Archive) {
	t.Helper()
	found, without := map[string]bool{}, map[string]bool{}
	for v, err := range a.All() {
		require.NoError(t, err)
		key := keyOf(v.URL, v.Time)
		want, known := h.bodies[key]
		require.True(t, known, "%s was never appended", key)
		require.False(t, found[key], "%s is duplicated", key)
		if v.Content == (archive.Location{}) {
			require.False(t, h.safe[key], "the body of %s is lost", key)
			without[v.URL] = true
			continue // it repeats a version that was lost
		}
		require.Equal(t, want, bodyOf(t, a, v), key)
		found[key] = true
	}
	for key := range h.safe {
		require.True(t, found[key], "%s is lost", key)
	}
	if h.foreign {
		require.True(t, found[keyOf("http://foreign.test/", powerTime)])
	}
	_, err := a.Verify(t.Context(), func(f archive.Fault) {
		// A hole in the part that was not synced is reported as damage, and so is each version that
		// lost its body. Any other fault would be an error of the index.
		if without[f.URL] && strings.Contains(f.Err.Error(), "missing body") {
			return
		}
		require.ErrorIs(t, f.Err, warc.ErrDamaged)
		require.NotEmpty(t, a.Recovered().Damage)
	})
	require.NoError(t, err)
}

func bodyOf(t testing.TB, a *archive.Archive, v archive.Version) string {
	rec, err := a.Read(v.Content)
	require.NoError(t, err)
	var body []byte
	if strings.HasPrefix(rec.Get("Content-Type"), "application/http") {
		message, err := rec.HTTP()
		require.NoError(t, err)
		body, err = io.ReadAll(message.Body)
		require.NoError(t, err)
	} else if body, err = io.ReadAll(rec); err != nil {
		require.NoError(t, err)
	}
	require.NoError(t, rec.Close())
	return string(body)
}

// The power fails at any step of appends, file changes, syncs, commits, an import and a restart.
// All synced versions are kept, index, files and exports agree, and the archive is writable.
func TestPowerFailure(t *testing.T) {
	whole := vfs.NewMem()
	h := newHistory(t)
	require.NoError(t, h.live(whole))
	require.Len(t, h.safe, 28)
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for step := 1; step <= whole.Steps(); step += stride {
		files := vfs.NewMem()
		files.FailAt(step, vfs.ErrPower)
		h := newHistory(t)
		_ = h.live(files)
		for seed := range uint64(2) {
			found := files.Crash(rand.New(rand.NewPCG(seed, uint64(step))))
			a, err := archive.OpenOn(found, powerOptions)
			require.NoError(t, err, "step %d seed %d", step, seed)
			h.requireKept(t, a)
			if step%11 == 0 {
				requireExports(t, a)
			}
			after := newHistory(t)
			require.NoError(t, after.visit(a, 1000))
			require.NoError(t, a.Close())
			a, err = archive.OpenOn(found, powerOptions)
			require.NoError(t, err)
			require.Zero(t, a.Recovered().Versions, "everything was recovered before")
			_, err = a.At("http://0.test/", powerTime.Add(1000*time.Minute))
			require.NoError(t, err)
			require.NoError(t, a.Close())
		}
	}
}

// The power fails at any step of a repair. Nothing is lost, and the next repair finds everything.
func TestPowerFailureOfRepair(t *testing.T) {
	made := vfs.NewMem()
	h := newHistory(t)
	require.NoError(t, h.live(made))
	whole := made.Clone()
	before := whole.Steps()
	_, err := archive.RepairOn(whole, powerOptions)
	require.NoError(t, err)
	for step := before + 1; step <= whole.Steps(); step++ {
		files := made.Clone()
		files.FailAt(step, vfs.ErrPower)
		_, _ = archive.RepairOn(files, powerOptions)
		for seed := range uint64(2) {
			found := files.Crash(rand.New(rand.NewPCG(seed, uint64(step))))
			a, err := archive.OpenOn(found, powerOptions)
			require.NoError(t, err, "step %d", step)
			h.requireKept(t, a)
			require.NoError(t, a.Close())
			report, err := archive.RepairOn(found, powerOptions)
			require.NoError(t, err)
			require.Equal(t, 29, report.Versions)
			require.Empty(t, report.Damage)
		}
	}
}

// requireExports requires that each line of an exported index refers to a record of its URL.
func requireExports(t *testing.T, a *archive.Archive) {
	var out bytes.Buffer
	require.NoError(t, export.WACZ(&out, a, export.Options{}))
	z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, z))
	index, err := os.ReadFile(filepath.Join(dir, "indexes", "index.cdxj"))
	require.NoError(t, err)
	for line := range strings.Lines(string(index)) {
		var fields map[string]string
		require.NoError(t, json.Unmarshal([]byte(strings.SplitN(line, " ", 3)[2]), &fields))
		f, err := os.Open(filepath.Join(dir, "archive", fields["filename"]))
		require.NoError(t, err)
		var offset, length int64
		_, err = fmt.Sscan(fields["offset"]+" "+fields["length"], &offset, &length)
		require.NoError(t, err)
		r := warc.NewReader(nil, warc.ReaderOptions{Verify: true})
		r.ResetAt(f, offset, length)
		rec, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, fields["url"], rec.Fields().URI("WARC-Target-URI"))
		require.NoError(t, rec.Close())
		require.NoError(t, f.Close())
	}
}
