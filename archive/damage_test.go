package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// compressions are those of a file, with the options for them.
var compressions = map[string]Options{
	"gzip": {Level: 6}, "zstd": {Compression: warc.Zstd}, "stored": {Level: -1},
}

// Each bit of a record is flipped. A body is then right, or there is an error.
func TestBodyIsVerified(t *testing.T) {
	text := strings.Repeat("some text ", 20)
	for name, opts := range compressions {
		for head, stored := range map[string][]byte{
			"Content-Type: text/plain":   []byte(text),
			"Transfer-Encoding: chunked": []byte(text),
			"Content-Encoding: gzip":     gzipped(t, []byte(text)),
		} {
			t.Run(name+" "+head, func(t *testing.T) {
				dir := t.TempDir()
				a := openDir(t, dir, opts)
				_, err := a.Append(Capture{URL: "http://a.test/", Time: someTime, Body: stored,
					Head: []byte("HTTP/1.1 200 OK\r\n" + head + "\r\n\r\n")})
				require.NoError(t, err)
				v, err := a.At("http://a.test/", time.Time{})
				require.NoError(t, err)
				require.NoError(t, a.Close())
				path := filepath.Join(dir, v.Content.File)
				whole, err := os.ReadFile(path)
				require.NoError(t, err)
				a = openDir(t, dir, opts)
				for bit := v.Content.Offset * 8; bit < int64(len(whole))*8; bit++ {
					data := bytes.Clone(whole)
					data[bit/8] ^= 1 << (bit % 8)
					require.NoError(t, os.WriteFile(path, data, 0o600))
					if body, err := a.Body(v); err == nil {
						require.Equal(t, text, string(body), "bit %d", bit)
					}
				}
			})
		}
	}
}

// One bit of a file is flipped, anywhere. Only the version whose record it hits is lost, whether the
// file was finished, or its writer crashed.
func TestOneBitLosesOneRecord(t *testing.T) {
	const pages = 12
	for name, opts := range compressions {
		for _, ending := range []string{"", unfinished} {
			t.Run(name+ending, func(t *testing.T) {
				dir := t.TempDir()
				a := openDir(t, dir, opts)
				var file string
				for i := range pages {
					loc, err := a.Append(page(fmt.Sprint("http://a.test/", i), strings.Repeat("x", 50)))
					require.NoError(t, err)
					file = loc.File
				}
				require.NoError(t, a.Close())
				whole, err := os.ReadFile(filepath.Join(dir, file))
				require.NoError(t, err)
				stride := max(len(whole)*8/400, 1)
				for bit := 0; bit < len(whole)*8; bit += stride + bit%7 {
					data := bytes.Clone(whole)
					data[bit/8] ^= 1 << (bit % 8)
					dir := t.TempDir()
					require.NoError(t, os.WriteFile(filepath.Join(dir, file+ending), data, 0o600))
					requireAllButOne(t, dir, pages, bit)
					size, err := os.Stat(filepath.Join(dir, file))
					require.NoError(t, err)
					require.InDelta(t, len(whole), size.Size(), float64(len(whole)/pages*2),
						"bit %d: intact captures were cut off", bit)
				}
			})
		}
	}
}

func requireAllButOne(t *testing.T, dir string, pages, bit int) {
	for _, opts := range []Options{{}, {Reindex: true}} { // what check recommends loses nothing either
		a := openDir(t, dir, opts)
		readable := 0
		for i := range pages {
			v, err := a.At(fmt.Sprint("http://a.test/", i), time.Time{})
			if err == nil {
				_, err = a.Body(v)
			}
			if err == nil {
				readable++
			}
		}
		require.GreaterOrEqual(t, readable, pages-1, "bit %d: %+v", bit, a.Recovered())
		require.NoError(t, a.Close())
	}
}

// A file without its first record, or with others before it, is not worth less than the rest of it.
func TestFirstRecordsAreLost(t *testing.T) {
	name, data, ends := deadFile(t)
	second := bytes.Index(data[1:], []byte("\x1f\x8b\x08")) + 1
	for what, left := range map[string][]byte{
		"cut":     data[second:],
		"zeros":   append(make([]byte, second), data[second:]...),
		"swapped": append(bytes.Repeat([]byte("x"), 100), data[ends[0]:]...),
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+unfinished), left, 0o600))
		a := openDir(t, dir, Options{})
		want := 3
		if what == "swapped" {
			want = 2
		}
		require.Equal(t, want, a.Recovered().Versions, what)
	}
}

// Captures that the index lacks are no sound file.
func TestVerifyFindsUnindexedCaptures(t *testing.T) {
	name, data, _ := deadFile(t)
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600)) // after Open
	faults := 0
	_, err := a.Verify(t.Context(), func(f Fault) {
		require.ErrorIs(t, f.Err, errNoEntry)
		faults++
	})
	require.NoError(t, err)
	require.Equal(t, 3, faults)
}

// Faults come in pairs: a write fails, and then the truncation. What Sync said is on disk is there
// after a power failure.
func TestSyncOfAnAbandonedFile(t *testing.T) {
	for _, second := range []string{"sync", ""} {
		a, m := openMemory(t, Options{})
		_, err := a.Append(page("http://a.test/acknowledged", ""))
		require.NoError(t, err)
		m.set(100, map[string]error{"truncate": errDisk, second: errDisk})
		_, err = a.Append(page("http://a.test/torn", strings.Repeat("x", 1000)))
		require.Error(t, err)
		m.set(-1, nil)
		if second == "sync" {
			require.ErrorIs(t, a.Sync(), errDisk)
			require.ErrorIs(t, a.Sync(), errDisk, "it is still not synced")
			require.ErrorIs(t, a.files.force(), errDisk, "nor may the index rely on it")
			continue
		}
		require.Positive(t, countOps(m.log, "sync"), "a file is synced before it is abandoned")
		require.NoError(t, a.Sync())
	}
}
