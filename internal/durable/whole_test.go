package durable_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// namesIn returns the names of the files in a directory.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func write(t *testing.T, name, content string) {
	t.Helper()
	require.NoError(t, durable.WriteFile(name, strings.NewReader(content)))
}

func requireContent(t *testing.T, want, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, want, string(b))
}

// A name may be what another file's temporary name looks like.
func TestWriteFileLeavesOtherFilesAlone(t *testing.T) {
	dir := t.TempDir()
	names := []string{"seen", "seen.0123abcd", "seen.20261126.new.new", "seen.new"}
	for _, name := range []int{3, 2, 1, 0} {
		write(t, filepath.Join(dir, names[name]), names[name])
	}
	require.Equal(t, names, namesIn(t, dir))
	for _, name := range names {
		requireContent(t, name, filepath.Join(dir, name))
	}
}

// blocks writes its content in pieces, and meets the others between them.
type blocks struct {
	fill  byte
	n     int
	ready *sync.WaitGroup
}

func (b blocks) WriteTo(w io.Writer) (total int64, err error) {
	b.ready.Done()
	b.ready.Wait()
	for range b.n {
		n, err := w.Write(bytes.Repeat([]byte{b.fill}, 1<<10))
		if total += int64(n); err != nil {
			return total, err
		}
	}
	return total, nil
}

func TestSeveralWritersOfOneFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	for range 10 {
		var ready, done sync.WaitGroup
		const writers = 4
		ready.Add(writers)
		errs := make([]error, writers)
		for i := range writers {
			done.Go(func() { errs[i] = durable.WriteFile(name, blocks{'a' + byte(i), 10 + i, &ready}) })
		}
		done.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(bytes.Repeat(b[:1], (10+int(b[0]-'a'))<<10)), string(b), "one of them, whole")
		require.Equal(t, []string{"a"}, namesIn(t, dir))
	}
}

// TestWriteFileFollowsLinks follows chains of them to files that exist. One that leads nowhere is replaced.
func TestWriteFileFollowsLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and modes are other things there")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
	require.NoError(t, os.MkdirAll(at("disk", "data"), 0o700))
	for name, to := range map[string]string{
		"direct": "disk/data/file", "absolute": at("disk", "data", "file"), "chain": "direct",
		"through": "data/../file", "data": "disk/data", "circle": "circle", "lost": "no/such/dir/file",
	} {
		require.NoError(t, os.Symlink(to, at(name)))
	}
	for _, tt := range []struct{ name, file string }{
		{"direct", at("disk", "data", "file")}, {"absolute", at("disk", "data", "file")},
		{"chain", at("disk", "data", "file")}, {"through", at("disk", "file")},
	} {
		require.NoError(t, os.WriteFile(tt.file, []byte("old"), 0o600))
		for _, content := range []string{"new", "again"} {
			write(t, at(tt.name), content)
			requireContent(t, content, tt.file)
			info, err := os.Lstat(at(tt.name))
			require.NoError(t, err)
			require.Equal(t, fs.ModeSymlink, info.Mode().Type(), "%s stays", tt.name)
		}
	}
	require.Equal(t, []string{"data", "file"}, namesIn(t, at("disk")))
	require.NoError(t, os.Remove(at("disk", "file")))
	write(t, dir+"/data/../file", "file")
	requireContent(t, "file", at("disk", "file"))
	for _, name := range []string{"circle", "lost"} {
		write(t, at(name), "file")
		requireContent(t, "file", at(name))
	}
}

func TestWriteFileKeepsTheMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and modes are other things there")
	}
	name := filepath.Join(t.TempDir(), "a")
	mode := func() fs.FileMode {
		info, err := os.Stat(name)
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	write(t, name, "new")
	require.Equal(t, fs.FileMode(0o600), mode())
	require.NoError(t, os.Chmod(name, 0o640))
	write(t, name, "again")
	require.Equal(t, fs.FileMode(0o640), mode())
}

// Only what WriteFile itself has left is removed: the name is compared as it is written, and its
// ending has eight hexadecimal digits.
func TestRemoveStale(t *testing.T) {
	for _, remove := range []func(name string){
		durable.RemoveStale,
		func(name string) { write(t, name, "new"); require.NoError(t, os.Remove(name)) },
	} {
		dir := t.TempDir()
		now := time.Now()
		others := []string{
			"a-b.0123abcd.new", "a[b", "a[b.0123abc.new", "a[b.0123abcd0.new", "a[b.20261126.news",
			"a[b.ABCDEF01.new", "a[b.archived.new", "a[b.new", "a[b.personal.new", "axb.0123abcd.new",
		}
		for _, name := range append([]string{"a[b.0123abcd.new", "a[b.00000000.new"}, others...) {
			path := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			require.NoError(t, os.Chtimes(path, now, now.Add(-time.Hour)))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a[b.11111111.new"), nil, 0o600)) // being written
		require.NoError(t, os.Mkdir(filepath.Join(dir, "a[b.22222222.new"), 0o700))
		require.NoError(t, os.Chtimes(filepath.Join(dir, "a[b.22222222.new"), now, now.Add(-time.Hour)))
		remove(filepath.Join(dir, "other"))
		require.Len(t, namesIn(t, dir), len(others)+4)
		require.NoError(t, os.Remove(filepath.Join(dir, "a[b")))
		remove(filepath.Join(dir, "a[b"))
		left := append([]string{"a[b.11111111.new", "a[b.22222222.new"}, others...)
		require.ElementsMatch(t, left, append(namesIn(t, dir), "a[b"))
	}
}
