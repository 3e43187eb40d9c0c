package hostcache_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/hostcache"
)

type value [16]byte

// benchHosts is how many names the benchmarks use: a million, or what SPINNERET_HOSTS says.
func benchHosts(b *testing.B) int {
	if n, err := strconv.Atoi(os.Getenv("SPINNERET_HOSTS")); err == nil {
		return n
	}
	if testing.Short() {
		return 20_000
	}
	return 1_000_000
}

// A bench is a structure that is measured.
type bench struct {
	name   string
	put    func(key string)
	get    func(key string) bool
	prefix func(prefix string) int // nil if it has no order
}

// structures make the things to compare. The map owns its keys, as it does in a crawler that got
// them out of a page.
var structures = []func() bench{
	func() bench {
		m := map[string]value{}
		return bench{
			name: "map",
			put:  func(key string) { m[strings.Clone(key)] = value{} },
			get:  func(key string) bool { _, found := m[key]; return found },
		}
	},
	func() bench {
		t := hostcache.NewTrie[value]()
		return bench{
			name:   "trie",
			put:    func(key string) { t.Set(key, value{}) },
			get:    func(key string) bool { _, found := t.Get(key); return found },
			prefix: func(prefix string) int { return count(t.Prefix(prefix)) },
		}
	},
	func() bench {
		s := hostcache.NewSharded[value]()
		return bench{
			name:   "sharded",
			put:    func(key string) { s.Set(key, value{}) },
			get:    func(key string) bool { _, found := s.Get(key); return found },
			prefix: func(prefix string) int { return count(s.Prefix(prefix)) },
		}
	},
	func() bench {
		c := hostcache.New[value](hostcache.Options{MaxBytes: -1})
		return bench{
			name: "cache",
			put:  func(key string) { c.Set(key, value{}, 0) },
			get:  func(key string) bool { _, found := c.Get(key); return found },
		}
	},
}

func count(seq func(func(string, value) bool)) (n int) {
	for range seq {
		n++
	}
	return n
}

// BenchmarkHosts puts names with reversed labels and values of 16 bytes into each structure, in
// random order, and asks for them in another one. B/host is all that the structure keeps alive, and
// gc-ms what a collection takes longer because of it.
func BenchmarkHosts(b *testing.B) {
	n := benchHosts(b)
	keys := hostNames(b, n).mapped(permutation(n, 1), reversed)
	present := keys.mapped(permutation(n, 2), strings.Clone)
	absent := keys.mapped(permutation(n, 3), func(key string) string { return key[:len(key)-1] + "~" })
	b.Logf("%.2f bytes of key and value", float64(len(keys.text))/float64(n)+16)
	for _, make := range structures {
		var s bench
		b.Run(fmt.Sprintf("op=put/hosts=%d/structure=%s", n, make().name), func(b *testing.B) {
			s = fill(b, make, keys)
		})
		if s.put == nil {
			continue // not chosen by -bench
		}
		for i, probes := range []nameList{present, absent} {
			op, want := []string{"hit", "miss"}[i], []int{n, 0}[i]
			b.Run(fmt.Sprintf("op=%s/hosts=%d/structure=%s", op, n, s.name), func(b *testing.B) {
				found := 0
				for b.Loop() {
					found = 0
					for i := range n {
						if s.get(probes.at(i)) {
							found++
						}
					}
				}
				if found != want {
					b.Fatalf("%d were found, want %d", found, want)
				}
				perHost(b, n)
			})
		}
		if s.prefix == nil {
			continue
		}
		b.Run(fmt.Sprintf("op=prefix/hosts=%d/structure=%s", n, s.name), func(b *testing.B) {
			hosts := 0
			for b.Loop() {
				hosts += s.prefix("com.")
			}
			b.ReportMetric(float64(hosts)/b.Elapsed().Seconds(), "hosts/s")
		})
	}
}

func fill(b *testing.B, make func() bench, keys nameList) (s bench) {
	bytesBefore, gcBefore := live()
	for b.Loop() {
		s = make()
		for i := range keys.len() {
			s.put(keys.at(i))
		}
	}
	perHost(b, keys.len())
	bytes, gc := live()
	n := float64(keys.len())
	b.ReportMetric((bytes-bytesBefore)/n, "B/host")
	b.ReportMetric((gc-gcBefore).Seconds()*1000, "gc-ms")
	runtime.KeepAlive(s)
	return s
}

// perHost reports the time per host when each round goes through n of them.
func perHost(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/host")
	b.ReportMetric(0, "ns/op")
}

// live returns the bytes in use, and how long a collection takes at least.
func live() (bytes float64, gc time.Duration) {
	gc = time.Hour
	for range 4 {
		start := time.Now()
		runtime.GC()
		gc = min(gc, time.Since(start))
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), gc
}

// BenchmarkFullCache sets new hosts in a cache that has to evict one for each.
func BenchmarkFullCache(b *testing.B) {
	c := hostcache.New[value](hostcache.Options{MaxBytes: 16 << 20})
	host := func(i int) string { return "www.host-" + strconv.Itoa(i*7919) + ".test" }
	for i := range 1_000_000 {
		c.Set(host(i), value{}, 0)
	}
	b.ReportAllocs()
	i := 1_000_000
	for b.Loop() {
		c.Set(host(i), value{}, 0)
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hosts/s")
}

// BenchmarkLoad asks for a host that is known, and for one that is not.
func BenchmarkLoad(b *testing.B) {
	c := hostcache.New[value](hostcache.Options{})
	for _, bb := range []struct {
		name string
		ttl  time.Duration
	}{{"warm", time.Hour}, {"cold", -1}} {
		b.Run("host="+bb.name, func(b *testing.B) {
			load := func(context.Context, string) (value, time.Duration, error) {
				return value{}, bb.ttl, nil
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Load(b.Context(), bb.name+".test", load); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSnapshot saves and opens a cache of 100,000 hosts.
func BenchmarkSnapshot(b *testing.B) {
	const n = 100_000
	c, keys := hostcache.New[value](hostcache.Options{}), hostNames(b, n)
	for i := range n {
		c.Set(keys.at(i), value{}, 0)
	}
	file := filepath.Join(b.TempDir(), "hosts")
	for _, bb := range []struct {
		name string
		run  func() error
	}{
		{"save", func() error { return c.Save(file, hostcache.Codec[value]{}) }},
		{"open", func() error {
			_, err := hostcache.Open(file, hostcache.Codec[value]{}, hostcache.Options{})
			return err
		}},
	} {
		b.Run("op="+bb.name, func(b *testing.B) {
			for b.Loop() {
				if err := bb.run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "hosts/s")
		})
	}
}
