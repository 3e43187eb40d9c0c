package exact

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkSet adds sightings of URLs that are drawn evenly, ten for each URL: no list of the latest
// helps, so nearly all of them have to be confirmed on disk. The memory is a twentieth of the bytes
// of the URLs, if that is not too little. The module internal/bench has a program that does the same
// at any size, and beside key-value stores.
func BenchmarkSet(b *testing.B) {
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
					benchSet(b, dir, urls, Options{Memory: int64(urls) * 86 / 20, Wide: wide})
				}
				b.ReportMetric(10*float64(urls)*float64(b.N)/b.Elapsed().Seconds(), "urls/s")
			})
		}
	}
}

func benchSet(b *testing.B, dir string, urls int, o Options) {
	set, err := Open(dir, o)
	require.NoError(b, err)
	random := rand.New(rand.NewPCG(1, 0))
	const start = "https://www.example.test/articles/2026/11/21/some-title-of-the-usual-length/"
	url := []byte(start)
	for range 10 * urls {
		url = fmt.Appendf(url[:len(start)], "%010d", random.IntN(urls))
		if err := set.Add(string(url), nil); err != nil {
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
