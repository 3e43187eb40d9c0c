package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	status, out, log := do(t, "archives", "-nats", urls)
	require.Zero(t, status, log)
	var dirs []string
	for line := range strings.Lines(out) {
		dirs = append(dirs, strings.Split(line, "\t")[1])
	}
	require.Len(t, dirs, 2)
	view := filepath.Join(t.TempDir(), "view")
	merge := func() string {
		status, _, log := do(t, append([]string{"merge", "-view", view}, dirs...)...)
		require.Zero(t, status, log)
		return log
	}
	require.Contains(t, merge(), "still writing the last file")
	status, _, log = do(t, "drain", "-nats", urls)
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

	index := filepath.Join(t.TempDir(), "all.cdxj")
	status, _, log = do(t, "export", "-view", view, index)
	require.Zero(t, status, log)
	lines, err := os.ReadFile(index)
	require.NoError(t, err)
	require.GreaterOrEqual(t, strings.Count(string(lines), "\n"), len(tr.reachable()))

	c := start(t, nil, "serve", "-view", view, "-listen", "127.0.0.1:0")
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(c.line(t))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	status, _, log = do(t, "serve", "-view", filepath.Join(view, "none"))
	require.Equal(t, 1, status)
	require.Contains(t, log, "cluster merge")
}
