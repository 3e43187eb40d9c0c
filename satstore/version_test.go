package satstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVersionBefore opens and repairs a store that the version before wrote, without the files that
// hold no version, as they are large. Nothing may change it.
func TestVersionBefore(t *testing.T) {
	dir := t.TempDir()
	const from = "testdata/version-3"
	require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	_, err := Open(dir, Options{})
	require.ErrorIs(t, err, ErrVersion)
	require.NotErrorIs(t, err, ErrCorrupt)
	to := filepath.Join(t.TempDir(), "repaired")
	_, err = Repair(dir, to)
	require.ErrorIs(t, err, ErrVersion)
	names, err := os.ReadDir(from)
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		before, err := os.ReadFile(filepath.Join(from, name.Name()))
		require.NoError(t, err)
		after, err := os.ReadFile(filepath.Join(dir, name.Name()))
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
	left, err := filepath.Glob(to + "/*")
	require.NoError(t, err)
	require.LessOrEqual(t, len(left), 1, "no more than a lock: %q", left)
}
