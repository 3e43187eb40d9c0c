//go:build unix

package pagerank

import (
	"fmt"
	"testing"

	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// A stream is a web whose links are computed from hashes on demand, so that it takes no memory.
// Hosts are runs of ids whose sizes follow a power law; a page has nine links, some of them twice:
// to its neighbours in the host's tree, to the top of the host, anywhere in the host, to the home
// page of some host, the popular ones more often, and anywhere.
type stream struct{ n uint32 }

const (
	largestHost = 1 << 13 // pages; hosts are cut from blocks of this size
	wholeHost   = 8       // one block in 8 is one host, as is one half in 8, and so on
)

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below returns a number below n from a hash.
func below(h uint64, n uint32) uint32 { return uint32(h >> 32 * uint64(n) >> 32) }

// host returns the first page of a page's host, and the number of its pages.
func (s stream) host(page uint32) (first, size uint32) {
	for size = largestHost; size > 1; size /= 2 {
		if first = page &^ (size - 1); mix(uint64(first)<<16|uint64(size))%wholeHost == 0 {
			break
		}
	}
	first = page &^ (size - 1)
	return first, min(size, s.n-first)
}

// links appends the links of a page to buf.
func (s stream) links(page uint32, buf []uint32) []uint32 {
	first, size := s.host(page)
	i := page - first
	buf = append(buf, first+(i+1)%size, first+i/2, first, first+min(1, size-1))
	h := mix(uint64(page))
	for range 3 {
		buf = append(buf, first+below(h, size))
		h = mix(h)
	}
	anywhere := below(h, s.n)
	h = mix(h)
	// Half of the range, a quarter of it, and so on: the lower the more popular.
	reach := max(s.n>>(h%12), 1)
	popular, _ := s.host(below(mix(h), reach))
	return append(buf, anywhere, popular)
}

// BenchmarkStream crawls a web of SPINNERET_NODES pages, by default ten million, that is generated
// on the fly. The time to generate it is measured separately, in the same order, and subtracted. So
// no strategy benefits from reading a graph in memory order, as BF does in BenchmarkCrawl.
//
//	go test ./pagerank -bench Stream -benchtime 1x
//
// 9th/2nd-tenth is the ratio of the time per page late and early in the crawl. The links of one
// page in 64 are used to estimate the size with the best coder.
func BenchmarkStream(b *testing.B) {
	web := stream{uint32(nodes(b, 10_000_000))}
	frontier := func(opts pagerank.Options) func() compare.Strategy {
		return func() compare.Strategy { return pagerank.New(opts) }
	}
	for _, c := range []struct {
		name string
		make func() compare.Strategy
	}{
		{"BF", func() compare.Strategy { return &compare.BreadthFirst{} }},
		{"DL1", frontier(pagerank.Options{Cutoff: pagerank.DL1})},
		{"DL1+links", frontier(pagerank.Options{Cutoff: pagerank.AR, Threshold: 1})},
		{"AR", frontier(pagerank.Options{Cutoff: pagerank.AR})},
		{"Push", frontier(pagerank.Options{})},
	} {
		b.Run(fmt.Sprintf("pages=%d/strategy=%s", web.n, c.name), func(b *testing.B) {
			var all tally
			for b.Loop() {
				s := c.make()
				empty := statsOf(s).Bytes
				all.add(b, web, s)
				all.stats = statsOf(s)
				all.arena = float64(all.stats.Bytes - empty - 5*all.stats.Known) // the queue's
			}
			all.report(b)
		})
	}
}

// statsOf returns the statistics of a Frontier, and zeros for other strategies.
func statsOf(s compare.Strategy) (stats pagerank.Stats) {
	if f, ok := s.(*pagerank.Frontier); ok {
		return f.Stats()
	}
	return stats
}

// A tally has the totals of crawls of a stream.
type tally struct {
	pages         int
	crawl, making float64     // CPU seconds; crawl includes making
	tenths        [10]float64 // of crawl
	stats         pagerank.Stats
	arena         float64 // bytes of links
	best          entropy
}

func (t *tally) add(b *testing.B, web stream, f compare.Strategy) {
	order := make([]uint32, 0, web.n)
	buf := make([]uint32, 0, 16)
	f.Discover(0)
	begin := cpu(b)
	for tenth := range t.tenths {
		before := cpu(b)
		for want := (tenth + 1) * int(web.n) / 10; len(order) < want; {
			id, ok := f.Next()
			if !ok {
				break
			}
			order = append(order, id)
			buf = web.links(id, buf[:0])
			f.Fetched(id, buf)
		}
		t.tenths[tenth] += cpu(b) - before
	}
	between := cpu(b)
	t.crawl += between - begin
	sum := uint32(0)
	for _, id := range order {
		buf = web.links(id, buf[:0])
		sum += buf[len(buf)-1]
	}
	if sum == 1 {
		b.Log("this use of sum keeps the compiler from removing the loop")
	}
	t.making += cpu(b) - between
	t.pages += len(order)
	for i := 0; i < len(order); i += 64 {
		t.best.add(order[i], web.links(order[i], buf[:0]))
	}
}

func (t *tally) report(b *testing.B) {
	pages, s := float64(t.pages), t.stats
	b.ReportMetric(pages/(t.crawl-t.making)/1e6, "Mpages/cpu-s")
	b.ReportMetric(pages/t.crawl/1e6, "Mpages/cpu-s-with-making")
	b.ReportMetric(t.tenths[8]/t.tenths[1], "9th/2nd-tenth")
	if s.Known > 0 {
		b.ReportMetric(float64(s.Updates)/float64(s.Fetched), "updates/page")
		b.ReportMetric(float64(s.Bytes)/float64(s.Known), "B/page")
	}
	if s.Links > 0 {
		b.ReportMetric(t.arena/float64(s.Links), "B/link")
		b.ReportMetric(t.best.bytes(), "B/link-best")
		b.ReportMetric(randomBytes(float64(s.Known), float64(s.Links)/float64(s.Fetched)), "B/link-random")
	}
}
