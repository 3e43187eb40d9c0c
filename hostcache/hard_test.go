package hostcache_test

import (
	"context"
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

// TestScansWhileTheStructureChanges walks over prefixes while whole regions are deleted and filled
// with other keys, so that leaves burst, join and turn into nodes under the walk. What stays is seen
// once, in order; what is seen was there at some time since the walk began.
func TestScansWhileTheStructureChanges(t *testing.T) {
	t.Parallel()
	eachType(t, func(t *testing.T, empty func() mapping[string]) {
		for seed := range uint64(2) {
			r := rand.New(rand.NewPCG(seed, 7))
			m := empty()
			key := func() string {
				f := families[[]int{0, 2, 3, 6, 7}[r.IntN(5)]]
				return f.key(r)
			}
			there := map[string]string{}
			for range 1500 {
				k := key()
				there[k] = k[:min(len(k), 3)] + "."
				m.Set(k, there[k])
			}
			for _, prefix := range []string{"", "a", "com.host-1", "\xff", strings.Repeat("x", 251)} {
				scanAndChange(t, r, m, there, prefix, key)
			}
		}
	})
}

// scanAndChange walks over a prefix once.
func scanAndChange(t *testing.T, r *rand.Rand, m mapping[string], there map[string]string,
	prefix string, key func() string) {
	t.Helper()
	stable, ever := map[string]bool{}, map[string]bool{}
	for k := range there {
		if strings.HasPrefix(k, prefix) {
			stable[k], ever[k] = true, true
		}
	}
	last, first := "", true
	for k := range m.Prefix(prefix) {
		if !first && k <= last || !strings.HasPrefix(k, prefix) || !ever[k] {
			t.Fatalf("%.60q after %.60q under %.20q", k, last, prefix)
		}
		last, first = k, false
		delete(stable, k)
		for range r.IntN(4) {
			changed := key()
			delete(stable, changed)
			if r.IntN(2) == 0 {
				require.Equal(t, there[changed] != "", m.Delete(changed))
				delete(there, changed)
				continue
			}
			there[changed] = changed[:min(len(changed), 3)] + "."
			m.Set(changed, there[changed])
			ever[changed] = true
		}
	}
	require.Empty(t, stable, "%d keys were not seen", len(stable))
	compareKeys(t, m, there)
}

func compareKeys(t *testing.T, m mapping[string], there map[string]string) {
	t.Helper()
	var got []string
	for k := range m.All() {
		got = append(got, k)
	}
	require.True(t, slices.Equal(slices.Sorted(maps.Keys(there)), got))
}

// TestHostsOfAllShapes asks a cache of hosts that no name server would take for what it was given.
func TestHostsOfAllShapes(t *testing.T) {
	hosts := []string{"", ".", "..", "a.", ".a", "a..b", "\x00", "\xff.\xff", "a\x00.b"}
	for _, n := range []int{253, 254, 255, 256, 257, 300, 5000, 70_000} {
		hosts = append(hosts, strings.Repeat("a", n), strings.Repeat(".", n),
			strings.Repeat("a.", n/2), "x."+strings.Repeat("b", n))
	}
	c := hostcache.New[string](hostcache.Options{MaxBytes: -1})
	for _, host := range hosts {
		c.Set(host, "value of "+host, 0)
	}
	require.Equal(t, len(slices.Compact(slices.Sorted(slices.Values(hosts)))), c.Len())
	for _, host := range hosts {
		v, found := c.Get(host)
		require.True(t, found)
		require.True(t, v == "value of "+host, "%.40q", host)
	}
	all := maps.Collect(c.All())
	require.Len(t, all, c.Len())
	for host, v := range all {
		require.True(t, v == "value of "+host, "%.40q", host)
		require.True(t, c.Delete(host))
		require.False(t, c.Delete(host))
	}
	require.Zero(t, c.Stats().Bytes)
}

// TestNoBudgetIsTooSmall writes to caches that cannot hold a single entry, and to some that can.
func TestNoBudgetIsTooSmall(t *testing.T) {
	t.Parallel()
	for _, budget := range []int{1, 2, 31, 32, 33, 64, 200, 500, 1000} {
		c := hostcache.New[[40]byte](hostcache.Options{MaxBytes: budget})
		for i := range 500 {
			host := fmt.Sprintf("%d.%s.test", i, strings.Repeat("x", i*i%700))
			c.Set(host, [40]byte{byte(i)}, 0)
			if v, found := c.Get(host); found {
				require.Equal(t, byte(i), v[0])
			}
			c.SetNegative(host, time.Hour)
			st := c.Stats()
			require.LessOrEqual(t, st.Bytes, budget)
			require.GreaterOrEqual(t, st.Bytes, st.Entries*40)
		}
		_, err := c.Load(t.Context(), "loaded.test", loadsForty)
		require.NoError(t, err, "what cannot be kept is answered all the same")
	}
	for _, budget := range []int{-1, math.MinInt, math.MaxInt} {
		c := hostcache.New[int](hostcache.Options{MaxBytes: budget})
		for i := range 3000 {
			c.Set(fmt.Sprint(i), i, 0)
		}
		require.Equal(t, 3000, c.Len())
		require.Zero(t, c.Stats().Evicted)
	}
}

// TestEveryEntryIsAccountedFor adds up where the entries of a full cache went: each was deleted,
// evicted, dropped when its time was over, or is there.
func TestEveryEntryIsAccountedFor(t *testing.T) {
	for _, budget := range []int{3000, 40_000, 2 << 20, -1} {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(budget), 3))
			c := hostcache.New[string](hostcache.Options{MaxBytes: budget})
			added, deleted := 0, 0
			for range 5_000 {
				host := fmt.Sprintf("%d.%d.test", r.IntN(300), r.IntN(40))
				before := c.Stats()
				switch r.IntN(6) {
				case 0:
					c.Delete(host)
					deleted += before.Entries - c.Len()
				case 1:
					time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
				case 2:
					_, _ = c.Get(host)
				default:
					c.Set(host, host, time.Duration(1+r.IntN(4000))*time.Millisecond)
					after := c.Stats()
					gone := after.Evicted + after.Expired - before.Evicted - before.Expired
					added += after.Entries - before.Entries + int(gone)
				}
			}
			st := c.Stats()
			require.Equal(t, added, deleted+st.Entries+int(st.Evicted+st.Expired))
			shown := 0
			for host, v := range c.All() {
				require.Equal(t, host, v)
				shown++
			}
			require.LessOrEqual(t, shown, st.Entries)
			require.Equal(t, budget < 0, st.Evicted == 0 && budget < 0)
		})
	}
}

// TestTimesOverlapByNoInstant puts an entry at odd nanoseconds after New: it is shown at the last
// nanosecond before Expires and not at Expires, by each of the ways to ask.
func TestTimesOverlapByNoInstant(t *testing.T) {
	for _, age := range []time.Duration{0, 1, 999_999, time.Millisecond, 7*time.Hour + 1} {
		for _, ttl := range []time.Duration{1, 999_999, time.Millisecond, time.Millisecond + 1, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				c := hostcache.New[int](hostcache.Options{})
				time.Sleep(age)
				begun := time.Now()
				c.Set("a.test", 1, ttl)
				e, known := c.Lookup("a.test")
				require.True(t, known)
				over := e.Expires.Sub(begun) - ttl
				require.True(t, over >= 0 && over < time.Millisecond, over)
				time.Sleep(time.Until(e.Expires) - 1)
				require.Equal(t, [4]int{1, 1, 1, 1}, waysToAsk(c))
				time.Sleep(time.Nanosecond)
				require.Equal(t, [4]int{}, waysToAsk(c))
				require.False(t, c.Delete("a.test"), "nobody has known it for a while")
			})
		}
	}
}

// waysToAsk counts the entries that each way of asking shows. Those that drop what has expired come
// last.
func waysToAsk(c *hostcache.Cache[int]) (shown [4]int) {
	for range c.All() {
		shown[0]++
	}
	for range c.Under("test") {
		shown[1]++
	}
	for range c.Under("a.test") {
		shown[2]++
	}
	if _, found := c.Get("a.test"); found {
		shown[3]++
	}
	return shown
}

// TestWhatExpiresDuringAWalkIsNotShown sleeps in the body of the loop.
func TestWhatExpiresDuringAWalkIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[int](hostcache.Options{})
		for i := range 100 {
			c.Set(fmt.Sprintf("%02d.test", i), i, time.Duration(1+i%50)*time.Second)
		}
		begun, last := time.Now(), -1
		for _, v := range c.Under("test") {
			require.Greater(t, v, last)
			require.Less(t, time.Since(begun), time.Duration(1+v%50)*time.Second)
			last = v
			time.Sleep(900 * time.Millisecond)
		}
		require.Greater(t, last, 45)
	})
}

// TestAPastExpiryDoesNotComeBack sets, expires and sets again, with other kinds of entries.
func TestAPastExpiryDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hostcache.New[int](hostcache.Options{TTL: time.Second, NegativeTTL: -5})
		for i := range 200 {
			c.Set("a.test", i, 0)
			time.Sleep(time.Second - 1)
			v, found := c.Get("a.test")
			require.True(t, found)
			require.Equal(t, i, v)
			if i%2 == 0 {
				time.Sleep(time.Millisecond) // times are rounded up to it
				require.False(t, c.Delete("a.test"))
			} else {
				c.SetNegative("a.test", 0) // which is not kept, nor is what was before
			}
			_, known := c.Lookup("a.test")
			require.False(t, known)
		}
		c.Set("a.test", 1, math.MinInt64)
		require.Zero(t, c.Len())
	})
}

// TestEverythingAtOnce has the race detector look at all methods of a small cache, with values that
// say whose they are and whose slots are given to others all the time.
func TestEverythingAtOnce(t *testing.T) {
	c := hostcache.New[*string](hostcache.Options{MaxBytes: 60_000})
	s := hostcache.NewSharded[*string]()
	dir := t.TempDir()
	codec := hostcache.Codec[*string]{
		Append: func(to []byte, v *string) []byte { return append(to, *v...) },
		Decode: func(b []byte) (*string, error) { v := string(b); return &v, nil },
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 9))
			for range 2500 {
				host := fmt.Sprintf("%s%d.test", strings.Repeat("h", r.IntN(3)*150), r.IntN(400))
				switch r.IntN(4) {
				case 0:
					c.Set(host, &host, time.Duration(r.IntN(3000))*time.Microsecond)
					s.Set(host, &host)
				case 1:
					c.Delete(host)
					s.Delete(host)
				default:
					v, found := c.Get(host)
					w, there := s.Get(host)
					if found && *v != host || there && *w != host {
						t.Errorf("%q has another's value", host)
					}
				}
			}
		})
		wg.Go(func() {
			file := fmt.Sprintf("%s/hosts%d", dir, g%2)
			for range 6 {
				if err := c.Save(file, codec); err != nil {
					t.Error(err)
					return
				}
				again, err := hostcache.Open(file, codec, hostcache.Options{MaxBytes: -1})
				if err != nil {
					t.Error(err)
					return
				}
				for host, v := range again.All() {
					if host != *v {
						t.Errorf("%q was saved with %q", host, *v)
					}
				}
				for key, v := range s.Prefix("h") {
					if key != *v {
						t.Errorf("%q has %q", key, *v)
					}
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, c.Stats().Bytes, 60_000)
}

func loadsForty(context.Context, string) ([40]byte, time.Duration, error) {
	return [40]byte{1}, 0, nil
}
