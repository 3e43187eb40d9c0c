package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
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
	s, err := jet.StartServer(jet.ServerOptions{Dir: t.TempDir(), MaxStore: 48 * jet.DefaultMaxBytes})
	require.NoError(t, err)
	defer s.Close()
	status, out, log := do(t, creation(s.URL())...)
	require.Zero(t, status, log)
	require.Contains(t, out, "seeds: 1")
}

// TestBrokersWithoutRoomSaySo has too little disk space for a crawl, and follows the advice of the
// error.
func TestBrokersWithoutRoomSaySo(t *testing.T) {
	t.Parallel()
	for _, disk := range []int64{256, 1024, 1} {
		t.Run(fmt.Sprint(disk, " MiB"), func(t *testing.T) {
			s, err := jet.StartServer(jet.ServerOptions{Dir: t.TempDir(), MaxStore: disk << 20})
			require.NoError(t, err)
			defer s.Close()
			status, _, log := do(t, creation(s.URL())...)
			require.Equal(t, 1, status)
			made := disk << 20 / jet.DefaultMaxBytes
			require.Contains(t, log, "48 streams of 64 MiB reserve 3072 MiB on each broker")
			require.Contains(t, log, fmt.Sprintf("refused stream %d ", made+1))
			advice := regexp.MustCompile(`-stream-bytes (\d+)`).FindStringSubmatch(log)
			require.NotNil(t, advice, log)
			if size, _ := strconv.ParseInt(advice[1], 10, 64); 48*size > disk<<20 {
				require.Contains(t, log, "raise", "no crawl fits into %d MiB", disk)
				return
			}
			status, _, log = do(t, creation(s.URL(), strings.Fields(advice[0])...)...)
			require.Zero(t, status, log)
			status, out, log := do(t, "status", "-nats", s.URL())
			require.Zero(t, status, log)
			require.Contains(t, out, "48 partitions")
		})
	}
}

// TestThreeBrokersWithoutRoomSaySo is the same with replicas. Such brokers may reserve up to about
// twice the disk space that they have before they reject a stream. The advice is computed from
// their reservations, so it may take a few attempts until a size fits.
func TestThreeBrokersWithoutRoomSaySo(t *testing.T) {
	t.Parallel()
	port := freePorts(t)
	var routes []string
	for i := range brokers {
		routes = append(routes, fmt.Sprintf("127.0.0.1:%d", port+100+i))
	}
	var urls []string
	for i := range brokers {
		s, err := jet.StartServer(jet.ServerOptions{
			Dir: t.TempDir(), Port: port + i, Name: fmt.Sprint("n", i), Cluster: routes[i], Routes: routes,
			MaxStore: 512 << 20,
		})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		urls = append(urls, s.URL())
	}
	on := func(more ...string) (int, string, string) {
		args := []string{"create", "-nats", strings.Join(urls, ","), "-loopback"}
		return do(t, append(append(args, more...), "http://a.test/")...)
	}
	status, _, log := on()
	require.Equal(t, 1, status)
	for attempt := 1; status != 0; attempt++ {
		require.LessOrEqual(t, attempt, 4, log)
		advice := regexp.MustCompile(`-stream-bytes \d+`).FindString(log)
		require.NotEmpty(t, advice, log)
		status, _, log = on(strings.Fields(advice)...)
	}
}

// TestErrorsOfBeginnersSayWhatToDo makes the mistakes that README.md's quick start invites.
func TestErrorsOfBeginnersSayWhatToDo(t *testing.T) {
	t.Parallel()
	s, err := jet.StartServer(jet.ServerOptions{Dir: t.TempDir()})
	require.NoError(t, err)
	defer s.Close()
	status, _, log := do(t, "pause", "-nats", s.URL(), "-crawl", "misspelt")
	require.Equal(t, 1, status)
	require.Contains(t, log,
		`no crawl "misspelt"; create it with "cluster create", or name another with -crawl`)
	status, _, log = do(t, "create", "-nats", s.URL(), "-loopback", "http://a.test/")
	require.Equal(t, 1, status, "one broker cannot store three replicas")
	require.Contains(t, log, "-replicas 1")
	status, _, log = do(t, creation(s.URL())...)
	require.Zero(t, status, log)
	dir := t.TempDir()
	a, err := archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	status, _, log = do(t, "run", "-nats", s.URL(), "-dir", dir)
	require.Equal(t, 1, status)
	require.Contains(t, log, "a directory of its own with -dir")
	status, _, log = do(t, "merge", "-view", t.TempDir(), dir)
	require.Equal(t, 1, status, "the process has not finished any file")
	require.Contains(t, log, `"cluster drain" ends`)
	require.NoError(t, a.Close())
}
