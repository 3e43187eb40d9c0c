package hostcache_test

import (
	"fmt"
	"maps"
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
		opts      hostcache.Options
		ttl, want time.Duration // 0: not kept at all
		negative  bool
	}{
		{"given", hostcache.Options{}, 90 * time.Second, 90 * time.Second, false},
		{"given, of a negative entry", hostcache.Options{}, time.Second, time.Second, true},
		{"default", hostcache.Options{}, 0, hostcache.DefaultTTL, false},
		{"default, negative", hostcache.Options{}, 0, hostcache.DefaultNegativeTTL, true},
		{"option", hostcache.Options{TTL: time.Minute}, 0, time.Minute, false},
		{"option, negative", hostcache.Options{NegativeTTL: time.Minute}, 0, time.Minute, true},
		{"not kept", hostcache.Options{}, -1, 0, false},
		{"negative ones not kept", hostcache.Options{NegativeTTL: -1}, 0, 0, true},
		{"rounded up to milliseconds", hostcache.Options{}, 1, ms, false},
		{"rounded up over a second", hostcache.Options{}, time.Second + 1, time.Second + ms, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := hostcache.New[string](tt.opts)
				time.Sleep(1234 * ms)
				c.Set("a.test", "old", time.Hour)
				if tt.negative {
					c.SetNegative("a.test", tt.ttl)
				} else {
					c.Set("a.test", "new", tt.ttl)
				}
				if tt.want > 0 {
					time.Sleep(tt.want - 1)
					e, known := c.Lookup("a.test")
					require.True(t, known)
					require.Equal(t, tt.negative, e.Negative)
					require.True(t, time.Now().Add(1).Equal(e.Expires), e.Expires)
					_, found := c.Get("a.test")
					require.Equal(t, !tt.negative, found)
					time.Sleep(time.Nanosecond)
				}
				_, known := c.Lookup("a.test")
				require.False(t, known)
				require.Zero(t, c.Len(), "what is met after its time is dropped")
			})
		})
	}
}

func TestSomeEntriesLiveForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[int](hostcache.Options{TTL: -1})
		c.Set("option.test", 1, 0)
		c.Set("long.test", 2, 1<<63-1)
		time.Sleep(100 * 365 * 24 * time.Hour)
		e, _ := c.Lookup("option.test")
		require.Equal(t, hostcache.Entry[int]{Value: 1}, plain(e))
		require.Zero(t, e.Expires)
		_, found := c.Get("long.test")
		require.True(t, found)
	})
}

// plain is an entry as a caller could make it.
func plain(e hostcache.Entry[int]) hostcache.Entry[int] {
	return hostcache.Entry[int]{Value: e.Value, Negative: e.Negative, Expires: e.Expires}
}

// TestWritingDropsWhatHasExpired writes new entries until the hand has been everywhere: nobody asks
// for the old ones.
func TestWritingDropsWhatHasExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[int](hostcache.Options{})
		for i := range 10_000 {
			c.Set(fmt.Sprintf("old-%d.test", i), i, time.Second)
		}
		time.Sleep(time.Second)
		most := 0
		for i := range 10_000 {
			c.Set(fmt.Sprintf("new-%d.test", i), i, 0)
			if i%100 == 0 {
				most = max(most, c.Len())
			}
		}
		require.Less(t, c.Len(), 10_100, "hardly any old one is left")
		// A leaf that is rewritten while the broom is in it may hide some until the next round.
		for i := range 10_000 {
			c.Set(fmt.Sprintf("new-%d.test", i), i, 0)
		}
		require.Equal(t, 10_000, c.Len())
		require.EqualValues(t, 10_000, c.Stats().Expired)
		require.Less(t, most, 15_000, "the old ones go much faster than the new ones come")
	})
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
		c.Set(host, host, 0)
		want[host] = host
		c.SetNegative("negative."+host, 0)
	}
	maps.DeleteFunc(want, func(host, _ string) bool { return strings.HasPrefix(host, "negative.") })
	for _, domain := range []string{
		"com", "example.com", "www.example.com", "x.example.com", "xample.com", "", ".", "10",
	} {
		var hosts []string
		for host := range want {
			if host == domain || strings.HasSuffix(host, "."+domain) {
				hosts = append(hosts, host)
			}
		}
		got := map[string]string{}
		for host, v := range c.Under(domain) {
			if !strings.HasPrefix(host, "negative.") {
				got[host] = v
			}
		}
		require.ElementsMatch(t, hosts, slices.Collect(maps.Keys(got)), "%q", domain)
	}
	require.Equal(t, want, maps.Collect(c.All()))
}

func TestHostsOfADomainComeInOrder(t *testing.T) {
	c := hostcache.New[int](hostcache.Options{})
	for i, host := range []string{
		"b.example.com", "example.org", "example.com", "example-x.com", "x.a.example.com",
		"a.example.com", "com",
	} {
		c.Set(host, i, 0)
	}
	c.SetNegative("c.example.com", 0)
	c.Set("gone.example.com", 0, 0)
	c.Delete("gone.example.com")
	var got []string
	for host := range c.Under("example.com") {
		got = append(got, host)
	}
	require.Equal(t, []string{
		"example.com", "a.example.com", "x.a.example.com", "b.example.com",
	}, got)
	for range c.Under("example.com") {
		break
	}
}

// TestMemoryStaysWithinItsBounds looks at the budget after every single step.
func TestMemoryStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	for _, budget := range []int{-1, 100, 5000, 100_000} {
		t.Run(fmt.Sprintf("bytes=%d", budget), func(t *testing.T) {
			testBudget(t, hostcache.New[string](hostcache.Options{MaxBytes: budget}), budget, "v")
			type pair [2]int64
			testBudget(t, hostcache.New[pair](hostcache.Options{MaxBytes: budget}), budget, pair{})
		})
	}
	t.Run("bytes=2097152", func(t *testing.T) { // in two shards, and big enough to fill them
		type big [500]byte
		testBudget(t, hostcache.New[big](hostcache.Options{MaxBytes: 2 << 20}), 2<<20, big{})
	})
}

func testBudget[V any](t *testing.T, c *hostcache.Cache[V], budget int, v V) {
	steps := 3000 // several times as many as fit
	if budget >= 100_000 {
		steps = 6000
	}
	r := rand.New(rand.NewPCG(1, 0))
	for i := range steps {
		c.Set(fmt.Sprintf("%s.host-%d.test", strings.Repeat("x", r.IntN(40)), i), v, 0)
		if budget < 0 {
			continue
		}
		if st := c.Stats(); st.Bytes > budget {
			t.Fatalf("step %d: %d bytes", i, st.Bytes)
		}
	}
	st := c.Stats()
	require.EqualValues(t, steps-st.Entries, st.Evicted)
	require.Equal(t, budget > 0, st.Evicted > 0, "the budget was reached")
	if budget >= 100_000 {
		require.Greater(t, st.Bytes, budget*9/10, "the budget is used")
	}
	if budget >= 1<<20 {
		require.Less(t, st.Reserved, budget*5/4)
	}
}

// TestWhatIsUsedStays asks for some hosts again and again while many others pass through.
func TestWhatIsUsedStays(t *testing.T) {
	t.Parallel()
	c := hostcache.New[[16]byte](hostcache.Options{MaxBytes: 100_000})
	hot := func(i int) string { return fmt.Sprintf("hot-%d.test", i) }
	for i := range 500 {
		c.Set(hot(i), [16]byte{}, 0)
	}
	for i := range 25_000 {
		c.Set(fmt.Sprintf("passing-%d.test", i), [16]byte{}, 0)
		_, _ = c.Get(hot(i % 500))
	}
	kept := 0
	for i := range 500 {
		_, found := c.Get(hot(i))
		if found {
			kept++
		}
	}
	require.Equal(t, 500, kept)
	require.Greater(t, c.Stats().Evicted, uint64(20_000))
}

// TestWhatWasDearStaysLonger loads hosts that take long and hosts that do not, and then lets others
// pass through: more of the former are left.
func TestWhatWasDearStaysLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[[16]byte](hostcache.Options{MaxBytes: 300_000})
		for i := range 1000 {
			for kind, took := range map[string]time.Duration{"dear": 2 * time.Second, "cheap": 0} {
				_, err := c.Load(t.Context(), fmt.Sprintf("%s-%d.test", kind, i), slow(took))
				require.NoError(t, err)
			}
		}
		left := func(kind string) (n int) {
			for i := range 1000 {
				if _, known := c.Lookup(fmt.Sprintf("%s-%d.test", kind, i)); known {
					n++
				}
			}
			return n
		}
		// Looking for an entry is a use, so it is done when most have had the time to go.
		for i := range 15_000 {
			c.Set(fmt.Sprintf("passing-%d.test", i), [16]byte{}, 0)
		}
		cheap, dear := left("cheap"), left("dear")
		require.Less(t, cheap, 600)
		require.Greater(t, dear, 900)
	})
}

// TestModel compares a cache with a map that expires by the clock.
func TestModel(t *testing.T) {
	type known struct {
		v        int
		negative bool
		until    time.Time
	}
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			c, want := hostcache.New[int](hostcache.Options{MaxBytes: -1}), map[string]known{}
			for i := range 5000 {
				host := fmt.Sprintf("%d.%d.test", r.IntN(20), r.IntN(30))
				ttl := time.Duration(1+r.IntN(1000)) * time.Millisecond
				switch r.IntN(8) {
				case 0:
					c.SetNegative(host, ttl)
					want[host] = known{0, true, time.Now().Add(ttl)}
				case 1, 2:
					c.Set(host, i, ttl)
					want[host] = known{i, false, time.Now().Add(ttl)}
				case 3:
					require.Equal(t, time.Now().Before(want[host].until), c.Delete(host))
					delete(want, host)
				case 4:
					time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
				default:
					w := want[host]
					there := time.Now().Before(w.until)
					e, found := c.Lookup(host)
					require.Equal(t, there, found)
					if there {
						require.Equal(t, w, known{e.Value, e.Negative, w.until})
						require.True(t, w.until.Equal(e.Expires))
					}
				}
			}
		})
	}
}

func TestCacheByMany(t *testing.T) {
	c := hostcache.New[string](hostcache.Options{MaxBytes: 400_000})
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := range 3000 {
				host := fmt.Sprintf("%d.%d.test", i%1000, i%7)
				switch (i + g) % 6 {
				case 0:
					c.Set(host, host, time.Duration(i%50)*time.Millisecond)
				case 1:
					c.Delete(host)
				case 2:
					c.SetNegative(host, 0)
				default:
					if v, found := c.Get(host); found && v != host {
						t.Errorf("%q has %q", host, v)
					}
				}
			}
			for host, v := range c.Under("3.test") {
				if host != v {
					t.Errorf("%q has %q", host, v)
				}
			}
		})
	}
	wg.Wait()
	st := c.Stats()
	require.Equal(t, uint64(6*1500), st.Hits+st.Misses)
}

func TestHitsAllocateNothing(t *testing.T) {
	c := hostcache.New[[16]byte](hostcache.Options{})
	for i := range 2000 {
		c.Set(fmt.Sprintf("www.host-%d.test", i), [16]byte{1}, 0)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = c.Get("www.host-77.test")
		_, _ = c.Get("absent.test")
		c.Set("www.host-78.test", [16]byte{}, 0)
	}))
}
