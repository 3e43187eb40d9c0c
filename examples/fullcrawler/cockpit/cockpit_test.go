package cockpit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/revisit"
)

// TestTheLedgerIsRotated: no line is lost or duplicated.
func TestTheLedgerIsRotated(t *testing.T) {
	dir := t.TempDir()
	l, err := OpenLedger(dir, 1000)
	require.NoError(t, err)
	for n := range 50 {
		require.NoError(t, l.Write(fmt.Sprint("http://a.test/", n), stage.RobotsUnreachable, "why", "", time.Time{}))
		require.NoError(t, l.Flush())
		time.Sleep(time.Millisecond) // names have milliseconds
	}
	require.NoError(t, l.Close())
	files, err := filepath.Glob(filepath.Join(dir, "fates*.jsonl"))
	require.NoError(t, err)
	require.Greater(t, len(files), 5)
	seen := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Less(t, len(text), 1500)
		for text := range bytes.Lines(text) {
			var l Line
			require.NoError(t, json.Unmarshal(text, &l))
			require.False(t, seen[l.URL], l.URL)
			require.Equal(t, "robots_unreachable", string(l.Fate))
			require.Equal(t, stage.RobotsUnreachable.String(), l.Says)
			seen[l.URL] = true
		}
	}
	require.Len(t, seen, 50)
}

// TestLimitsInUse: each limit that is set, and no other. Pages that are unchanged count.
func TestLimitsInUse(t *testing.T) {
	dir := t.TempDir()
	s := summary{Pages: 40, Bytes: 500_000, took: 10 * time.Minute}
	require.Empty(t, (&Crawl{Cfg: Config{Out: dir}}).limits(s))
	c := &Crawl{Cfg: Config{Out: dir, Pages: 100, Bytes: 1e6, Duration: time.Hour}, Quota: stage.NewQuota(100)}
	for range s.Pages + 5 {
		c.Quota.Done(true)
	}
	require.Equal(t, []Fact{
		{"page limit", "45 of 100"}, {"byte limit", "500.0 KB of 1.0 MB"}, {"time limit", "10m of 1h"},
	}, c.limits(s))
	c.Cfg.MinFree = 1
	if _, known := FreeSpace(dir); known {
		require.Contains(t, c.limits(s)[3].Text, " free")
	}
}

// TestStatusLineFitsTheTerminal: it is never longer than one line.
func TestStatusLineFitsTheTerminal(t *testing.T) {
	require.Equal(t, "short", narrow("short", 40))
	long := narrow(strings.Repeat("ä", 200), columns)
	require.Less(t, utf8.RuneCountInString(long), columns)
	require.True(t, strings.HasSuffix(long, "…"))
	require.Equal(t, 39, utf8.RuneCountInString(narrow(strings.Repeat("x", 200), 40)))
	require.Equal(t, "…", narrow("a terminal of one column", 1))
}

// TestAHostIsFoundByEitherScheme, unless the user gives one.
func TestAHostIsFoundByEitherScheme(t *testing.T) {
	p, err := stage.OpenPages(t.TempDir(), stage.PagesOptions(0, time.Minute, time.Time{}))
	require.NoError(t, err)
	require.NoError(t, p.Discover(stage.Item{URL: "http://plain.test/"}))
	require.NoError(t, p.Discover(stage.Item{URL: "https://safe.test/"}))
	_, err = p.Commit(nil)
	require.NoError(t, err)
	for typed, want := range map[string]string{
		"plain.test": "http://plain.test/", "safe.test": "https://safe.test/",
		"none.test": "https://none.test/",
	} {
		require.Equal(t, want, eitherScheme(p, typed, "https://"+typed+"/"))
	}
	require.Equal(t, "https://plain.test/", eitherScheme(p, "https://plain.test/", "https://plain.test/"))
	require.NoError(t, p.Close())
}

// TestBroughtBack: after the clock is corrected, no page is due too late.
func TestBroughtBack(t *testing.T) {
	now := time.Now()
	visited := stage.State{Interval: 5, Due: now.Add(time.Hour).Unix()}
	visited.History = visited.History.Observe(revisit.Visit{At: now.Add(-time.Hour)})
	before := visited
	broughtBack(&visited, now)
	require.Equal(t, before, visited)
	failed := stage.State{Failures: 1, Due: now.Add(400 * 24 * time.Hour).Unix()}
	broughtBack(&failed, now)
	require.Equal(t, now.Add(24*time.Hour).Unix(), failed.Due)
}

// TestASilentProgram: a program that never answers ends the scan.
func TestASilentProgram(t *testing.T) {
	lost := fmt.Errorf("%w: it killed its worker twice", scan.ErrSkipped)
	for name, tt := range map[string]struct {
		results []error
		never   bool
	}{
		"it answers":         {[]error{nil, lost, lost, lost}, false},
		"it reports":         {[]error{scan.ErrFailed, lost, lost}, false},
		"a bad document":     {[]error{lost, nil, lost, lost}, false},
		"a damaged document": {[]error{io.ErrUnexpectedEOF, lost, lost}, true},
		"it does not answer": {[]error{lost, lost}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var unanswered silence
			for n, result := range tt.results {
				last := n == len(tt.results)-1
				require.Equal(t, tt.never && last, unanswered.heard(result), n)
			}
		})
	}
}

// The live page has no password, so an address that other machines can reach deserves a warning.
func TestExposedAddresses(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:8080": false, "127.9.9.9:0": false, "[::1]:8080": false, "localhost:8080": false,
		"0.0.0.0:8080": true, "[::]:8080": true, "10.0.0.1:8080": true, "crawler.example:8080": true,
	} {
		require.Equal(t, want, exposed(listen), listen)
	}
}

// TestFailuresAreGrouped: a host that fails all the time takes one line, and hides no other.
func TestFailuresAreGrouped(t *testing.T) {
	var l failures
	l.add(failure{Line: Line{URL: "http://other.test/", Fate: stage.RobotsUnreachable}})
	for n := range 200 {
		l.add(failure{Line: Line{URL: fmt.Sprint("http://broken.test/", n), Fate: stage.RobotsUnreachable}})
	}
	require.Len(t, l, 2)
	require.Equal(t, "other.test", l[0].Host)
	require.Equal(t, failure{Line: Line{URL: "http://broken.test/199", Fate: stage.RobotsUnreachable},
		Host: "broken.test", More: 199}, l[1])
	l.add(failure{Line: Line{URL: "http://other.test/", Fate: stage.RobotsUnreachable}})
	require.Equal(t, 1, l[1].More, "the latest is the last")
	for n := range 100 {
		l.add(failure{Line: Line{URL: fmt.Sprintf("http://h%d.test/", n), Fate: stage.RobotsUnreachable}})
	}
	require.Len(t, l, keptFailures)
}
