package archive

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// closing counts open files.
type closing struct {
	io.ReaderAt
	open *atomic.Int64
}

func (c closing) Close() error { c.open.Add(-1); return nil }

// Files that are not on a disk are imported, read, and reported as missing like others.
func TestOpenImport(t *testing.T) {
	const name = "mem://somewhere/x.warc.gz"
	local := writeForeign(t, t.TempDir(), "x.warc.gz",
		foreignPage("http://a.test/", someTime, 200, "a page"),
		foreignPage("http://a.test/b", someTime, 200, "another"))
	data, err := os.ReadFile(local)
	require.NoError(t, err)
	var open atomic.Int64
	gone := false
	opts := Options{OpenImport: func(asked string) (io.ReaderAt, int64, error) {
		if asked != name || gone {
			return nil, 0, fmt.Errorf("%s: %w", asked, fs.ErrNotExist)
		}
		open.Add(1)
		return closing{bytes.NewReader(data), &open}, int64(len(data)), nil
	}}
	dir := t.TempDir()
	a := openDir(t, dir, opts)
	found, err := a.Import(name)
	require.NoError(t, err)
	require.Equal(t, 2, found.Versions)
	_, err = a.Import("mem://elsewhere")
	require.ErrorIs(t, err, fs.ErrNotExist)
	for range 2 {
		v, err := a.At("http://a.test/", time.Time{})
		require.NoError(t, err)
		require.Equal(t, name, v.Location.File)
		require.Equal(t, "a page", body(t, a, v))
		n := 0
		for _, err := range a.Records(name) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 2, n)
		_, err = a.Verify(t.Context(), func(f Fault) { t.Error(f) })
		require.NoError(t, err)
		require.Empty(t, a.Missing())
		require.Zero(t, open.Load())
		require.NoError(t, a.Close())
		a = openDir(t, dir, opts)
	}
	gone = true
	require.Equal(t, []string{name}, a.Missing())
	require.NoError(t, a.Close())
	a = openDir(t, dir, Options{})
	require.Equal(t, []string{name}, a.Missing())
	v, err := a.At("http://a.test/", time.Time{})
	require.NoError(t, err)
	_, err = a.Read(v.Content)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "OpenImport")
	require.NoError(t, a.Close())
	list, err := os.ReadFile(filepath.Join(dir, importsName))
	require.NoError(t, err)
	require.Equal(t, name+"\n", string(list))
}
