package dedupe_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe"
)

func TestFilterTellsNewFromOld(t *testing.T) {
	f := dedupe.New(dedupe.Options{})
	require.Zero(t, f.Len())
	require.True(t, f.Add("https://a.test/"))
	require.False(t, f.Add("https://a.test/"))
	require.True(t, f.Add("https://a.test/?"))
	require.True(t, f.Add(""))
	require.False(t, f.Add(""))
	require.Equal(t, 3, f.Len())
}

// TestModel compares filters with a map. A filter may take a new URL for an old one, but never
// the other way round, whatever its size and however full it is.
func TestModel(t *testing.T) {
	optionSets := map[string]dedupe.Options{
		"default":         {},
		"no list":         {Recent: -1},
		"list of one":     {Capacity: 5000, Recent: 1},
		"mixed":           {Capacity: 40_000, Rate: 0.01, Recent: 500},
		"everything fits": {Capacity: 100, Recent: 1 << 20},
		"far too small":   {Capacity: 10, Rate: 0.5, Recent: 10},
	}
	for name, opts := range optionSets {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("options=%s/seed=%d", name, seed), func(t *testing.T) {
				compareWithMap(t, dedupe.New(opts), rand.New(rand.NewPCG(seed, 0)))
			})
		}
	}
}

func compareWithMap(t *testing.T, f *dedupe.Filter, random *rand.Rand) {
	t.Helper()
	met := make(map[string]bool)
	added := 0
	for range 20_000 {
		// Small numbers come often, as links to home pages do.
		url := fmt.Sprintf("https://a.test/%d", uint64(math.Exp(random.Float64()*16)))
		isNew := f.Add(url)
		if isNew && met[url] {
			t.Fatalf("%s was forgotten after %d URLs", url, len(met))
		}
		met[url] = true
		if isNew {
			added++
		}
	}
	require.Equal(t, added, f.Len())
	require.Equal(t, added, f.Stats().URLs)
	for url := range met {
		if f.Add(url) {
			t.Fatalf("%s was forgotten after %d URLs", url, len(met))
		}
	}
}

// TestErrorIsAsPromised measures how many new URLs are taken for old ones: at most Rate at
// Capacity, and at any fill what Stats says. Six standard deviations keep chance out of the
// verdict.
func TestErrorIsAsPromised(t *testing.T) {
	const probes = 10_000
	for _, tt := range []struct {
		name string
		opts dedupe.Options
		fill int
	}{
		{"one shard, full", dedupe.Options{Capacity: 20_000, Rate: 0.02, Recent: -1}, 20_000},
		{"four shards, full", dedupe.Options{Capacity: 70_000, Rate: 0.02, Recent: -1}, 70_000},
		{"uneven number of hashes", dedupe.Options{Capacity: 20_000, Rate: 0.2, Recent: 10}, 20_000},
		{"half full", dedupe.Options{Capacity: 70_000, Rate: 0.1, Recent: 100}, 35_000},
		{"twice too full", dedupe.Options{Capacity: 20_000, Rate: 0.01, Recent: 4000}, 40_000},
		{"three times too full", dedupe.Options{Capacity: 20_000, Rate: 0.01, Recent: -1}, 60_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := dedupe.New(tt.opts)
			fill(f, "fill", tt.fill)
			before := f.Stats().Error
			if tt.fill <= tt.opts.Capacity {
				require.LessOrEqual(t, before, tt.opts.Rate)
			} else {
				require.Greater(t, before, tt.opts.Rate)
			}
			wrong := probes - fill(f, "probe", probes)
			after := f.Stats().Error // the probes have filled it further
			slack := 6 * math.Sqrt(probes*after)
			require.GreaterOrEqual(t, float64(wrong), probes*before-slack)
			require.LessOrEqual(t, float64(wrong), probes*after+slack)
		})
	}
}

// fill adds n URLs of its own and returns how many of them were reported as new.
func fill(f *dedupe.Filter, kind string, n int) (added int) {
	for i := range n {
		if f.Add("https://" + kind + ".test/" + strconv.Itoa(i)) {
			added++
		}
	}
	return added
}

func TestRecentURLsAreKeptOutOfTheBloomFilter(t *testing.T) {
	f := dedupe.New(dedupe.Options{Capacity: 1000, Recent: 100})
	fill(f, "a", 100)
	require.Zero(t, f.Stats().Error)
	require.Equal(t, 100, f.Stats().Recent)
	fill(f, "b", 200)
	require.Positive(t, f.Stats().Error)
	require.Equal(t, 100, f.Stats().Recent)

	// An old URL that comes back into the list must not be counted again when it leaves it.
	settled := f.Stats().Error
	fill(f, "a", 100)
	all := f.Stats().Error
	require.Greater(t, all, settled)
	fill(f, "b", 200)
	fill(f, "a", 100)
	require.Equal(t, all, f.Stats().Error)
}

func TestOptionsOutOfRangeMeanTheDefaults(t *testing.T) {
	want := dedupe.New(dedupe.Options{}).Stats()
	require.Equal(t, dedupe.DefaultCapacity, want.Capacity)
	for _, rate := range []float64{-1, 1, 2, math.NaN(), math.Inf(1)} {
		require.Equal(t, want, dedupe.New(dedupe.Options{Capacity: -5, Rate: rate}).Stats(), rate)
	}
}

func TestMemoryIsCloseToTheFormula(t *testing.T) {
	for _, rate := range []float64{0.01, 0.001} {
		for _, capacity := range []int{1000, 100_000, 1_000_000, 20_000_000} {
			s := dedupe.New(dedupe.Options{Capacity: capacity, Rate: rate, Recent: -1}).Stats()
			formula := -math.Log2(rate) / math.Ln2 // bits for a URL, Bloom (1970)
			got := float64(s.Bits) / float64(capacity)
			require.InEpsilon(t, formula, got, 0.03, "%d URLs, rate %g", capacity, rate)
			require.InDelta(t, s.Bits/8, s.Bytes, 64*8)
		}
	}
}

// TestConcurrentAdds has each URL added by several goroutines: exactly one is told that it is new.
func TestConcurrentAdds(t *testing.T) {
	const goroutines, urls = 8, 10_000
	f := dedupe.New(dedupe.Options{Capacity: 100_000, Rate: 1e-12, Recent: 1000})
	told := make([]atomic.Int32, urls)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for _, i := range rand.New(rand.NewPCG(uint64(g), 0)).Perm(urls) {
				if f.Add(fmt.Sprintf("https://a.test/%d", i)) {
					told[i].Add(1)
				}
				if i%1000 == 0 {
					_ = f.Stats()
				}
			}
		})
	}
	wg.Wait()
	for i := range told {
		require.EqualValues(t, 1, told[i].Load(), i)
	}
	require.Equal(t, urls, f.Len())
}

func TestAddAllocatesAtMostTheListEntry(t *testing.T) {
	f := dedupe.New(dedupe.Options{Recent: 64})
	urls := make([]string, 50_000)
	for i := range urls {
		urls[i] = fmt.Sprintf("https://a.test/%d", i)
	}
	next := 0
	require.LessOrEqual(t, testing.AllocsPerRun(len(urls)-1, func() {
		f.Add(urls[next])
		next++
	}), 1.0)
	require.Zero(t, testing.AllocsPerRun(100, func() { f.Add(urls[next-1]) }))
}

func BenchmarkFilterAdd(b *testing.B) {
	urls := make([]string, 1<<20)
	for i := range urls {
		urls[i] = fmt.Sprintf("https://www.example.test/articles/2026/11/index.html?id=%d", i)
	}
	for _, bb := range []struct {
		name   string
		repeat int // of the URLs until they start anew
		recent int
	}{
		{"new", len(urls), 0},
		{"recent", 1 << 10, 0},
		{"old", 1 << 18, -1},
	} {
		b.Run("url="+bb.name, func(b *testing.B) {
			f := dedupe.New(dedupe.Options{Capacity: 10_000_000, Recent: bb.recent})
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				f.Add(urls[i%bb.repeat])
				i++
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
		})
	}
	b.Run("url=new/parallel", func(b *testing.B) {
		f := dedupe.New(dedupe.Options{Capacity: 10_000_000})
		var next atomic.Int64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				f.Add(urls[int(next.Add(1))%len(urls)])
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
	})
}
