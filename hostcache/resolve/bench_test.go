package resolve_test

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// BenchmarkLookup looks up names at a name server on the loopback device, and compares with package
// net's resolver, which has no cache: always new names, and a known one.
func BenchmarkLookup(b *testing.B) {
	h := func(q message) [][]byte {
		return zone{q.Questions[0].Name.String(): {
			a(q.Questions[0].Name.String(), "192.0.2.1", 300),
			a(q.Questions[0].Name.String(), "2001:db8::1", 300),
		}}.answerAs(q)
	}
	server := listen(b, h, h)
	ours := resolve.New(resolve.Options{Servers: []netip.AddrPort{server}})
	type lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	fresh := 0
	for _, bb := range []struct {
		name   string
		lookup lookup
		known  bool
	}{
		{"of=resolve/known=false", ours.LookupNetIP, false},
		{"of=net/known=false", goResolver(server).LookupNetIP, false},
		{"of=resolve/known=true", nil, true},
		{"of=net/known=true", goResolver(server).LookupNetIP, true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				host := "www.example.test."
				if !bb.known {
					fresh++
					host = fmt.Sprintf("%d.test.", fresh)
				}
				var err error
				if bb.lookup == nil { // called by its name it may be inlined
					_, err = ours.LookupNetIP(b.Context(), "ip", host)
				} else {
					_, err = bb.lookup(b.Context(), "ip", host)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
		})
	}
}

// BenchmarkMemory reports the memory per name, for 200,000 with one or two addresses.
func BenchmarkMemory(b *testing.B) {
	const n = 200_000
	for b.Loop() {
		before := heap()
		r := resolve.New(resolve.Options{MaxBytes: -1,
			Lookup: func(context.Context, string) ([]netip.Addr, time.Duration, error) {
				return []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, 1})}, time.Hour, nil
			}})
		for i := range n {
			if _, err := r.Addr(b.Context(), fmt.Sprintf("www.host-%d.example.test", i*7919)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-before)/n, "B/name")
		runtime.KeepAlive(r)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
