package exact

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOtherWorkingDirectory: a process that changes its working directory writes to the same Set as before.
func TestOtherWorkingDirectory(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	s, err := Open("set", Options{Memory: MinMemory})
	require.NoError(t, err)
	require.NoError(t, os.Mkdir("other", 0o700))
	require.NoError(t, os.Chdir("other"))
	added, err := s.Add("https://a.test/") // the first one creates the log
	require.NoError(t, err)
	require.True(t, added)
	require.NoError(t, s.Close())
	s, err = Open(filepath.Join(root, "set"), Options{Memory: MinMemory})
	require.NoError(t, err)
	added, err = s.Add("https://a.test/")
	require.NoError(t, err)
	require.False(t, added)
	require.NoError(t, s.Close())
}
