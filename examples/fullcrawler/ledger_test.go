package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// lines returns the lines of the ledger's file.
func lines(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, cockpit.LedgerName))
	require.NoError(t, err)
	return strings.SplitAfter(string(text), "\n")
}

func TestLinesAreInTheFileAfterAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l, err := cockpit.OpenLedger(dir, 0)
		require.NoError(t, err)
		for n := range 3 {
			require.NoError(t, l.Write("http://a.test/", stage.Fetched, "", "", time.Time{}))
			time.Sleep(time.Second / 2)
			require.NoError(t, l.Write("http://b.test/", stage.Fetched, "a\tb\r\nc", "train-ai=n", time.Now().Add(time.Hour)))
			require.Len(t, lines(t, dir), 2*n+1, "lines are buffered")
			require.NoError(t, l.Flush())
			require.Len(t, lines(t, dir), 2*n+3)
		}
		require.JSONEq(t, `{"time": "2000-01-01T00:00:00.5Z", "fate": "fetched", "says": "fetched", "signals": "train-ai=n", "url": "http://b.test/",
			"why": "a\tb\r\nc", "next": "2000-01-01T01:00:00.5Z"}`, lines(t, dir)[1])
		require.NoError(t, l.Write("http://c.test/", stage.Fetched, "", "", time.Time{}))
		require.NoError(t, l.Close())
		require.Len(t, lines(t, dir), 8)
	})
}

func TestAnIncompleteLineIsCutOff(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for text, want := range map[string][]string{
		"":                 {""},
		"whole\n":          {"whole\n", ""},
		"whole\nhal":       {"whole\n", ""},
		"hal":              {""},
		long:               {""},
		"whole\n" + long:   {"whole\n", ""},
		long + "\n" + long: {long + "\n", ""},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, cockpit.LedgerName), []byte(text), 0o666))
		for range 2 {
			l, err := cockpit.OpenLedger(dir, 0)
			require.NoError(t, err)
			require.NoError(t, l.Close())
		}
		require.Equal(t, want, lines(t, dir))
	}
}

// TestNoLedgerReplacesAnother: the file is renamed twice in a millisecond.
func TestNoLedgerReplacesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l, err := cockpit.OpenLedger(dir, 1)
		require.NoError(t, err)
		for n := range 3 {
			require.NoError(t, l.Write(fmt.Sprintf("http://a.test/%d", n), stage.Fetched, "", "", time.Time{}))
			require.NoError(t, l.Flush())
		}
		require.NoError(t, l.Close())
		files, err := filepath.Glob(filepath.Join(dir, "fates-*"))
		require.NoError(t, err)
		require.Len(t, files, 3)
	})
}

// TestAKilledCrawlLeavesItsLedger kills a crawl that has written a few lines and waits for an hour:
// they do not fill a buffer.
func TestAKilledCrawlLeavesItsLedger(t *testing.T) {
	if dir := os.Getenv("CRAWL_TO_BE_KILLED"); dir != "" {
		os.Exit(command(t.Context(), []string{"-delay", "1h", "-out", dir}, os.Stdout, os.Stderr))
	}
	t.Parallel()
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAKilledCrawlLeavesItsLedger$")
	child.Env = append(os.Environ(), "CRAWL_TO_BE_KILLED="+dir)
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	require.NoError(t, child.Start())
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		text, _ := os.ReadFile(filepath.Join(dir, cockpit.LedgerName))
		if bytes.Contains(text, []byte(stage.Refused)) {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the crawl ended by itself: %v: %s", err, &out)
		case <-time.After(10 * time.Millisecond):
		}
	}
	require.NoError(t, child.Process.Kill())
	<-ended
	all := lines(t, dir)
	for _, line := range all[:len(all)-1] {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.Empty(t, all[len(all)-1], "the last line is complete")
}
