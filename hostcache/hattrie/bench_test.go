package hattrie_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/hostcache/hattrie"
)

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
	hosts := benchHosts(n)
	t := new(hattrie.Trie[[16]byte])
	for _, bb := range []struct {
		op  string
		run func(host string) bool
	}{
		{"put", func(host string) bool { return t.Set(host, [16]byte{}) }},
		{"hit", func(host string) bool { _, found := t.Get(host); return found }},
		{"miss", func(host string) bool { _, found := t.Get(host[1:]); return !found }},
	} {
		b.Run("op="+bb.op, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if bb.op == "put" {
					t = new(hattrie.Trie[[16]byte])
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
				_, reserved := t.Memory()
				b.ReportMetric(float64(reserved)/float64(n), "B/host")
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
