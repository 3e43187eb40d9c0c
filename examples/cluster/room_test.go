package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
)

// creation returns the command line that creates a small crawl.
func creation(urls string, more ...string) []string {
	return append([]string{"create", "-nats", urls, "-replicas", "1", "-loopback"},
		append(more, "http://a.test/")...)
}

// TestTheDefaultCrawlFitsOnALaptop gives a broker the disk space stated in OPERATING.md.
func TestTheDefaultCrawlFitsOnALaptop(t *testing.T) {
	t.Parallel()
	url := inside(t, jet.DefaultMaxBytes+1<<20)
	status, out, log := do(t, creation(url)...)
	require.Zero(t, status, log)
	require.Contains(t, out, "seeds: 1")
}

// TestBrokersWithoutRoomSaySo has too little disk space for a crawl, and follows the advice of the
// error.
func TestBrokersWithoutRoomSaySo(t *testing.T) {
	t.Parallel()
	url := inside(t, 256<<20)
	status, _, log := do(t, creation(url)...)
	require.Equal(t, 1, status)
	require.Contains(t, log, "the stream reserves 3072 MiB on each")
	require.Contains(t, log, "give a smaller -stream-bytes")
	status, _, log = do(t, creation(url, "-stream-bytes", "100000000")...)
	require.Zero(t, status, log)
	status, out, log := do(t, "status", "-nats", url)
	require.Zero(t, status, log)
	require.Contains(t, out, "48 partitions")
}

// TestErrorsOfBeginnersSayWhatToDo makes the mistakes that README.md's quick start invites.
func TestErrorsOfBeginnersSayWhatToDo(t *testing.T) {
	t.Parallel()
	url := inside(t, 0)
	status, _, log := do(t, "pause", "-nats", url, "-crawl", "misspelt")
	require.Equal(t, 1, status)
	require.Contains(t, log,
		`no crawl "misspelt"; create it with "cluster create", or name another with -crawl`)
	status, _, log = do(t, "create", "-nats", url, "-loopback", "http://a.test/")
	require.Equal(t, 1, status, "one broker cannot store three replicas")
	require.Contains(t, log, "-replicas 1")
	status, _, log = do(t, creation(url, "-stream-bytes", "100000000", "-waiting", "1000000")...)
	require.Equal(t, 2, status)
	require.Contains(t, log, "want at least 256000000, or a smaller -waiting")
	status, _, log = do(t, creation(url)...)
	require.Zero(t, status, log)
	dir := t.TempDir()
	a, err := archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	status, _, log = do(t, "run", "-nats", url, "-dir", dir)
	require.Equal(t, 1, status)
	require.Contains(t, log, "a directory of its own with -dir")
	status, _, log = do(t, "merge", "-view", t.TempDir(), dir)
	require.Equal(t, 1, status, "the process has not finished any file")
	require.Contains(t, log, `"cluster drain" ends`)
	require.NoError(t, a.Close())
}
