package hostcache_test

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/hostcache"
)

// The comparison with other structures, with millions of real names, is in
// internal/bench/hostcache.

func benchHost(i int) string { return "www.host-" + strconv.Itoa(i*7919) + ".test" }

// BenchmarkFullCache sets new hosts in a cache that must evict one for each.
func BenchmarkFullCache(b *testing.B) {
	c, i := hostcache.New[[16]byte](hostcache.Options{MaxBytes: 16 << 20}), 0
	for ; c.Stats().Evicted == 0; i++ {
		c.Set(benchHost(i), [16]byte{}, time.Hour)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Set(benchHost(i), [16]byte{}, time.Hour)
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hosts/s")
}

// BenchmarkLoad loads a known host, and an unknown one.
func BenchmarkLoad(b *testing.B) {
	c := hostcache.New[[16]byte](hostcache.Options{})
	for _, bb := range []struct {
		name string
		ttl  time.Duration
	}{{"warm", time.Hour}, {"cold", 0}} {
		b.Run("host="+bb.name, func(b *testing.B) {
			b.ReportAllocs()
			load := returns([16]byte{}, bb.ttl, nil)
			for b.Loop() {
				if _, err := c.Load(b.Context(), bb.name+".test", load); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFile saves and opens a cache of 100,000 hosts, and walks through it.
func BenchmarkFile(b *testing.B) {
	const n = 100_000
	file := filepath.Join(b.TempDir(), "hosts")
	c, err := hostcache.Open[[16]byte](file, hostcache.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		c.Set(benchHost(i), [16]byte{}, time.Hour)
	}
	for _, bb := range []struct {
		name string
		run  func() error
	}{
		{"all", func() error {
			for range c.All() {
			}
			return nil
		}},
		{"save", c.Save},
		{"open", func() error {
			_, err := hostcache.Open[[16]byte](file, hostcache.Options{})
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
