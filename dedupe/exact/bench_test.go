package exact

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// benchURL returns the i-th URL, valid until the next call. A URL that is gone after the call is no
// work for the collector.
func benchURL(buffer []byte, i int) string {
	const start = "https://www.example.test/articles/2026/11/21/some-title-of-the-usual-length/"
	buffer = fmt.Appendf(buffer[:0], start+"%010d", i)
	return unsafe.String(&buffer[0], len(buffer))
}

// BenchmarkAdd adds new URLs, and URLs that are known, drawn evenly, so that nearly all of them
// have to be looked up on disk. The module internal/bench has a program that adds the links of
// real crawls, beside key-value stores.
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

// BenchmarkDefer defers URLs that are drawn evenly, ten times as often as there are. The memory is
// a twentieth of the bytes of the URLs, if that is not too little.
func BenchmarkDefer(b *testing.B) {
	sizes := []int{1e5, 1e6}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, urls := range sizes {
		for _, wide := range []bool{false, true} {
			b.Run(fmt.Sprintf("urls=%d/wide=%v", urls, wide), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					dir := b.TempDir()
					b.StartTimer()
					benchDefer(b, dir, urls, Options{Memory: int64(urls) * 86 / 20, Wide: wide})
				}
				b.ReportMetric(10*float64(urls)*float64(b.N)/b.Elapsed().Seconds(), "urls/s")
			})
		}
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
