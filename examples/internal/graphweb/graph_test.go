package graphweb

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/page"
)

// Pages 0, 1 and 2 are a ring, 2 links to another host, 4 is not reachable, and the others cannot
// be served.
const (
	graphNodes = "0\t1\thttps://a.test/\n1\t1\thttp://a.test/b?c=d&e\n2\t1\thttp://a.test/%7Ef\n" +
		"3\t1\thttp://b.test/\n4\t1\thttp://b.test/lonely\n5\t0\thttp://b.test/never\n" +
		"6\t1\thttp://b.test:81/\n7\t1\thttp://a.test/\n8\t1\tgopher://a.test/\n" +
		"9\t1\thttp://a.test//g\n\n"
	graphEdges = "0\t1\n1\t2\n2\t0\n2\t3\n2\t5\n2\t6\n4\t0\n5\t0\n7\t3\n1\t9\n"
)

func testGraph(t *testing.T) *Graph {
	t.Helper()
	g, err := Read(strings.NewReader(graphNodes), strings.NewReader(graphEdges), withoutTLS)
	require.NoError(t, err)
	return g
}

func TestRead(t *testing.T) {
	g := testGraph(t)
	require.Equal(t, 6, g.Len(), "https and http are one page")
	ring := []string{
		"http://a.test/", "http://a.test/%7Ef", "http://a.test//g", "http://a.test/b?c=d&e",
		"http://b.test/",
	}
	require.Equal(t, ring, g.Reachable("http://a.test/b?c=d&e"))
	require.Equal(t, []string{"http://b.test/"}, g.Reachable("http://b.test/"))
	require.Equal(t, append(ring, "http://b.test/lonely"), g.Reachable("http://b.test/lonely"))
	require.Empty(t, g.Reachable("http://b.test/never"), "nodes that were not fetched are not pages")

	for name, tt := range map[string]struct{ nodes, edges string }{
		"a node without a URL":     {"0\t1\n", ""},
		"a node without an id":     {"x\t1\thttp://a.test/\n", ""},
		"an edge with one end":     {graphNodes, "0\n"},
		"an edge to an invalid id": {graphNodes, "0\tx\n"},
	} {
		_, err := Read(strings.NewReader(tt.nodes), strings.NewReader(tt.edges), withoutTLS)
		require.ErrorIs(t, err, ErrGraph, name)
	}
	fault := errors.New("disk")
	_, err := Read(iotestReader{fault}, strings.NewReader(""), withoutTLS)
	require.ErrorIs(t, err, fault)
}

type iotestReader struct{ err error }

func (r iotestReader) Read([]byte) (int, error) { return 0, r.err }

func TestReadCleansURLs(t *testing.T) {
	g, err := Read(strings.NewReader(graphNodes), strings.NewReader(graphEdges),
		func(url string) string {
			url, _, _ = strings.Cut(withoutTLS(url), "?")
			if strings.HasSuffix(url, "lonely") {
				return ""
			}
			return url
		})
	require.NoError(t, err)
	require.Equal(t, []string{
		"http://a.test/", "http://a.test/%7Ef", "http://a.test//g", "http://a.test/b",
		"http://b.test/",
	}, g.Reachable("http://a.test/"))
	require.Equal(t, 5, g.Len())
}

func TestPartOfAGraph(t *testing.T) {
	g := testGraph(t)
	for _, tt := range []struct {
		name           string
		pages, perHost int
		want, seeds    []string
	}{
		{"all of it", 0, 0, g.Reachable("http://b.test/lonely"),
			[]string{"http://a.test/", "http://b.test/lonely"}},
		{"the nearest pages", 2, 0, []string{"http://a.test/", "http://a.test/b?c=d&e"},
			[]string{"http://a.test/"}},
		{"one of each host", 0, 1, []string{"http://a.test/", "http://b.test/"},
			[]string{"http://a.test/"}},
	} {
		part, seeds := g.Part(tt.pages, tt.perHost)
		require.Equal(t, tt.seeds, seeds, tt.name)
		require.Equal(t, tt.want, part.Reachable(seeds...), tt.name)
		require.Equal(t, len(tt.want), part.Len(), tt.name)
	}
}

// crawlGraph fetches all reachable pages, one at a time.
func crawlGraph(t *testing.T, w *Web, seeds []string) {
	t.Helper()
	transport := &http.Transport{DialContext: w.Dial}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	met := map[string]bool{}
	queue := slices.Clone(seeds)
	for len(queue) > 0 {
		url := queue[0]
		queue = queue[1:]
		if met[url] {
			continue
		}
		met[url] = true
		resp, err := c.Get(url)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 200, resp.StatusCode, url)
		for link, err := range page.Links(body, url, resp.Header.Get("Content-Type")) {
			require.NoError(t, err)
			queue = append(queue, link.URL)
		}
	}
}

func TestGraphWeb(t *testing.T) {
	w, err := Start(testGraph(t), Options{Addrs: 1, Latency: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	crawlGraph(t, w, []string{"http://a.test/"})
	var got []string
	for _, r := range w.Log() {
		require.Equal(t, w.Log()[0].Addr, r.Addr, "both hosts share it")
		require.Equal(t, 200, r.Status)
		require.True(t, w.IsPage(r.URL()), r.URL())
		got = append(got, r.URL())
	}
	slices.Sort(got)
	require.Equal(t, w.Reachable("http://a.test/"), got)

	c := &http.Client{Transport: &http.Transport{DialContext: w.Dial}}
	for _, url := range []string{"http://a.test/robots.txt", "http://b.test/never"} {
		resp, err := c.Get(url)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 404, resp.StatusCode)
		require.False(t, w.IsPage(url))
	}
	require.NoError(t, w.Close())
	_, err = c.Get("http://a.test/")
	require.ErrorIs(t, err, net.ErrClosed, "no other server is asked")
	require.Len(t, w.Log(), len(got)+2, "the log stays")
}

func TestGraphWebHasAddresses(t *testing.T) {
	w, err := Start(testGraph(t), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	addrs := map[netip.Addr]bool{}
	for h := range w.Hosts() {
		found, err := w.Resolve(t.Context(), h.Name)
		require.NoError(t, err)
		require.Equal(t, []netip.Addr{h.Addr}, found)
		addrs[h.Addr] = true
	}
	require.Len(t, addrs, 2)
	for _, o := range []Options{{Addrs: -1}, {Port: 65536}} {
		_, err := Start(testGraph(t), o)
		require.ErrorContains(t, err, "out of range")
	}
}

func ExampleStart() {
	nodes := "0\t1\thttps://a.test/\n1\t1\thttps://b.test/\n"
	graph, err := Read(strings.NewReader(nodes), strings.NewReader("0\t1\n"), withoutTLS)
	if err != nil {
		fmt.Println(err)
		return
	}
	web, err := Start(graph, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer web.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: web.Dial}}
	resp, err := client.Get("http://a.test/")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	io.Copy(os.Stdout, resp.Body)
	// Output:
	// <!doctype html><title>http://a.test/</title>
	// <a href="http://b.test/">http://b.test/</a>
}

// TestARealGraph serves a part of the link graph of a university.
func TestARealGraph(t *testing.T) {
	dir := os.Getenv("SPINNERET_DATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	open := func(kind string) io.Reader {
		name := filepath.Join(dir, "graphs", "uci-ics", "uci-ics."+kind+".tsv.zst")
		f, err := os.Open(name)
		if err != nil {
			t.Skip("no real graph: set SPINNERET_DATA to the directory that contains graphs/:", err)
		}
		t.Cleanup(func() { f.Close() })
		z, err := zstd.NewReader(f)
		require.NoError(t, err)
		t.Cleanup(z.Close)
		return z
	}
	g, err := Read(open("nodes"), open("edges"), withoutTLS)
	require.NoError(t, err)
	part, seeds := g.Part(300, 20)
	w, err := Start(part, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	crawlGraph(t, w, seeds)
	require.Len(t, w.Log(), 300)
	require.Len(t, part.Reachable(seeds...), 300)
}

func FuzzRead(f *testing.F) {
	f.Add(graphNodes, graphEdges)
	f.Add("0\t1\thttp://A.test/#x\n", "0\t0\n")
	f.Fuzz(func(t *testing.T, nodes, edges string) {
		g, err := Read(strings.NewReader(nodes), strings.NewReader(edges), withoutTLS)
		if err != nil {
			return
		}
		part, seeds := g.Part(0, 0)
		require.Equal(t, g.Len(), part.Len(), "Part without limits is the whole graph")
		require.Len(t, part.Reachable(seeds...), g.Len(), "the seeds lead to all pages")
		some, seeds := g.Part(3, 1)
		require.Len(t, some.Reachable(seeds...), some.Len())
		require.LessOrEqual(t, some.Len(), 3)
	})
}

// withoutTLS makes a URL one that the virtual web can serve.
func withoutTLS(url string) string {
	if rest, ok := strings.CutPrefix(url, "https://"); ok {
		return "http://" + rest
	}
	return url
}
