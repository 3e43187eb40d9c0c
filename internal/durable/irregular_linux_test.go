package durable_test

import (
	"io/fs"
	"os"
	"path/filepath"
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
