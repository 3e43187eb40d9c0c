package robotstxt_test

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
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// realFiles yields the name and text of the robots.txt files of some thousand hosts.
func realFiles(t *testing.T) iter.Seq2[string, []byte] {
	t.Helper()
	dir := os.Getenv("SPINNERET_DATA")
	if dir == "" {
		dir = filepath.Join("..", "shared", "data")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", "..", dir) // relative to the module's root
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

// TestRealFiles checks some groups of each file with paths made from the file's own patterns. The
// oracle must agree, and occasionally the reference is checked too.
func TestRealFiles(t *testing.T) {
	files, groups, asked, referred := 0, 0, 0, 0
	for name, raw := range realFiles(t) {
		files++
		rnd := rand.New(rand.NewPCG(uint64(files), 0))
		file := robotstxt.Parse(raw)
		body := file.String()
		require.LessOrEqual(t, len(file.Sitemaps()), len(raw), name)
		require.Equal(t, body, robotstxt.Parse([]byte(body)).String(), name)
		if len(body) > 1<<13 {
			continue // too long for a reference that is slow on purpose
		}
		agents := append(refAgents(body), "*")
		for range 2 {
			agent := agents[rnd.IntN(len(agents))]
			groups++
			rules, own := refRules(body, agent), file.Rules(agent)
			for range 2 {
				if oracleAgrees(t, rules, own, randomPath(rnd, rules)) {
					asked++
				}
			}
		}
		if files%10 != 0 {
			continue
		}
		if path := randomPath(rnd, refRules(body, "examplebot")); len(path) < 1<<8 {
			referred++ // not each time: it takes a thousand times as long
			want := refVerdict(body, "examplebot", path)
			require.Equal(t, want, file.Rules("examplebot").Match(path), "%s, %q", name, path)
			require.Equal(t, refRecords(body, "examplebot"), slices.Collect(file.Rules("examplebot").Records()), name)
		}
	}
	require.Greater(t, files, 4000)
	require.Greater(t, asked, 5000)
	require.Greater(t, referred, 300)
	t.Logf("%d files, %d groups, %d checks by the oracle, %d by the reference",
		files, groups, asked, referred)
}

// randomPath cuts and extends a pattern, so that it nearly matches.
func randomPath(rnd *rand.Rand, rules []refRule) string {
	if len(rules) == 0 {
		return "/"
	}
	path := rules[rnd.IntN(len(rules))].pattern
	if rnd.IntN(3) == 0 {
		path = path[:rnd.IntN(len(path)+1)]
	}
	path = strings.TrimLeft(path, "/")
	return "/" + path + pick(rnd, "", "", "a", "/index.html", "?b=c")
}
