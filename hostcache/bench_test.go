package hostcache_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/hostcache"
)

type value [16]byte

// benchHosts returns host names with reversed labels, in random order. The comparison with other
// structures, on real names and by the million, is in internal/bench/hostcache.
func benchHosts(n int) []string {
	syllables := strings.Fields("ba co du fe gi ho ju ka lo mi nu pa re si to vu wa xe yo zi shop web")
	zones := strings.Fields("com. com. com. com. net. org. de. ru. cn. info. io. com.blogspot. uk.co.")
	r := rand.New(rand.NewPCG(5, 6))
	hosts := make([]string, n)
	for i := range hosts {
		name := ""
		for range 2 + r.IntN(4) {
			name += syllables[r.IntN(len(syllables))]
		}
		hosts[i] = zones[r.IntN(len(zones))] + name + strconv.Itoa(i)
	}
	r.Shuffle(n, func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	return hosts
}

// BenchmarkTrie reports the time per host, and for op=put the memory that an entry takes.
func BenchmarkTrie(b *testing.B) {
	n := 1_000_000
	if testing.Short() {
		n = 20_000
	}
	hosts, raw := benchHosts(n), 0
	for _, host := range hosts {
		raw += len(host) + len(value{})
	}
	t := hostcache.NewTrie[value]()
	for _, bb := range []struct {
		op  string
		run func(host string) bool
	}{
		{"put", func(host string) bool { return t.Set(host, value{}) }},
		{"hit", func(host string) bool { _, found := t.Get(host); return found }},
		{"miss", func(host string) bool { _, found := t.Get(host[1:]); return !found }},
	} {
		b.Run("op="+bb.op, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if bb.op == "put" {
					t = hostcache.NewTrie[value]()
				}
				for _, host := range hosts {
					if !bb.run(host) {
						b.Fatalf("%s of %s", bb.op, host)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/host")
			b.ReportMetric(0, "ns/op")
			if bb.op == "put" {
				b.ReportMetric(float64(t.Size().Bytes)/float64(n), "B/host")
				b.ReportMetric(float64(t.Size().Bytes)/float64(raw), "of-raw")
			}
		})
	}
	b.Run("op=prefix", func(b *testing.B) {
		shown := 0
		for b.Loop() {
			for range t.Prefix("com.") {
				shown++
			}
		}
		b.ReportMetric(float64(shown)/b.Elapsed().Seconds(), "hosts/s")
	})
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
	c, hosts := hostcache.New[value](hostcache.Options{}), benchHosts(n)
	for i := range n {
		c.Set(hosts[i], value{}, 0)
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
