package exact

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
)

var dumps = regexp.MustCompile("(?s)```(?:hexdump|text) (\\S+)\n(.*?)```")

// TestFormatPage compares the dumps of FORMAT.md with what is written.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	d := newMemDisk()
	s := mustOpen(t, d, Options{Memory: small})
	s.key = siphash.Key{1, 2}
	s.disked.key = s.key
	require.NoError(t, s.Add("https://a.test/", []byte("seed")))
	require.NoError(t, s.Add("https://a.test/b", nil))
	require.NoError(t, s.Close())
	want := map[string]string{
		"MANIFEST":     string(d.names["MANIFEST"].data),
		"run-00000001": hex.Dump(d.names["run-00000001"].data),
		"new-00000002": hex.Dump(d.names["new-00000002"].data),
	}
	found := dumps.FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, len(want))
	old := newMemDisk()
	for _, dump := range found {
		require.Equal(t, want[dump[1]], dump[2], dump[1])
		data := []byte(dump[2])
		if dump[1] != manifestName {
			data = undump(t, dump[2])
		}
		old.names[dump[1]] = &memFile{disk: old, data: data}
	}

	// What the page shows must be readable for ever.
	s = mustOpen(t, old, Options{Memory: small})
	require.NoError(t, s.Add("https://a.test/b", nil))
	require.NoError(t, s.Add("https://a.test/c", nil))
	require.NoError(t, s.Merge())
	want3 := []string{"https://a.test/", "https://a.test/b", "https://a.test/c"}
	require.Equal(t, want3, urlsFrom(t, s, 0))
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
