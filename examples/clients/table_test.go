package clients

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"text/tabwriter"

	"github.com/gocolly/colly/v2/storage"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// A crawler fetches the seeds and all pages reachable from them.
type crawler func(seeds []string, web http.RoundTripper)

var programs = []struct {
	name          string
	seeds         []string
	before, after crawler
	seen          string // the set of known URLs in before
}{
	{"net/http", roots, netHTTPBefore, netHTTPAfter, "sync.Map"},
	{"goquery", roots, goqueryBefore, goqueryAfter, "map"},
	{"colly", roots, collyBefore, collyAfter, "colly's storage"},
	{"resty", roots, restyBefore, restyAfter, "sync.Map"},
	{"go-retryablehttp", roots, retryableBefore, retryableAfter, "sync.Map"},
	{"gofeed", []string{"http://one.test/feed.xml", "http://two.test/feed.xml"},
		gofeedBefore, gofeedAfter, "nothing"},
}

var roots = []string{"http://h00000.vweb.test/"}

// TestTable runs each crawler on the same web, and prints the findings from the servers' log.
func TestTable(t *testing.T) {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(out, "| client\t| requests\t| too early: host\t| address\t| disallowed\t| pages twice\t| missed"+
		"\t| archived\t| bytes per URL seen\t| CPU s per 1,000 requests\t|")
	fmt.Fprintln(out, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	sizes := bytesPerURL()
	for _, p := range programs {
		before, cpu := crawl(t, p.seeds, p.before, false)
		row(out, p.name+", before", before, cpu, sizes[p.seen])
		require.NotZero(t, before.earlyHost+before.earlyAddr, p.name)
		require.NotZero(t, before.disallowed, p.name)
		require.NotZero(t, before.twice, p.name)

		after, cpu := crawl(t, p.seeds, p.after, true)
		row(out, "after", after, cpu, sizes["dedupe"])
		require.Equal(t, findings{requests: after.requests, archived: after.requests}, after, p.name)
	}
	require.NoError(t, out.Flush())
}

// crawl runs a crawler on a new web, and returns the findings and the CPU time of both.
func crawl(
	t *testing.T, seeds []string, run crawler, layered bool,
) (f findings, cpuSeconds float64) {
	synctest.Test(t, func(t *testing.T) {
		var web *webtest.Web
		web = startWeb(t, webtest.Options{
			Hosts: 16, Addrs: 5, Pages: 40, Traits: traits, Handlers: map[string]http.Handler{
				"one.test": feed(&web, 0, 12), // two feeds that have
				"two.test": feed(&web, 8, 16), // some articles in common
			},
		})
		kept, err := archive.Open(t.TempDir(), archive.Options{})
		require.NoError(t, err)
		transport := plain(t, web)
		if layered {
			transport = politeInto(t, web, kept)
		}
		began := cpuTime()
		run(seeds, transport)
		cpuSeconds = (cpuTime() - began).Seconds()
		f = evaluate(web)
		for _, err := range kept.All() {
			require.NoError(t, err)
			f.archived++
		}
		require.NoError(t, kept.Close())
	})
	return f, cpuSeconds
}

func row(out *tabwriter.Writer, name string, f findings, cpuSeconds, bytes float64) {
	fmt.Fprintf(out, "| %s\t| %d\t| %d\t| %d\t| %d\t| %d\t| %d\t| %d\t| %.0f\t| %.2f\t|\n", name,
		f.requests, f.earlyHost, f.earlyAddr, f.disallowed, f.twice, f.missed, f.archived, bytes,
		cpuSeconds/float64(f.requests)*1000)
}

// bytesPerURL measures the bytes per URL of the sets of known URLs.
func bytesPerURL() map[string]float64 {
	known, plain := map[string]bool{}, new(plainLinks)
	var visited storage.InMemoryStorage
	_ = visited.Init()
	url := func(n int) string {
		return fmt.Sprintf("https://www.example.com/articles/2026/11/%d/a-title.html", n)
	}
	sizes := map[string]float64{}
	for name, add := range map[string]func(n int){
		"map":             func(n int) { known[url(n)] = true },
		"sync.Map":        func(n int) { plain.add(url(n), "") },
		"colly's storage": func(n int) { _ = visited.Visited(uint64(n) * 0x9E3779B97F4A7C15) },
	} {
		const n = 200_000
		before := liveBytes()
		for i := range n {
			add(i)
		}
		sizes[name] = float64(liveBytes()-before) / n
	}
	runtime.KeepAlive([]any{known, plain, visited})
	s := newLinks().seen.Stats()
	sizes["dedupe"] = float64(s.Bytes) / float64(s.Capacity)
	return sizes
}

func liveBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
