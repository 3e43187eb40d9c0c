package dedupe_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe"
)

// Get must return the latest verdict for the same link in the same context, if any. A link that was
// just put must be found.
func TestLinkCacheNeverMistakesALink(t *testing.T) {
	type key struct {
		link    string
		context uint64
	}
	for _, size := range []int{1, 2, 64, 1000} {
		links, last := dedupe.NewLinkCache(size), map[key]uint32{}
		random := rand.New(rand.NewPCG(1, uint64(size)))
		hits := 0
		for range 100_000 {
			k := key{fmt.Sprintf("/%d", random.IntN(500)), uint64(random.IntN(4)) << (16 * random.IntN(4))}
			if random.IntN(2) == 0 {
				last[k] = random.Uint32()
				links.Put(k.link, k.context, last[k])
			}
			verdict, ok := links.Get(k.link, k.context)
			if ok {
				hits++
				require.Equal(t, last[k], verdict, k)
			}
		}
		require.Greater(t, hits, 49_000, "half of the calls look up a link that was just put")
		if size == 1000 {
			require.Greater(t, hits, 55_000)
		}
	}
}

func TestLinkCacheConcurrentUse(t *testing.T) {
	links := dedupe.NewLinkCache(64)
	verdict := func(n int, context uint64) uint32 { return uint32(n)<<8 | uint32(context) }
	var group sync.WaitGroup
	for seed := range uint64(4) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(2, seed))
			for range 20_000 {
				n, context := random.IntN(200), random.Uint64N(3)
				link := fmt.Sprint(n)
				if found, ok := links.Get(link, context); ok && found != verdict(n, context) {
					t.Errorf("Get(%s, %d) = %#x", link, context, found)
				}
				links.Put(link, context, verdict(n, context))
			}
		})
	}
	group.Wait()
}

func TestLinkCacheDoesNotAllocate(t *testing.T) {
	links := dedupe.NewLinkCache(0)
	link := strings.Repeat("/a/b", 30)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		links.Put(link, 1, 2)
		if verdict, ok := links.Get(link, 1); !ok || verdict != 2 {
			t.Error(verdict, ok)
		}
	}))
}

func TestNoLinkCache(t *testing.T) {
	var links *dedupe.LinkCache
	links.Put("/", 0, 1)
	_, ok := links.Get("/", 0)
	require.False(t, ok)
}

// BenchmarkLinkCache measures a lookup, and the hit rate for the links of real crawls.
func BenchmarkLinkCache(b *testing.B) {
	const link = "https://www.example.test/articles/2026/11/index.html?id=12345&page=2"
	for _, known := range []bool{true, false} {
		b.Run(fmt.Sprintf("known=%v", known), func(b *testing.B) {
			links := dedupe.NewLinkCache(0)
			if known {
				links.Put(link, 0, 1)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := links.Get(link, 0); ok != known {
					b.Fatal(ok)
				}
			}
		})
	}
	for _, graph := range []string{"uci-ics", "debian-docs"} {
		edges := strings.TrimSpace(string(readZstd(b, "graphs/"+graph+"/"+graph+".edges.tsv.zst")))
		for _, size := range []int{1 << 12, 1 << 14, 1 << 16, 1 << 18} {
			b.Run(fmt.Sprintf("graph=%s/links=%d", graph, size), func(b *testing.B) {
				for b.Loop() {
					links, found, total := dedupe.NewLinkCache(size), 0, 0
					for edge := range strings.SplitSeq(edges, "\n") {
						_, target, _ := strings.Cut(edge, "\t")
						total++
						if _, ok := links.Get(target, 0); ok {
							found++
						} else {
							links.Put(target, 0, 0)
						}
					}
					b.ReportMetric(100*float64(found)/float64(total), "%hits")
				}
			})
		}
	}
}

func TestLinkCacheWithoutEntries(t *testing.T) {
	for name, links := range map[string]*dedupe.LinkCache{"nil": nil, "zero": {}} {
		links.Put("/a", 0, 1)
		_, known := links.Get("/a", 0)
		require.False(t, known, name)
	}
}
