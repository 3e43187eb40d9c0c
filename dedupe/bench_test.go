package dedupe

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/bits-and-blooms/bloom/v3"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/spinneret-go/spinneret/dedupe/internal/layers"
)

// halfSet fills words at random, like the bits of a Bloom filter at its planned capacity.
func halfSet(words []uint64) []uint64 {
	random := rand.New(rand.NewPCG(1, 0))
	for i := range words {
		words[i] = random.Uint64()
	}
	return words
}

// fullFilter returns a filter that looks filled to its capacity, without the time to add the URLs.
func fullFilter(keys int) *Filter {
	f := New(Options{Capacity: keys, Recent: benchRecent})
	for i := range f.shards {
		l := f.shards[i].layers[0]
		f.shards[i].layers[0] = layers.Of(halfSet(l.Words()), l.Bits(), l.Functions(), l.Keys())
	}
	return f
}

// benchRecent is the size of the lists.
const benchRecent = 1 << 16

// bare is the baseline for Filter: the two libraries that Filter uses, for one goroutine.
type bare struct {
	list  *simplelru.LRU[string, struct{}]
	bloom *bloom.BloomFilter
}

func newBare(keys int) *bare {
	list, _ := simplelru.NewLRU[string, struct{}](benchRecent, nil)
	m, k := bloom.EstimateParameters(uint(keys), DefaultRate)
	words := halfSet(make([]uint64, (m+63)/64))
	return &bare{list, bloom.FromWithM(words, m, k)}
}

func (b *bare) Add(url string) bool {
	b.list.Add(url, struct{}{})
	return !b.bloom.TestAndAddString(url)
}

// benchURLs returns n URLs of the usual length.
func benchURLs(n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("https://www.example.test/articles/2026/11/some-title/index.html?id=%d", i)
	}
	return urls
}

// benchSizes are the numbers of URLs in the filters. The bits of the smaller filter fit into the
// processor's cache, those of the larger one do not.
func benchSizes(b *testing.B) []int {
	if testing.Short() {
		return []int{1e6}
	}
	b.Helper()
	return []int{1e6, 1e8}
}

// BenchmarkAdd adds URLs of three kinds: new, in the list of the latest, and only in the Bloom
// filter. The bare libraries are measured in the same run.
func BenchmarkAdd(b *testing.B) {
	urls := benchURLs(1 << 22)
	for _, keys := range benchSizes(b) {
		f, reference := fullFilter(keys), newBare(keys)
		next := 0
		run := func(name string, cycle int, add func(string) bool) {
			b.Run(fmt.Sprintf("keys=%d/url=%s", keys, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					add(urls[next%cycle])
					next++
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
			})
		}
		run("new/bare", len(urls), reference.Add)
		run("new", len(urls), f.Add)
		for _, url := range urls[:1<<20] {
			f.Add(url)
		}
		run("old", 1<<20, f.Add)
		run("recent", 1<<12, f.Add)
	}
}

func BenchmarkAddParallel(b *testing.B) {
	urls := benchURLs(1 << 20)
	for _, keys := range benchSizes(b) {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			f := fullFilter(keys)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for next := rand.IntN(len(urls)); pb.Next(); next++ {
					f.Add(urls[next%len(urls)])
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
		})
	}
}

// BenchmarkListCost measures the cost of the list of the latest URLs apart from Add's time: the
// bytes per entry, and the time of a full garbage collection because of its pointers.
func BenchmarkListCost(b *testing.B) {
	for _, entries := range []int{1 << 16, 1 << 20} {
		b.Run(fmt.Sprintf("recent=%d", entries), func(b *testing.B) {
			f := New(Options{Capacity: 2 * entries, Recent: entries})
			before := heap()
			for i := range uint64(entries) {
				hash := i * 0x9e3779b97f4a7c15
				f.shards[hash>>f.shift].add(hash)
			}
			entry := float64(heap()-before) / float64(f.Stats().Recent)
			for b.Loop() {
				runtime.GC()
			}
			b.ReportMetric(entry, "B/entry")
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/collection")
			runtime.KeepAlive(f)
		})
	}
}

// heap returns the bytes in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
