package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		"nothing left to fetch", "pages ", "bytes ", "hosts  ", "40 on 25 addresses", "politeness",
		filepath.Join(dir, "spinneret-"), string(stage.Disallowed), string(stage.Duplicate),
		string(stage.Listed),
	} {
		require.Contains(t, out.String(), want)
	}
	require.Greater(t, len(readArchive(t, dir)), 2*300)
	out.Reset()
	require.Zero(t, command(t.Context(), []string{"-delay", "1ms", "-out", dir}, &out, &log), log.String())
	require.Contains(t, out.String(), "-fresh begins anew", "a second run says why it does nothing")
}

func TestCommandSaysWhenItCannotWrite(t *testing.T) {
	t.Parallel()
	file := write(t, "")
	var log bytes.Buffer
	require.Equal(t, 1, command(t.Context(), []string{"-out", filepath.Join(file, "crawl")}, io.Discard, &log))
	require.Contains(t, log.String(), file)
}

// TestFullDisk limits the size of files in a process of its own, which to a program looks like a
// disk that fills up in the middle of a write.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("CRAWL_ON_FULL_DISK"); dir != "" {
		crawlOnFullDisk(t, dir)
		return
	}
	t.Parallel()
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$")
	child.Env = append(os.Environ(), "CRAWL_ON_FULL_DISK="+dir)
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "%v: %s", err, out)
	require.Equal(t, 1, exit.ExitCode(), "%s", out)
	require.Contains(t, string(out), "file too large")
	require.Contains(t, string(out), string(stage.Unstored))
	require.Contains(t, string(out), string(stage.LeftOver))

	records := readArchive(t, dir)
	require.Greater(t, len(records), 10, "what was fetched before is there")
}

// crawlOnFullDisk is what the child does. The limit comes when the store has its files.
func crawlOnFullDisk(t *testing.T, dir string) {
	web := serve(t, webtest.Options{Seed: 1, Hosts: 20, Pages: 20})
	cfg := testConfig(t, web)
	cfg.out, cfg.delay = dir, time.Millisecond
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	limitFileSize(t, 100_000)
	if err := c.conclude(os.Stdout, c.run(t.Context())); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func TestProgressAndSizes(t *testing.T) {
	web := serve(t, webtest.Options{Hosts: 1, Pages: 5})
	c := crawlWeb(t, web, testConfig(t, web))
	require.Contains(t, c.progress(), fmt.Sprintf("%d pages", len(web.Reachable())))

	var log bytes.Buffer
	c.showProgress(&log)()
	require.Empty(t, strings.TrimSpace(log.String()), "a file gets a line only now and then")

	for bytes, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 KB", 1_234_567: "1.2 MB", 5_000_000_000_000_000: "5000.0 TB",
	} {
		require.Equal(t, want, size(bytes))
	}
}
