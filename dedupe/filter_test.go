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
	require.Zero(t, f.Stats().URLs)
	require.True(t, f.Add("https://a.test/"))
	require.False(t, f.Add("https://a.test/"))
	require.True(t, f.Add("https://a.test/?"))
	require.True(t, f.Add(""))
	require.False(t, f.Add(""))
	require.Equal(t, 3, f.Stats().URLs)
}

// TestModel compares filters with a map. A filter may report a new URL as known, but never a known
// URL as new, whatever its size and fill.
func TestModel(t *testing.T) {
	optionSets := map[string]dedupe.Options{
		"default":         {},
		"no list":         {Recent: -1},
		"list of one":     {Capacity: 5000, Recent: 1},
		"mixed":           {Capacity: 40_000, Rate: 0.01, Recent: 500},
		"everything fits": {Capacity: 100, Recent: 1 << 20},
		"far too small":   {Capacity: 10, Rate: 0.5, Recent: 10},
		"saturated":       {Capacity: 10, Rate: 0.5, Recent: 10, MaxBytes: -1},
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
		// Small numbers are frequent, like links to home pages.
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
	require.Equal(t, added, f.Stats().URLs)
	require.Equal(t, added, f.Stats().URLs)
	for url := range met {
		if f.Add(url) {
			t.Fatalf("%s was forgotten after %d URLs", url, len(met))
		}
	}
}

// TestErrorMatchesStats fills filters far beyond their capacity. At any fill, the share of new URLs
// that are reported as known must match Stats within a tenth or six standard deviations. It must
// never exceed Rate unless the filter is saturated.
func TestErrorMatchesStats(t *testing.T) {
	for name, opts := range map[string]dedupe.Options{
		"one shard":         {Capacity: 10_000, Rate: 0.02, Recent: -1},
		"four shards":       {Capacity: 70_000, Rate: 0.02, Recent: -1},
		"uneven hashes":     {Capacity: 10_000, Rate: 0.2, Recent: 10},
		"a list":            {Capacity: 10_000, Rate: 0.05, Recent: 4000},
		"strict":            {Capacity: 10_000, Rate: 0.001, Recent: 100},
		"rotating":          {Capacity: 10_000, Rate: 0.02, Recent: 100, Generations: 3},
		"never grows":       {Capacity: 10_000, Rate: 0.01, Recent: 100, MaxBytes: -1},
		"grows a little":    {Capacity: 10_000, Rate: 0.01, Recent: 100, MaxBytes: 50_000},
		"grows, many rates": {Capacity: 1000, Rate: 0.01, Recent: -1},
	} {
		t.Run(name, func(t *testing.T) {
			f := dedupe.New(opts)
			saturated := false
			for i := range 14 {
				n := opts.Capacity / 4
				before := f.Stats().Error
				wrong := float64(n - fill(f, strconv.Itoa(i), n))
				after := f.Stats() // the new URLs have filled it further
				want := float64(n) * (before + after.Error) / 2
				slack := max(want/10, 6*math.Sqrt(want)+2)
				if after.Error >= before { // otherwise a generation was dropped in between
					require.InDelta(t, want, wrong, slack, "%+v", after)
				}
				saturated = saturated || after.Saturated
				if !saturated {
					require.LessOrEqual(t, after.Error, opts.Rate, "%+v", after)
				}
			}
			require.Equal(t, opts.MaxBytes != 0, saturated)
			if saturated {
				require.Greater(t, f.Stats().Error, opts.Rate)
			}
		})
	}
}

// fill adds n URLs of the given kind and returns how many of them were reported as new.
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

	// A known URL that returns to the list must not be counted again when it is evicted.
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

func TestTheSmallestRate(t *testing.T) {
	f := dedupe.New(dedupe.Options{Capacity: 100, Rate: math.SmallestNonzeroFloat64, Generations: 64})
	require.Equal(t, 300, fill(f, "a", 300))
	require.False(t, f.Add("https://a.test/299"))
}

// TestTheLongestLists requests lists that can never be filled.
func TestTheLongestLists(t *testing.T) {
	for _, capacity := range []int{1000, 100_000} { // one shard and several
		f := dedupe.New(dedupe.Options{Capacity: capacity, Recent: math.MaxInt})
		fill(f, "a", 500)
		require.Equal(t, 500, f.Stats().Recent)
		require.Zero(t, f.Stats().Error)
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

// TestConcurrentAdds adds each URL from several goroutines: exactly one Add may return true.
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
	require.Equal(t, urls, f.Stats().URLs)
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
