package satstore

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

var (
	dumps   = regexp.MustCompile("(?s)```hexdump (\\S+)\n(.*?)```")
	rewrite = flag.Bool("rewrite", false, "update the dumps in FORMAT.md")
)

// formatFiles returns the files of FORMAT.md: a store with two records and a message in its
// buckets, and a visit in its log.
func formatFiles(t *testing.T) *vfs.Mem {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, formatOptions())
	_, err := s.AddBatch([]Item{
		{"https://a.test/", at(100), []byte("old data")},
		{"https://a.test/b", at(170), []byte("more")},
	})
	require.NoError(t, err)
	require.NoError(t, s.Update("https://a.test/b", []byte("hint")))
	require.NoError(t, s.checkpoint(true))
	due(t, s, 100, func(r *Record) {
		require.NoError(t, r.Reschedule(at(105), []byte("new data")))
	})
	require.NoError(t, s.pass(101))
	require.NoError(t, s.Sync())
	return fs
}

func formatOptions() Options {
	return Options{Start: at(100), Commit: -1, test: testOptions{work: workNow, writers: 1}}
}

// TestFormatPage compares the dumps of FORMAT.md with current files, and opens them.
func TestFormatPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	fs := formatFiles(t)
	if *rewrite {
		page = dumps.ReplaceAllFunc(page, func(old []byte) []byte {
			name, _, _ := bytes.Cut(bytes.TrimPrefix(old, []byte("```hexdump ")), []byte("\n"))
			return []byte("```hexdump " + string(name) + "\n" + dump(fs.Data(string(name))) + "```")
		})
		require.NoError(t, os.WriteFile("FORMAT.md", page, 0o600))
	}
	old := vfs.NewMem()
	for _, found := range dumps.FindAllStringSubmatch(string(page), -1) {
		require.Equal(t, dump(fs.Data(found[1])), found[2], found[1])
		old.Put(found[1], undump(t, found[2]))
	}
	names, err := fs.List()
	require.NoError(t, err)
	shown, err := old.List()
	require.NoError(t, err)
	require.Equal(t, names, shown)

	// The files of the page must be readable forever.
	s := mustOpen(t, old, formatOptions())
	want := map[string]string{"https://a.test/": "105 new data", "https://a.test/b": "170 hint"}
	require.Equal(t, want, contents(t, s))
	require.NoError(t, s.Check())
}

// dump formats bytes as hex.Dump does, with one line of dots for lines of zeros.
func dump(b []byte) string {
	var out strings.Builder
	zeros := false
	for at := 0; at < len(b); at += 16 {
		row := b[at:min(at+16, len(b))]
		if bytes.Equal(row, make([]byte, 16)) {
			if !zeros {
				out.WriteString("*\n")
			}
			zeros = true
			continue
		}
		zeros = false
		out.WriteString(strings.TrimSpace(hexLine(at)) + hex.Dump(row)[8:])
	}
	if zeros { // the length of the file
		out.WriteString(hexLine(len(b)))
	}
	return out.String()
}

func hexLine(n int) string {
	return hex.EncodeToString([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + "\n"
}

// undump undoes dump.
func undump(t *testing.T, text string) (b []byte) {
	t.Helper()
	for line := range strings.Lines(text) {
		if line == "*\n" {
			continue
		}
		at, err := hex.DecodeString(line[:8])
		require.NoError(t, err)
		n := int(at[0])<<24 | int(at[1])<<16 | int(at[2])<<8 | int(at[3])
		b = append(b, make([]byte, n-len(b))...)
		_, line, _ = strings.Cut(line, "  ")
		digits, _, _ := strings.Cut(line, "  |")
		row, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(digits), " ", ""))
		require.NoError(t, err)
		b = append(b, row...)
	}
	return b
}
