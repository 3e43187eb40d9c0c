package hostcache_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/hostcache"
)

func TestEntriesLiveAsLongAsTheyShould(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name      string
		ttl, want time.Duration // 0: not kept
	}{
		{"a minute", time.Minute, time.Minute},
		{"zero is not kept", 0, 0},
		{"negative is not kept", -1, 0},
		{"very negative is not kept", math.MinInt64, 0},
		{"rounded up to milliseconds", 1, ms},
		{"rounded up over a second", time.Second + 1, time.Second + ms},
	} {
		for _, negative := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/negative=%v", tt.name, negative), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := hostcache.New[string](hostcache.Options{})
					time.Sleep(1234 * ms)
					c.Set("a.test", "old", time.Hour)
					if negative {
						c.SetNegative("a.test", tt.ttl)
					} else {
						c.Set("a.test", "new", tt.ttl)
					}
					if tt.want > 0 {
						e, known := c.Lookup("a.test")
						require.True(t, known)
						require.Equal(t, negative, e.Negative)
						require.Equal(t, time.Now().Add(tt.want).UTC(), e.Expires)
						time.Sleep(tt.want - 1)
						require.Equal(t, []string{"a.test"}, slices.Collect(maps.Keys(maps.Collect(c.All()))))
						_, found := c.Get("a.test")
						require.Equal(t, !negative, found)
						time.Sleep(time.Nanosecond)
					}
					require.Empty(t, maps.Collect(c.All()))
					require.Empty(t, maps.Collect(c.Under("a.test")))
					require.Empty(t, maps.Collect(c.Under("test")))
					_, known := c.Lookup("a.test")
					require.False(t, known)
					require.Zero(t, c.Len(), "an expired entry that is met is dropped")
					require.False(t, c.Delete("a.test"))
				})
			})
		}
	}
}

func TestSomeEntriesLiveForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[int](hostcache.Options{})
		c.Set("a.test", 1, hostcache.Forever)
		time.Sleep(200 * 365 * 24 * time.Hour)
		e, _ := c.Lookup("a.test")
		require.Equal(t, hostcache.Entry[int]{Value: 1}, e)
	})
}

// TestWritingDropsExpiredEntries writes new entries until the broom has passed everything. The old
// ones are never looked up.
func TestWritingDropsExpiredEntries(t *testing.T) {
	t.Parallel()
	for _, max := range []int{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			c := hostcache.New[int](hostcache.Options{MaxBytes: max})
			for i := range 10_000 {
				c.Set(fmt.Sprintf("old-%d.test", i), i, time.Second)
			}
			time.Sleep(time.Second)
			for round := range 2 {
				for i := range 10_000 {
					c.Set(fmt.Sprintf("new-%d.test", i), i, time.Hour)
				}
				require.Less(t, c.Len(), 13_000, "round %d", round)
			}
			require.Less(t, c.Len(), 10_100)
			require.Greater(t, c.Stats().Expired, uint64(9_900))
			require.Zero(t, c.Stats().Evicted)
		})
	}
}

func TestUnderAgainstAll(t *testing.T) {
	c := hostcache.New[string](hostcache.Options{MaxBytes: -1})
	r := rand.New(rand.NewPCG(1, 0))
	labels := []string{"com", "example", "example-x", "www", "a", "xn--bcher-kva", "10", ""}
	want := map[string]string{}
	for range 3000 {
		parts := make([]string, 1+r.IntN(4))
		for i := range parts {
			parts[i] = labels[r.IntN(len(labels))]
		}
		host := strings.Join(parts, ".")
		c.Set(host, host, time.Hour)
		want[host] = host
		c.SetNegative("negative."+host, time.Hour)
	}
	for _, domain := range []string{
		"com", "example.com", "www.example.com", "x.example.com", "xample.com", "", ".", "10",
	} {
		hosts := map[string]string{}
		for host := range want {
			if domain == "" || host == domain || strings.HasSuffix(host, "."+domain) {
				hosts[host] = host
			}
		}
		require.Equal(t, hosts, maps.Collect(c.Under(domain)), "%q", domain)
	}
	negative := 0
	all := map[string]string{}
	for host, e := range c.All() {
		if e.Negative {
			negative++
			continue
		}
		all[host] = e.Value
	}
	require.Equal(t, want, all)
	require.Equal(t, len(want), negative)
}

// TestWalksHoldNoLock uses the cache in the loop's body, for as many entries as take several
// batches.
func TestWalksHoldNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[int](hostcache.Options{})
		for i := range 5000 {
			c.Set(fmt.Sprintf("%d.test", i), i, time.Duration(1+i)*time.Second)
		}
		begun, shown := time.Now(), map[string]bool{}
		for host, v := range c.Under("test") {
			require.False(t, shown[host], "shown once")
			if strings.HasPrefix(host, "new-") {
				continue
			}
			require.Less(t, time.Since(begun), time.Duration(1+v)*time.Second, "not shown after its time")
			shown[host] = true
			c.Set(host, v, time.Hour)
			c.Set("new-"+host, v, time.Hour)
			c.Delete(fmt.Sprintf("%d.test", v+1))
			time.Sleep(time.Millisecond)
			if len(shown) == 2000 {
				break
			}
		}
		require.Len(t, shown, 2000)
	})
}

// TestHostsOfAllShapes looks up hosts that no name server would accept.
func TestHostsOfAllShapes(t *testing.T) {
	hosts := []string{"", ".", "..", "a.", ".a", "a..b", "\x00", "\xff.\xff", "a\x00.b"}
	for _, n := range []int{63, 126, 250, 251, 252, 253} {
		hosts = append(hosts, strings.Repeat("a", n), strings.Repeat(".", n),
			strings.Repeat("a.", n/2), "x."+strings.Repeat("b", n-2))
	}
	c := hostcache.New[string](hostcache.Options{MaxBytes: -1})
	want := map[string]string{}
	for _, host := range hosts {
		c.Set(host, "value of "+host, time.Hour)
		want[host] = "value of " + host
		v, found := c.Get(host)
		require.True(t, found)
		require.Equal(t, want[host], v)
	}
	require.Equal(t, want, maps.Collect(c.Under("")))
	for _, n := range []int{254, 300, 70_000} {
		long := strings.Repeat("a", n)
		c.Set(long, "long", time.Hour)
		c.SetNegative(long, time.Hour)
		_, known := c.Lookup(long)
		require.False(t, known)
		require.False(t, c.Delete(long))
		require.Empty(t, maps.Collect(c.Under(long)))
	}
	for host := range want {
		require.True(t, c.Delete(host))
		require.False(t, c.Delete(host))
	}
	require.Zero(t, c.Len())
}

// TestMemoryStaysWithinItsBound writes several times as many entries as fit, of all sizes, with
// values that are stored in different ways.
func TestMemoryStaysWithinItsBound(t *testing.T) {
	t.Parallel()
	for _, max := range []int{1, 300_000, 1 << 20, 2 << 20} {
		t.Run(fmt.Sprintf("bytes=%d", max), func(t *testing.T) {
			testBound(t, max, [16]byte{})
			testBound(t, max, [500]byte{})
			testBound(t, max, "text")
		})
	}
}

func testBound[V any](t *testing.T, max int, v V) {
	c := hostcache.New[V](hostcache.Options{MaxBytes: max})
	max = maxOf(max, 256<<10)
	r := rand.New(rand.NewPCG(1, 0))
	full := 0
	for i := range 60_000 {
		host := fmt.Sprintf("%s.host-%d.test", strings.Repeat("x", r.IntN(40)), r.IntN(50_000))
		switch r.IntN(10) {
		case 0:
			c.Delete(host)
		case 1:
			_, _ = c.Get(host)
		default:
			c.Set(host, v, time.Hour)
		}
		st := c.Stats()
		if st.Bytes > max {
			t.Fatalf("step %d: %d bytes", i, st.Bytes)
		}
		full = maxOf(full, st.Bytes)
	}
	require.Positive(t, c.Stats().Evicted)
	require.Greater(t, full, max*9/10, "the memory is used")
}

func maxOf(a, b int) int { return max(a, b) }

// TestAValueTooBigIsNotKept has values that are all too big.
func TestAValueTooBigIsNotKept(t *testing.T) {
	c := hostcache.New[[300_000]byte](hostcache.Options{MaxBytes: 1})
	c.Set("a.test", [300_000]byte{}, time.Hour)
	require.Zero(t, c.Len())
	v, err := c.Load(t.Context(), "a.test", slow[[300_000]byte](0))
	require.NoError(t, err)
	require.Equal(t, [300_000]byte{}, v)
}

func TestUnlimitedCachesEvictNothing(t *testing.T) {
	for _, max := range []int{-1, math.MinInt, math.MaxInt} {
		c := hostcache.New[int](hostcache.Options{MaxBytes: max})
		for i := range 30_000 {
			c.Set(fmt.Sprint(i), i, time.Hour)
		}
		require.Equal(t, 30_000, c.Len())
		require.Zero(t, c.Stats().Evicted)
	}
}

// TestWhatIsUsedStays looks up some hosts again and again while many others pass through.
func TestWhatIsUsedStays(t *testing.T) {
	t.Parallel()
	c := hostcache.New[[16]byte](hostcache.Options{MaxBytes: 300_000})
	hot := func(i int) string { return fmt.Sprintf("hot-%d.test", i) }
	for i := range 500 {
		c.Set(hot(i), [16]byte{}, time.Hour)
		_, _ = c.Get(hot(i))
	}
	for i := range 30_000 {
		c.Set(fmt.Sprintf("passing-%d.test", i), [16]byte{}, time.Hour)
		_, _ = c.Get(hot(i % 500))
	}
	kept := 0
	for i := range 500 {
		if _, found := c.Get(hot(i)); found {
			kept++
		}
	}
	require.Equal(t, 500, kept)
	require.Greater(t, c.Stats().Evicted, uint64(20_000))
}

// TestModel compares a cache with a map that expires by the clock.
func TestModel(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			c, want := hostcache.New[int](hostcache.Options{MaxBytes: -1}), map[string]hostcache.Entry[int]{}
			for i := range 5000 {
				host := fmt.Sprintf("%d.%d.test", r.IntN(20), r.IntN(30))
				ttl := time.Duration(1+r.IntN(1000)) * time.Millisecond
				e := hostcache.Entry[int]{Value: i, Expires: time.Now().Add(ttl).UTC()}
				switch r.IntN(7) {
				case 0:
					e.Value, e.Negative = 0, true
					c.SetNegative(host, ttl)
					want[host] = e
				case 1:
					c.Set(host, i, ttl)
					want[host] = e
				case 2:
					require.Equal(t, time.Now().Before(want[host].Expires), c.Delete(host))
					delete(want, host)
				case 3:
					time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
				default:
					got, known := c.Lookup(host)
					require.Equal(t, time.Now().Before(want[host].Expires), known)
					if known {
						require.Equal(t, want[host], got)
					}
				}
			}
		})
	}
}

// TestEveryEntryIsAccountedFor checks the counters of a full cache: each entry was deleted,
// evicted, dropped when it expired, or is still there.
func TestEveryEntryIsAccountedFor(t *testing.T) {
	for _, budget := range []int{1, 2 << 20, -1} {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(budget), 3))
			c := hostcache.New[[80]byte](hostcache.Options{MaxBytes: budget})
			added, deleted := 0, 0
			for range 20_000 {
				host := fmt.Sprintf("%d.%d.test", r.IntN(300), r.IntN(40))
				before := c.Stats()
				switch r.IntN(8) {
				case 0:
					c.Delete(host)
					deleted += before.Entries - c.Len()
				case 1:
					time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
				case 2:
					_, _ = c.Get(host)
				default:
					c.Set(host, [80]byte{}, time.Duration(1+r.IntN(8000))*time.Millisecond)
					after := c.Stats()
					gone := after.Evicted + after.Expired - before.Evicted - before.Expired
					added += after.Entries - before.Entries + int(gone)
				}
			}
			st := c.Stats()
			require.Equal(t, added, deleted+st.Entries+int(st.Evicted+st.Expired))
			require.Equal(t, budget == 1, st.Evicted > 0)
		})
	}
}

func TestCacheByMany(t *testing.T) {
	c := hostcache.New[*string](hostcache.Options{MaxBytes: 1})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 9))
			for i := range 5000 {
				host := fmt.Sprintf("%s%d.test", strings.Repeat("h", r.IntN(3)*50), r.IntN(4000))
				switch r.IntN(4) {
				case 0, 1:
					c.Set(host, &host, time.Duration(r.IntN(3000))*time.Microsecond)
				case 2:
					c.Delete(host)
				default:
					if v, found := c.Get(host); found && *v != host {
						t.Errorf("%q has another's value", host)
					}
				}
				if i%1000 == 0 {
					for host, v := range c.Under("test") {
						if host != *v {
							t.Errorf("%q has another's value", host)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, c.Stats().Bytes, 256<<10)
}

func TestHitsAllocateNothing(t *testing.T) {
	c := hostcache.New[[16]byte](hostcache.Options{})
	for i := range 2000 {
		c.Set(fmt.Sprintf("www.host-%d.test", i), [16]byte{1}, time.Hour)
	}
	load := slow[[16]byte](0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = c.Get("www.host-77.test")
		_, _ = c.Get("absent.test")
		_, _ = c.Lookup("www.host-79.test")
		_, _ = c.Load(t.Context(), "www.host-80.test", load)
	}))
}

// TestASetEvictsFew has values of a size that leaves many holes, none of which is large enough.
func TestASetEvictsFew(t *testing.T) {
	c := hostcache.New[[128]byte](hostcache.Options{MaxBytes: 1 << 20})
	r := rand.New(rand.NewPCG(1, 52))
	last := uint64(0)
	for range 20_000 {
		host := fmt.Sprintf("www.%d.test", r.Uint32())
		if r.IntN(2) == 0 {
			host = fmt.Sprintf("%s.%d.%d.test", strings.Repeat("a", 110), r.Uint32(), r.IntN(100))
		}
		c.Set(host, [128]byte{}, hostcache.Forever)
		evicted := c.Stats().Evicted
		require.Less(t, evicted-last, uint64(640))
		last = evicted
	}
	require.Positive(t, last)
}
