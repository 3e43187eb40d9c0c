package satstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOtherWorkingDirectory: a process that changes its working directory writes to the same store as before,
// and not to another one of that name.
func TestOtherWorkingDirectory(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	require.NoError(t, os.MkdirAll("other", 0o700))
	first, err := Open("pages", logged())
	require.NoError(t, err)
	mustAdd(t, first, "first", 5, "x")
	require.NoError(t, os.Chdir("other"))
	second, err := Open("pages", logged())
	require.NoError(t, err)
	mustAdd(t, second, "second", 5, "x")
	require.NoError(t, second.Close())
	require.NoError(t, first.Close())
	for dir, id := range map[string]string{"pages": "first", filepath.Join("other", "pages"): "second"} {
		s, err := Open(filepath.Join(root, dir), logged())
		require.NoError(t, err)
		require.NoError(t, s.Check())
		require.Equal(t, map[string]string{id: "5 x"}, contents(t, s))
		require.NoError(t, s.Close())
	}
}
