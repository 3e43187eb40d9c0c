package dedupe

import (
	"bytes"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
)

var dumps = regexp.MustCompile("(?s)```hexdump (\\S+)\n(.*?)```")

// TestFormatPage compares the dumps of FORMAT.md with real output.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	f := newFilter(Options{Capacity: 5, Rate: 0.1, Recent: 2}, siphash.Key{1, 2}, 1)
	f.shards[0].catchUp()
	for _, url := range []string{"a", "b", "c"} {
		f.Add(url)
	}
	want := map[string]string{"filter": hex.Dump(saved(t, f))}
	found := dumps.FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, len(want))
	for _, dump := range found {
		require.Equal(t, want[dump[1]], dump[2], dump[1])
	}

	// The documented bytes must remain readable forever.
	g, err := Read(bytes.NewReader(undump(t, found[0][2])), f.plan)
	require.NoError(t, err)
	require.Equal(t, f.Stats(), g.Stats())
	for _, url := range []string{"c", "b", "a"} {
		require.False(t, g.Add(url))
	}
	require.True(t, g.Add("d"))
}

// undump undoes hex.Dump.
func undump(t *testing.T, dump string) (b []byte) {
	t.Helper()
	for line := range strings.Lines(dump) {
		_, line, _ = strings.Cut(line, "  ")
		digits, _, _ := strings.Cut(line, "  |")
		row, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		require.NoError(t, err)
		b = append(b, row...)
	}
	return b
}
