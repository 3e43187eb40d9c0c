//go:build unix

// Package pagerank measures the crawl strategies of spinneret/pagerank:
//
//	go test ./pagerank -bench Crawl -count 5
//	go test ./pagerank -bench Stream -benchtime 1x
package pagerank

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// nodes returns the number of pages of a generated graph.
func nodes(b *testing.B, usual int) int {
	text := os.Getenv("SPINNERET_NODES")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("SPINNERET_NODES=%s", text)
	}
	return n
}

// strategies are the measured strategies. The difference between DL1+links and DL1 is the cost of
// the graph update of the paper's Figure 10, which all strategies below also pay. The rest is
// scoring and the queue.
var strategies = []struct {
	name string
	make func(s sample) compare.Strategy
}{
	{"BF", func(sample) compare.Strategy { return &compare.BreadthFirst{} }},
	{"BLC", func(sample) compare.Strategy { return &compare.BackLinks{} }},
	{"DL1", frontier(pagerank.Options{Cutoff: pagerank.DL1})},
	{"DL1+links", frontier(pagerank.Options{Cutoff: pagerank.AR, Threshold: 1})},
	{"PL", func(sample) compare.Strategy { return &compare.PL{} }},
	{"VR", func(sample) compare.Strategy { return &compare.VR{} }},
	{"AR", frontier(pagerank.Options{Cutoff: pagerank.AR})},
	{"Push", frontier(pagerank.Options{})},
	{"Push+hosts", func(s sample) compare.Strategy {
		return pagerank.New(pagerank.Options{Host: s.host()})
	}},
	{"PR", func(s sample) compare.Strategy {
		return &compare.Batch{Every: s.graph.Len()/100 + 1}
	}},
}

func frontier(opts pagerank.Options) func(s sample) compare.Strategy {
	return func(sample) compare.Strategy { return pagerank.New(opts) }
}

func BenchmarkCrawl(b *testing.B) {
	for _, name := range []string{"cnr-2000", "uci-ics", "debian-docs"} {
		b.Run("graph="+name, func(b *testing.B) { benchmarkAll(b, readGraph(b, name)) })
	}
	b.Run("graph=generated", func(b *testing.B) { benchmarkAll(b, generated(nodes(b, 1_000_000))) })
}

func benchmarkAll(b *testing.B, s sample) {
	for _, c := range strategies {
		if c.name == "Push+hosts" && s.hosts == nil {
			continue
		}
		b.Run("strategy="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			pages, before := 0, cpu(b)
			for b.Loop() {
				pages += crawl(c.make(s), s)
			}
			b.ReportMetric(float64(pages)/b.Elapsed().Seconds()/1e6, "Mpages/s")
			b.ReportMetric(float64(pages)/(cpu(b)-before)/1e6, "Mpages/cpu-s")
		})
	}
}

// cpu returns the CPU time so far, in seconds: the better measure on a busy machine.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkMemory reports the bytes per known page, and per kept link.
func BenchmarkMemory(b *testing.B) {
	for name, s := range map[string]sample{"cnr-2000": readGraph(b, "cnr-2000"), "generated": generated(nodes(b, 1_000_000))} {
		b.Run("graph="+name, func(b *testing.B) {
			for b.Loop() {
				n := s.graph.Len()
				light := pagerank.New(pagerank.Options{Cutoff: pagerank.DL1})
				crawl(light, s)
				full := pagerank.New(pagerank.Options{Cutoff: pagerank.AR})
				crawl(full, s)
				l, f := light.Stats(), full.Stats()
				links := f.Bytes - l.Bytes - 12*n // AR's other memory, but for the room to grow
				b.ReportMetric(float64(l.Bytes)/float64(l.Known), "B/page-DL1")
				b.ReportMetric(float64(f.Bytes)/float64(f.Known), "B/page-AR")
				b.ReportMetric(float64(links)/float64(f.Links), "B/link")
				var e entropy
				for id := range uint32(n) {
					e.add(id, s.graph.Links(id))
				}
				b.ReportMetric(e.bytes(), "B/link-best")
			}
		})
	}
}

// BenchmarkExact computes the PageRank of the whole graph to 1e-10.
func BenchmarkExact(b *testing.B) {
	s := readGraph(b, "cnr-2000")
	for b.Loop() {
		compare.Exact(s.graph, compare.ExactOptions{})
	}
}
