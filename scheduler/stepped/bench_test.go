package stepped_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/scheduler/stepped"
)

// BenchmarkCycle visits one URL of each address per step, with lists that take them all.
func BenchmarkCycle(b *testing.B) {
	const addrs = 1 << 10
	s := stepped.New[int](stepped.Options{})
	now := time.Now()
	for i := range addrs {
		s.Add(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 0, i)
	}
	b.ReportAllocs()
	cycles := 0
	for cycles < b.N {
		items, wait := s.Next(now)
		now = now.Add(max(wait, 0))
		for _, i := range items {
			s.Add(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 0, i)
			s.Done(now)
			cycles++
		}
	}
	b.ReportMetric(float64(cycles)/b.Elapsed().Seconds(), "cycles/s")
}
