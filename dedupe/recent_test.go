package dedupe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe"
)

// BenchmarkRecent measures the hit rate of a list of the latest URLs for the links of real crawls,
// in document order and page after page.
func BenchmarkRecent(b *testing.B) {
	for _, graph := range []string{"uci-ics", "debian-docs"} {
		edges := strings.TrimSpace(string(readZstd(b, "graphs/"+graph+"/"+graph+".edges.tsv.zst")))
		for _, size := range []int{1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20} {
			b.Run(fmt.Sprintf("graph=%s/recent=%d", graph, size), func(b *testing.B) {
				for b.Loop() {
					old, found, total := recentHits(b, edges, size)
					b.ReportMetric(100*float64(found)/float64(total), "%hits")
					b.ReportMetric(100*float64(found)/float64(old), "%hits-of-old")
				}
			})
		}
	}
}

func readZstd(t testing.TB, name string) []byte {
	t.Helper()
	dir := os.Getenv("SPINNERET_DATA")
	if dir == "" {
		dir = "../../shared/data"
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		t.Skipf("no %s: set SPINNERET_DATA to the directory with the test data", name)
	}
	require.NoError(t, err)
	decoder, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer decoder.Close()
	data, err = decoder.DecodeAll(data, nil)
	require.NoError(t, err)
	return data
}

// recentHits returns the number of links to known URLs, and the number to URLs in the list.
func recentHits(b *testing.B, edges string, size int) (old, found, total int) {
	list, err := simplelru.NewLRU[string, struct{}](size, nil)
	require.NoError(b, err)
	met := make(map[string]struct{})
	for edge := range strings.SplitSeq(edges, "\n") {
		_, target, _ := strings.Cut(edge, "\t")
		total++
		if _, ok := met[target]; ok {
			old++
		}
		met[target] = struct{}{}
		if _, ok := list.Get(target); ok {
			found++
			continue
		}
		list.Add(target, struct{}{})
	}
	return old, found, total
}

// BenchmarkListPays measures Add for the links of real crawls, with a list and without.
func BenchmarkListPays(b *testing.B) {
	for _, graph := range []string{"uci-ics", "debian-docs"} {
		urls := map[string]string{}
		for node := range strings.Lines(string(readZstd(b, "graphs/"+graph+"/"+graph+".nodes.tsv.zst"))) {
			id, rest, _ := strings.Cut(strings.TrimSpace(node), "\t")
			urls[id] = rest[strings.LastIndexByte(rest, '\t')+1:]
		}
		var links []string
		for edge := range strings.Lines(string(readZstd(b, "graphs/"+graph+"/"+graph+".edges.tsv.zst"))) {
			_, target, _ := strings.Cut(strings.TrimSpace(edge), "\t")
			links = append(links, urls[target])
		}
		for _, o := range []dedupe.Options{
			{}, {Recent: 1 << 12}, {Recent: 1 << 16},
			{Capacity: 1e8}, {Capacity: 1e8, Recent: 1 << 12}, {Capacity: 1e8, Recent: 1 << 16},
		} {
			b.Run(fmt.Sprintf("graph=%s/capacity=%d/recent=%d", graph, o.Capacity, o.Recent), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					f := dedupe.New(o)
					b.StartTimer()
					for _, link := range links {
						f.Add(link)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(links)), "ns/link")
			})
		}
	}
}
