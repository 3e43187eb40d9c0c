package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

func TestCommandCrawlsItsOwnWeb(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "on", "demand")
	var out, log bytes.Buffer
	require.Zero(t, command(t.Context(), []string{"-delay", "1ms", "-out", dir}, &out, &log), log.String())
	for _, want := range []string{
		"nothing left to fetch", "pages ", "bytes ", "hosts  ", "40 known; in this run 25 addresses", "politeness",
		filepath.Join(dir, "spinneret-"), stage.Disallowed.String(), string(stage.Duplicate),
		stage.Listed.String(),
	} {
		require.Contains(t, out.String(), want)
	}
	require.Greater(t, len(readArchive(t, dir)), 2*300)
	out.Reset()
	require.Zero(t, command(t.Context(), []string{"-delay", "1ms", "-out", dir}, &out, &log), log.String())
	require.Contains(t, out.String(), "-fresh starts over", "a second run tells why it ends")
}

func TestCommandReportsWriteErrors(t *testing.T) {
	t.Parallel()
	file := write(t, "")
	var log bytes.Buffer
	require.Equal(t, 1, command(t.Context(), []string{"-out", filepath.Join(file, "crawl")}, io.Discard, &log))
	require.Contains(t, log.String(), file)
}

// TestCommandReportsWhyNothingWasFetched: the summary has a failure, so the user need not search
// the ledger.
func TestCommandReportsWhyNothingWasFetched(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	var out, log bytes.Buffer
	seed := "http://" + l.Addr().String() + "/"
	require.Equal(t, 1, command(t.Context(), []string{"-wait", "0", "-out", t.TempDir(), seed}, &out, &log))
	require.Contains(t, log.String(), "no seed has answered")
	require.Regexp(t, `failed +`+seed+`: .*connection refused`, out.String())
	require.Contains(t, out.String(), "fates of 1 visit\n")
	require.NotContains(t, out.String(), "links not followed")
}

// The port of the README's first command is often taken.
func TestCommandsSayThatThePortIsTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"-out", dir, "-listen", l.Addr().String()},
		{"-out", dir, "-delay", "1ms", "-pages", "1"}, // for an archive to serve
		{"serve", "-out", dir, "-listen", l.Addr().String()},
	} {
		var log bytes.Buffer
		if command(t.Context(), args, io.Discard, &log) == 0 {
			require.Equal(t, "-pages", args[4])
			continue
		}
		require.Contains(t, log.String(), "-listen: listen tcp "+l.Addr().String())
		require.Contains(t, log.String(), "choose another address")
	}
}

// A dead proxy interrupts every visit: that is not the sites' fault, but has to be said.
func TestConcludeNamesLocalTrouble(t *testing.T) {
	web := serve(t, webtest.Options{Hosts: 1, Pages: 1})
	c, err := newCrawler(testConfig(t, web), on(web))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.close()) }()
	c.Tally.End("http://a.test/", stage.Interrupted, "proxy: connection refused")
	var out bytes.Buffer
	require.NoError(t, c.Conclude(&out, nil))
	require.Contains(t, out.String(), "http://a.test/: proxy: connection refused")
}

func TestProgressAndSizes(t *testing.T) {
	web := serve(t, webtest.Options{Hosts: 1, Pages: 5})
	c := crawlWeb(t, web, testConfig(t, web))
	require.Contains(t, c.Progress(), fmt.Sprintf("%d pages", len(web.Reachable())))

	var log bytes.Buffer
	c.ShowProgress(&log)()
	require.Empty(t, strings.TrimSpace(log.String()), "a log file gets few progress lines")

	for bytes, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 KB", 1_234_567: "1.2 MB", 5_000_000_000_000_000: "5000.0 TB",
	} {
		require.Equal(t, want, cockpit.Size(bytes))
	}
}

// TestAFullMachineIsAFailure: a supervisor starts the crawl again. A limit that the user has set, or
// an interrupt, is no reason to.
func TestAFullMachineIsAFailure(t *testing.T) {
	t.Parallel()
	status, output := run(t, "-min-free", "1000TB", "-forever", "-out", t.TempDir())
	require.Equal(t, 1, status)
	require.Contains(t, output, "disk nearly full")
	require.Contains(t, output, "the same command resumes the crawl")

	c := crawledByRank(t)
	for end, want := range map[error]int{
		cockpit.ErrDiskLimit: 1, cockpit.ErrMemoryLimit: 1, io.ErrUnexpectedEOF: 1,
		cockpit.ErrPageLimit: 0, cockpit.ErrByteLimit: 0, cockpit.ErrTimeLimit: 0, cockpit.ErrStopped: 0,
	} {
		err := c.Conclude(io.Discard, fmt.Errorf("ended: %w", end))
		require.Equal(t, want, cockpit.Exit(io.Discard, err), end)
	}
}
