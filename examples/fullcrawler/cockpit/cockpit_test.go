package cockpit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/revisit"
)

// TestTheLedgerIsRotated: no line is lost, and none is in two files.
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

// TestOneLineOfATerminal is never more than that.
func TestOneLineOfATerminal(t *testing.T) {
	require.Equal(t, "short", narrow("short"))
	long := narrow(strings.Repeat("ä", 200))
	require.Less(t, utf8.RuneCountInString(long), columns)
	require.True(t, strings.HasSuffix(long, "…"))
}

// TestAHostIsFoundByEitherScheme, unless it is typed.
func TestAHostIsFoundByEitherScheme(t *testing.T) {
	p, err := stage.OpenPages(t.TempDir(), stage.PagesOptions{})
	require.NoError(t, err)
	require.NoError(t, p.Sight(stage.Item{URL: "http://plain.test/"}))
	require.NoError(t, p.Sight(stage.Item{URL: "https://safe.test/"}))
	_, err = p.Settle(nil)
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

// TestBroughtBack: a page is not due long after the clock is right again.
func TestBroughtBack(t *testing.T) {
	now := time.Now()
	visited := stage.State{Booked: 5, Due: now.Add(time.Hour).Unix()}
	visited.History = visited.History.Observe(revisit.Visit{At: now.Add(-time.Hour)})
	require.Equal(t, visited, broughtBack(visited, now))
	failed := stage.State{Failures: 1, Due: now.Add(400 * 24 * time.Hour).Unix()}
	require.Equal(t, now.Add(24*time.Hour).Unix(), broughtBack(failed, now).Due)
}
