package robots

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// realFiles yields the name and text of the robots.txt files of some thousand hosts.
func realFiles(t *testing.T) iter.Seq2[string, []byte] {
	t.Helper()
	dir := os.Getenv("SPINNERET_DATA")
	if dir == "" {
		dir = filepath.Join("..", "shared", "data")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", dir) // relative to the module's root
	}
	packed, err := os.Open(filepath.Join(dir, "suites", "robots-real.tar.zst"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no real files to read, set SPINNERET_DATA: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { packed.Close() })
	plain, err := zstd.NewReader(packed)
	require.NoError(t, err)
	t.Cleanup(plain.Close)
	return func(yield func(string, []byte) bool) {
		for archive := tar.NewReader(plain); ; {
			head, err := archive.Next()
			if err == io.EOF {
				return
			}
			require.NoError(t, err)
			if head.Typeflag != tar.TypeReg {
				continue
			}
			body, err := io.ReadAll(archive)
			require.NoError(t, err)
			if !yield(head.Name, body) {
				return
			}
		}
	}
}

// TestRealFiles asks some groups of each file about paths made from the file's own patterns. Both
// engines must agree, and now and then the reference is asked too.
func TestRealFiles(t *testing.T) {
	files, groups, asked, referred := 0, 0, 0, 0
	for name, body := range realFiles(t) {
		files++
		rnd := rand.New(rand.NewPCG(uint64(files), 0))
		file := Parse(body)
		require.LessOrEqual(t, len(file.Sitemaps()), len(body), name)
		agents := tokens(file)
		rnd.Shuffle(len(agents), func(i, j int) { agents[i], agents[j] = agents[j], agents[i] })
		for _, agent := range agents[:min(3, len(agents))] {
			groups++
			rules := file.Rules(agent)
			for range 2 {
				path := randomPath(rnd, file)
				if requireEnginesAgree(t, rules, path) {
					asked++
				}
			}
		}
		if path := randomPath(rnd, file); files%10 == 0 && len(path) < 1<<8 && len(body) < 1<<15 {
			referred++ // not each time: it takes a thousand times as long
			want := refVerdict(decode(body), "examplebot", path)
			require.Equal(t, want, file.Rules("examplebot").Match(path), "%s, %q", name, path)
			records := refRecords(decode(body), "")
			require.Equal(t, records, slices.Collect(file.Records()), name)
			requireKept(t, file)
		}
	}
	require.Greater(t, files, 4000)
	require.Greater(t, asked, 5000)
	require.Greater(t, referred, 350)
	t.Logf("%d files, %d groups, %d checks by both engines, %d by the reference",
		files, groups, asked, referred)
}

// requireKept asks a file that was written down and read again for all that it holds.
func requireKept(t *testing.T, file *File) {
	t.Helper()
	entry := Entry{URL: where, File: file}
	data, err := entry.MarshalBinary()
	require.NoError(t, err)
	var again Entry
	require.NoError(t, again.UnmarshalBinary(data))
	requireSameFile(t, file, again.File)
}

// tokens returns the names of all groups, each once.
func tokens(file *File) (list []string) {
	for _, a := range file.agents {
		list = append(list, a.token.of(file.text))
	}
	return slices.Compact(list)
}

// randomPath cuts and extends a pattern of the file, so that it nearly matches.
func randomPath(rnd *rand.Rand, file *File) string {
	if len(file.rules) == 0 {
		return "/"
	}
	path := file.rules[rnd.IntN(len(file.rules))].written(file.text)
	if rnd.IntN(3) == 0 {
		path = path[:rnd.IntN(len(path)+1)]
	}
	return "/" + path[min(len(path), 1):] + pick(rnd, "", "", "a", "/index.html", "?b=c")
}
