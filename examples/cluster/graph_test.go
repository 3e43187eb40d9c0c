package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/graphweb"
)

// realGraph returns the directory of a real link graph, or skips the test.
func realGraph(t *testing.T) string {
	t.Helper()
	dir := defaultGraph()
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data", "graphs", "uci-ics")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no real graph: set SPINNERET_DATA to the directory of graphs/uci-ics:", err)
	}
	return dir
}

// TestAKilledProcessLosesNothingOfARealGraph is like TestAKilledProcessLosesNothing, with real
// links: a few hosts have hundreds of pages, many have one.
func TestAKilledProcessLosesNothingOfARealGraph(t *testing.T) {
	t.Parallel()
	whole, err := readGraph(realGraph(t))
	require.NoError(t, err)
	graph, seeds := whole.Part(400, 20)
	_, urls := lone(t, t.TempDir(), 0)
	tr := beginOn(t, urls, 1, func(port int) (site, error) {
		return graphweb.Start(graph, graphweb.Options{Addrs: 16, Port: port})
	})
	tr.seeds = seeds
	require.Len(t, tr.reachable(), graph.Len(), "all pages are reachable from the seeds")
	members := []*child{tr.member(t, "a"), tr.member(t, "b"), tr.member(t, "c")}
	tr.seed(t, "a", "b", "c")
	tr.waitFor(t, graph.Len()/4)
	members[1].kill()
	tr.finish(t)
}

// TestScalingOfAGraph measures with a graph of three pages on two hosts.
func TestScalingOfAGraph(t *testing.T) {
	t.Setenv(asProgram, unwatched) // for the processes that the benchmark starts
	dir := t.TempDir()
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	for file, text := range map[string]string{
		"g.nodes.tsv.zst": "0\t1\thttps://a.test/\n1\t1\thttp://b.test/\n2\t1\thttp://a.test/x\n",
		"g.edges.tsv.zst": "0\t1\n1\t2\n",
	} {
		data := encoder.EncodeAll([]byte(text), nil)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), data, 0o666))
	}
	status, out, log := do(t, "scaling", "-graph", dir, "-processes", "1",
		"-latency", "1ms", "-parts", "1")
	require.Zero(t, status, log)
	require.Contains(t, out, "3 of 3 pages, at most 100 per host, from 1 seeds\n")
	require.Regexp(t, `\n +1 +3 +3 +0 +0 `, out)
	require.Contains(t, out, " 0.00 % (0.00 %)")
}

func TestGraphsAreReadFromADirectory(t *testing.T) {
	_, err := readGraph(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "*nodes*.tsv.zst")
}

// TestServedURLsAreThoseThatACrawlFetches: no page of a graph may be served under a URL that a
// crawl would never request.
func TestServedURLsAreThoseThatACrawlFetches(t *testing.T) {
	for url, want := range map[string]string{
		"https://A.test":                            "http://a.test/",
		"http://a.test:80/x#y":                      "http://a.test/x",
		"http://a.test//x":                          "http://a.test//x",
		"https://a.test/?q=1&r=%41":                 "http://a.test/?q=1&r=%41",
		"mailto:x@a.test":                           "",
		"http://127.0.0.1/":                         "",
		"http://a.test/" + strings.Repeat("x/", 90): "",
	} {
		require.Equal(t, want, asked(url), url)
	}
}

func TestDefaultGraphIsAmongTheData(t *testing.T) {
	t.Setenv("SPINNERET_DATA", "")
	require.Empty(t, defaultGraph())
	t.Setenv("SPINNERET_DATA", "data")
	require.Equal(t, filepath.Join("data", "graphs", "uci-ics"), defaultGraph())
}
