package dedupe_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe"
)

// TestLayersFollowTheFormula compares bits and errors with the doc comment of Stats.
func TestLayersFollowTheFormula(t *testing.T) {
	const capacity = 8000
	f := dedupe.New(dedupe.Options{Capacity: capacity, Recent: -1})
	for _, tt := range []struct {
		urls, layers int
		bits         float64 // for each URL
	}{
		{capacity, 1, 14.5},
		{2 * capacity, 2, (14.5 + 22.1) / 2},
		{4 * capacity, 3, (14.5 + 22.1 + 2*23.5) / 4},
		{8 * capacity, 4, (14.5 + 22.1 + 2*23.5 + 4*24.9) / 8},
	} {
		for i := 0; f.Stats().URLs < tt.urls*999/1000; i++ { // shards start layers with some delay
			f.Add(fmt.Sprint(tt.urls, "/", i))
		}
		s := f.Stats()
		require.Equal(t, tt.layers, s.Layers)
		require.InEpsilon(t, tt.bits*float64(tt.urls), s.Bits, 0.03, "%d layers", tt.layers)
		require.LessOrEqual(t, s.Error, dedupe.DefaultRate)
	}
}

// TestBatchDoesTheSameAsAdd adds the same URLs to two filters, one by one and in batches with
// repetitions. Only false positives, which are random, may differ.
func TestBatchDoesTheSameAsAdd(t *testing.T) {
	for name, opts := range map[string]dedupe.Options{
		"default":  {},
		"shards":   {Capacity: 100_000, Rate: 1e-9, Recent: 1000},
		"grows":    {Capacity: 500, Rate: 1e-9, Recent: 30},
		"no list":  {Capacity: 500, Rate: 1e-9, Recent: -1},
		"rotating": {Capacity: 50_000, Rate: 1e-9, Generations: 3},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 0))
			single, batched := dedupe.New(opts), dedupe.New(opts)
			added := []bool{true, false, true} // AddBatch must keep these
			const before = 3
			for round := range 60 {
				urls := make([]string, random.IntN(300))
				for i := range urls {
					urls[i] = strconv.Itoa(random.IntN(10_000))
				}
				if round%3 == 0 { // so that both lists of the latest URLs get some
					for _, url := range urls {
						require.Equal(t, single.Add(url), batched.Add(url))
					}
					continue
				}
				added = batched.AddBatch(added[:before], urls)
				require.Equal(t, []bool{true, false, true}, added[:before])
				require.Len(t, added, before+len(urls))
				for i, url := range urls {
					require.Equal(t, single.Add(url), added[before+i], "%d of %q", i, urls)
				}
			}
			require.Equal(t, single.Stats().URLs, batched.Stats().URLs)
		})
	}
}

func TestConcurrentBatches(t *testing.T) {
	const goroutines, urls = 4, 20_000
	f := dedupe.New(dedupe.Options{Capacity: 5000, Rate: 1e-12, Recent: 100})
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 0))
			batch := make([]string, urls)
			for i, n := range random.Perm(urls) {
				batch[i] = strconv.Itoa(n)
			}
			for ; len(batch) > 0; batch = batch[1000:] {
				f.AddBatch(nil, batch[:1000])
			}
		})
	}
	wg.Wait()
	require.Equal(t, urls, f.Stats().URLs)
	require.LessOrEqual(t, f.Stats().Error, 1e-12)
}

// TestRotatingFilterRemembersCapacityURLs checks both halves of the promise: a URL added within the
// last Capacity URLs is known, and a URL that was not added for much longer is forgotten.
func TestRotatingFilterRemembersCapacityURLs(t *testing.T) {
	const capacity, generations = 5000, 4
	f := dedupe.New(dedupe.Options{
		Capacity: capacity, Rate: 1e-9, Recent: 10, Generations: generations,
	})
	const home = "https://a.test/"
	require.True(t, f.Add(home))
	var size uint64
	for i := range 20 * capacity {
		require.True(t, f.Add(strconv.Itoa(i)))
		if i >= capacity {
			// A URL that is added again in time stays known.
			if i%(capacity/2) == 0 {
				require.False(t, f.Add(home))
			}
			old := i - capacity*9/10 // a repeated URL takes space, too
			if i%1000 == 0 {
				require.False(t, f.Add(strconv.Itoa(old)), old)
			}
		}
		if i == 10*capacity {
			size = f.Stats().Bits
		}
	}
	require.True(t, f.Add("0"))
	require.True(t, f.Add(strconv.Itoa(20*capacity-capacity*3/2+1)))
	require.Equal(t, size, f.Stats().Bits)
	require.Equal(t, generations+1, f.Stats().Layers)
	require.False(t, f.Stats().Saturated)
}

// TestBatchesReuseTheirMemory allows the garbage collector to empty the pool a few times.
func TestBatchesReuseTheirMemory(t *testing.T) {
	f := dedupe.New(dedupe.Options{})
	urls := make([]string, 1000)
	for i := range urls {
		urls[i] = strconv.Itoa(i)
	}
	added := f.AddBatch(nil, urls)
	perBatch := testing.AllocsPerRun(50, func() { added = f.AddBatch(added[:0], urls) })
	require.Less(t, perBatch, 5.0)
}
