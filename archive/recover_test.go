package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// deadFile returns the name and the bytes of a file that an archive wrote, with three captures, and
// their ends.
func deadFile(t *testing.T) (name string, data []byte, ends []int64) {
	t.Helper()
	dir := t.TempDir()
	a := openDir(t, dir, Options{})
	for i := range 3 {
		loc, err := a.Append(page(fmt.Sprintf("http://a.test/%d", i), strings.Repeat("x", 300)))
		require.NoError(t, err)
		name = loc.File
		ends = append(ends, loc.Offset+loc.Length)
	}
	require.NoError(t, a.Close())
	data, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return name, data, ends
}

// Open cuts off the torn end of a file whose writer crashed, and removes a file without captures.
func TestFilesAfterACrash(t *testing.T) {
	name, data, ends := deadFile(t)
	garbage := bytes.Repeat([]byte("\x00"), 3000)
	second := bytes.Index(data[1:], []byte("\x1f\x8b\x08")) + 1
	for _, tt := range []struct {
		name     string
		data     []byte
		versions int
		left     int64 // size of the file; negative: it is removed
	}{
		{"complete", data, 3, ends[2]},
		{"in the middle of a response", data[:ends[2]-20], 2, ends[1]},
		{"after a request", data[:ends[1]+(ends[2]-ends[1])/2], 2, ends[1]},
		{"in the middle of the first capture", data[:ends[0]-1], 0, -1},
		{"after the warcinfo record", data[:second], 0, -1},
		{"an empty file", nil, 0, -1},
		{"zeros at the end, as in some file systems", slices.Concat(data, garbage), 3, ends[2]},
		{"nothing but zeros", garbage, 0, -1},
		{"damage in a request before the end",
			slices.Concat(data[:ends[0]+9], data[ends[0]+40:]), 3, ends[2] - 31},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(path+unfinished, tt.data, 0o644))
			a := openDir(t, dir, Options{})
			require.Equal(t, tt.versions, a.found.Versions)
			require.NoFileExists(t, path+unfinished)
			if tt.left < 0 {
				require.NoFileExists(t, path)
			} else {
				info, err := os.Stat(path)
				require.NoError(t, err)
				require.Equal(t, tt.left, info.Size())
			}
			require.NoError(t, a.Close())

			a = openDir(t, dir, Options{}) // nothing is left to recover
			require.Zero(t, a.found.Versions)
			require.NoError(t, a.Close())
		})
	}
}

// Files of other programs are never cut or renamed, whatever their ends and names are.
func TestForeignFilesAreNotModified(t *testing.T) {
	_, data, _ := deadFile(t)
	for _, name := range []string{"other.warc.gz", "other.warc.gz" + unfinished,
		"x-20261103-00000.warc.gz.open",
		"spinneret-20261103030506007-00000-nohexnum.warc.gz.open"} {
		dir := t.TempDir()
		torn := data[:len(data)-15]
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), torn, 0o644))
		a := openDir(t, dir, Options{})
		require.Equal(t, 2, a.found.Versions, name)
		require.NoError(t, a.Close())
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(torn, got), name)
	}
}

// Files without the name of a WARC file are ignored.
func TestOtherFilesInTheDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"notes.txt", "warc", "a.warc.gz.bak", "index.bolt.old", ".warc.gz.swp",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("anything"), 0o644))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "directory.warc.gz"), 0o755))
	a := openDir(t, dir, Options{})
	require.Equal(t, Report{}, a.found)
	names, err := a.Files()
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, a.Close())
}

// The pattern of own files matches all names that newName returns, and no others.
func TestOwnNames(t *testing.T) {
	c := &clock{}
	o := &output{finished: warc.Zstd.Extension(), clock: c}
	o.renew()
	last := "spinneret-99991231235959998-00000-1a2b3c4d5e6f.warc.gz" // the clock was wrong once
	c.seen(last + unfinished)
	c.seen("a-b-99991231235959999.warc.gz")
	for i := range 20 {
		o.serial = (20 - i) * 7919
		name := o.newName(time.Now())
		require.Regexp(t, ours, name)
		require.Less(t, last, name, "names sort in the order of creation")
		last = name
	}
	for _, name := range []string{
		"a.warc.gz",
		"a-20261103030506007-00000-1a2b3c4d5e6.warc.gz",
		"a-2026110303050600-00000-1a2b3c4d5e6f.warc.gz",
		"a-20261103030506007-0000-1a2b3c4d5e6f.warc.gz",
		"a-20261103030506007-00000-1A2B3C4D5E6F.warc.gz",
		"a-20261103030506007-00000-1a2b3c4d5e6f.warc.bz2",
	} {
		require.NotRegexp(t, ours, name)
	}
}

// Goroutines iterate over an archive during appends and commits.
func TestIterationDuringAppends(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{MaxFile: 20_000})
	commitAt(a, 15)
	add := func(i int, at time.Time) error {
		v := visit{fmt.Sprintf("http://%d.a.test/d/%d", i%3, i), at, 200, fmt.Sprint(i)}
		_, err := a.Append(v.capture())
		return err
	}
	for i := range 40 {
		require.NoError(t, add(i, someTime))
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 2 {
				n := 0
				for v, err := range a.All() {
					if err == nil {
						_, err = a.Body(v)
					}
					if err != nil {
						t.Error(err)
						return
					}
					if !v.Time.After(someTime) {
						n++
					}
				}
				if n != 40 {
					t.Error(n)
				}
			}
		})
	}
	all.Go(func() {
		for i := range 120 {
			if err := add(40+i, someTime.Add(time.Hour)); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	require.Len(t, validAt(t, a, time.Time{}), 160)
	require.NoError(t, a.Close())
}
