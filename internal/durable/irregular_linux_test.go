package durable_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// Root may be told to write to /dev/null, which must not become a file then.
func TestWriteFileReplacesOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, link, sub := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "sub")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink("pipe", link))
	require.NoError(t, os.Mkdir(sub, 0o700))
	for _, name := range []string{pipe, link, sub} {
		err := durable.WriteFile(name, strings.NewReader("new"))
		require.ErrorContains(t, err, "not a regular file", name)
		require.NotErrorIs(t, err, durable.ErrUnknown, name)
	}
	info, err := os.Lstat(pipe)
	require.NoError(t, err)
	require.Equal(t, fs.ModeNamedPipe, info.Mode().Type())
	require.Equal(t, []string{"link", "pipe", "sub"}, namesIn(t, dir))
}

// A link into a directory that may not be searched, perhaps only for now, leads to a file all the same.
func TestWriteFileKeepsLinksThatItMayNotFollow(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Mkdir(at("closed"), 0o700))
	require.NoError(t, os.WriteFile(at("closed/file"), []byte("old"), 0o600))
	require.NoError(t, os.Symlink("closed/file", at("link")))
	for d := dir; d != os.TempDir() && len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		require.NoError(t, os.Chmod(d, 0o777))
	}
	written := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		if os.Getuid() == 0 {
			_ = syscall.Setfsuid(65534) // of this thread: root may search everything
		} else {
			_ = os.Chmod(at("closed"), 0)
		}
		written <- durable.WriteFile(at("link"), strings.NewReader("new"))
	}()
	require.ErrorIs(t, <-written, fs.ErrPermission)
	require.NoError(t, os.Chmod(at("closed"), 0o700))
	requireContent(t, "old", at("link"))
	require.Equal(t, []string{"closed", "link"}, namesIn(t, dir))
}
