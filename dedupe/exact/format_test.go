package exact

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

var dumps = regexp.MustCompile("(?s)```(?:hexdump|text) (\\S+)\n(.*?)```")

// TestFormatPage compares the dumps of FORMAT.md with real files.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	fs := vfs.NewMem()
	s := mustOpen(t, fs, Options{Memory: small})
	s.key = siphash.Key{1, 2}
	add(t, s, "https://a.test/")
	require.NoError(t, s.Defer("https://a.test/b", []byte("data")))
	require.NoError(t, s.Merge())
	for s.indexed < 2 {
		require.NoError(t, s.advance(2))
	}
	require.NoError(t, s.Close())
	want := map[string]string{
		"MANIFEST":       string(fs.Data("MANIFEST")),
		"index-00000002": shorten(hex.Dump(fs.Data("index-00000002"))),
		"log-00000001":   hex.Dump(fs.Data("log-00000001")),
	}
	found := dumps.FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, len(want))
	old := vfs.NewMem()
	for _, dump := range found {
		require.Equal(t, want[dump[1]], dump[2], dump[1])
		data := []byte(dump[2])
		if dump[1] != manifestName {
			data = undump(t, dump[2])
		}
		old.Put(dump[1], data)
	}

	// The documented bytes must remain readable forever.
	s = mustOpen(t, old, Options{Memory: small})
	added, err := s.Add("https://a.test/b")
	require.NoError(t, err)
	require.False(t, added)
	add(t, s, "https://a.test/c")
	urls := []string{"https://a.test/", "https://a.test/b", "https://a.test/c"}
	var got []string
	for entry, err := range s.Entries(0) {
		require.NoError(t, err)
		got = append(got, entry.URL)
	}
	require.Equal(t, urls, got)
}

const zeroRow = "00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"

// shorten replaces rows of zeros with a star, as the programs od and hexdump do.
func shorten(dump string) string {
	var out strings.Builder
	zeros := false
	for row := range strings.Lines(dump) {
		if strings.HasSuffix(row, zeroRow) {
			if !zeros {
				out.WriteString("*\n")
			}
			zeros = true
			continue
		}
		zeros = false
		out.WriteString(row)
	}
	return out.String()
}

// undump undoes hex.Dump and shorten.
func undump(t *testing.T, dump string) (b []byte) {
	t.Helper()
	for line := range strings.Lines(dump) {
		offset, line, found := strings.Cut(line, "  ")
		if !found {
			continue // a star
		}
		at, err := hex.DecodeString(offset)
		require.NoError(t, err)
		for len(b) < int(at[2])<<8|int(at[3]) {
			b = append(b, 0)
		}
		digits, _, _ := strings.Cut(line, "  |")
		row, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		require.NoError(t, err)
		b = append(b, row...)
	}
	return b
}

// TestEarlierSet opens a Set of this version that an earlier program wrote.
func TestEarlierSet(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/version-2")))
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	want := []Entry{
		{0, page(0), nil}, {1, page(1), nil}, {2, page(2), nil},
		{3, "https://a.test/deferred", []byte("data")},
	}
	var got []Entry
	for entry, err := range s.Entries(0) {
		require.NoError(t, err)
		got = append(got, entry)
	}
	require.Equal(t, want, got)
	for _, entry := range want {
		added, err := s.Add(entry.URL)
		require.NoError(t, err)
		require.False(t, added)
	}
	require.EqualValues(t, 4, s.Stats().URLs)
	require.NoError(t, s.Close())
}
