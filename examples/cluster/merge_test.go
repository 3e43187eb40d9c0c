package main

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
)

// TestOneViewHasWhatAllProcessesFetched kills one of the processes; its files must be in the view.
func TestOneViewHasWhatAllProcessesFetched(t *testing.T) {
	t.Parallel()
	_, urls := lone(t, t.TempDir(), 0)
	tr := begin(t, urls, 1)
	one, two := tr.member(t, "one"), tr.member(t, "two")
	tr.seed(t, "one", "two")
	tr.waitFor(t, len(tr.reachable())/3)
	one.kill()
	tr.finish(t)
	dirs := []string{one.dir(), two.dir()}
	view := filepath.Join(t.TempDir(), "view")
	merge := func() string {
		status, _, log := do(t, append([]string{"merge", "-view", view}, dirs...)...)
		require.Zero(t, status, log)
		return log
	}
	require.Contains(t, merge(), "still writing the last file")
	status, _, log := do(t, "drain", "-nats", urls)
	require.Zero(t, status, log)
	require.NoError(t, two.Wait())
	require.Empty(t, merge())

	a, err := archive.Open(view, archive.Options{})
	require.NoError(t, err)
	for _, url := range tr.reachable() {
		versions, err := a.Versions(url)
		require.NoError(t, err)
		require.NotEmpty(t, versions, url)
		record, err := a.Read(versions[0].Content)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, record)
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
}
