package exact

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// benchURL returns the i-th URL, valid until the next call. Reusing the buffer keeps garbage
// collection out of the measurement.
func benchURL(buffer []byte, i int) string {
	const start = "https://www.example.test/articles/2026/11/21/some-title-of-the-usual-length/"
	buffer = fmt.Appendf(buffer[:0], start+"%010d", i)
	return unsafe.String(&buffer[0], len(buffer))
}

// BenchmarkAdd adds new URLs, and then known URLs at random, so that nearly all of them have to be
// looked up on disk. The module internal/bench has a program that adds the links of real crawls,
// and compares with key-value stores.
func BenchmarkAdd(b *testing.B) {
	urls := 1_000_000
	if testing.Short() {
		urls = 100_000
	}
	set, err := Open(b.TempDir(), Options{Memory: int64(urls) * 6})
	require.NoError(b, err)
	buffer := make([]byte, 0, 100)
	next := 0
	for _, kind := range []string{"new", "old"} {
		b.Run(fmt.Sprintf("urls=%d/kind=%s", urls, kind), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 0))
			b.ReportAllocs()
			for b.Loop() {
				i := next
				if kind == "old" {
					i = random.IntN(next)
				} else {
					next++
				}
				if _, err := set.Add(benchURL(buffer, i)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
		})
		for ; next < urls; next++ {
			_, err := set.Add(benchURL(buffer, next))
			require.NoError(b, err)
		}
	}
	require.NoError(b, set.Close())
}

// BenchmarkDefer defers random URLs, each ten times on average. The memory is a twentieth of the
// bytes of the URLs, or MinMemory.
func BenchmarkDefer(b *testing.B) {
	sizes := []int{1e5, 1e6}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, urls := range sizes {
		b.Run(fmt.Sprintf("urls=%d", urls), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				dir := b.TempDir()
				b.StartTimer()
				benchDefer(b, dir, urls, Options{Memory: int64(urls) * 86 / 20})
			}
			b.ReportMetric(10*float64(urls)*float64(b.N)/b.Elapsed().Seconds(), "urls/s")
		})
	}
}

func benchDefer(b *testing.B, dir string, urls int, o Options) {
	set, err := Open(dir, o)
	require.NoError(b, err)
	random := rand.New(rand.NewPCG(1, 0))
	buffer := make([]byte, 0, 100)
	for range 10 * urls {
		if err := set.Defer(benchURL(buffer, random.IntN(urls)), nil); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, set.Merge())
	stats := set.Stats()
	sightings := float64(10 * urls)
	b.ReportMetric(float64(stats.Read)/sightings, "readB/url")
	b.ReportMetric(float64(stats.Written)/sightings, "writtenB/url")
	b.ReportMetric(float64(stats.Merges), "merges")
	require.NoError(b, set.Close())
}

// BenchmarkRecent compares the hit rate of the list of the latest URLs with that of golang-lru,
// which package dedupe uses, in the same memory and for the links of real crawls.
func BenchmarkRecent(b *testing.B) {
	for _, graph := range []string{"uci-ics", "debian-docs"} {
		links := readLinks(b, graph)
		for _, memory := range []int64{1 << 20, 4 << 20} { // a sixteenth of Options.Memory
			for name, newList := range map[string]func(int64) func(uint64) bool{
				"own": ownList, "golang-lru": lruList,
			} {
				b.Run(fmt.Sprintf("graph=%s/MB=%d/list=%s", graph, memory>>20, name), func(b *testing.B) {
					for b.Loop() {
						met, found := newList(memory), 0
						for _, id := range links {
							if met(id) {
								found++
							}
						}
						b.ReportMetric(100*float64(found)/float64(len(links)), "%hits")
					}
					n := float64(b.N) * float64(len(links))
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/link")
				})
			}
		}
	}
}

// ownList returns a function that adds an id to a list and reports whether it was there.
func ownList(memory int64) func(uint64) bool {
	list := newRecent(memory)
	return func(id uint64) bool {
		f := fingerprint(id)
		if list.has(f) {
			return true
		}
		list.add(f)
		return false
	}
}

// lruList does the same with golang-lru. An entry takes 116 bytes, as BenchmarkListCost of package
// dedupe measured.
func lruList(memory int64) func(uint64) bool {
	list, _ := simplelru.NewLRU[uint64, struct{}](int(memory/116), nil) // fails only below 1
	return func(id uint64) bool {
		if _, found := list.Get(id); found {
			return true
		}
		list.Add(id, struct{}{})
		return false
	}
}

// readLinks returns a hash for each link of a crawl, in the order in which the crawler met them.
func readLinks(b *testing.B, graph string) (links []uint64) {
	b.Helper()
	dir := os.Getenv("SPINNERET_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	name := filepath.Join(dir, "graphs", graph, graph+".edges.tsv.zst")
	packed, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		b.Skipf("no %s: set SPINNERET_DATA to the directory with the test data", name)
	}
	require.NoError(b, err)
	decoder, err := zstd.NewReader(nil)
	require.NoError(b, err)
	defer decoder.Close()
	edges, err := decoder.DecodeAll(packed, nil)
	require.NoError(b, err)
	for edge := range strings.SplitSeq(strings.TrimSpace(string(edges)), "\n") {
		_, target, _ := strings.Cut(edge, "\t")
		id, err := strconv.ParseUint(target, 10, 64)
		require.NoError(b, err)
		links = append(links, (id+1)*0x9e3779b97f4a7c15)
	}
	return links
}
