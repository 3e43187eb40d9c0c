package pagerank

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkCrawl fetches all of a generated graph. Real graphs and other strategies are measured in
// internal/bench/pagerank.
func BenchmarkCrawl(b *testing.B) {
	n := 100_000
	if testing.Short() {
		n = 2000
	}
	g := testWeb(n, 1)
	for name, opts := range map[string]Options{
		"DL1": {Cutoff: DL1}, "AR": {Cutoff: AR}, "Push": {},
		"Push+hosts": {Host: func(id uint32) uint32 { return id / 64 }},
	} {
		b.Run(fmt.Sprintf("cutoff=%s/pages=%d", name, n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				crawl(New(opts), g, 0)
			}
			b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "pages/s")
		})
	}
}

// BenchmarkSave saves and loads a frontier.
func BenchmarkSave(b *testing.B) {
	n := 100_000
	if testing.Short() {
		n = 2000
	}
	f := New(Options{})
	crawl(f, testWeb(n, 1), 0)
	var file bytes.Buffer
	b.Run(fmt.Sprintf("do=save/pages=%d", n), func(b *testing.B) {
		for b.Loop() {
			file.Reset()
			if _, err := f.WriteTo(&file); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(file.Len()))
	})
	b.Run(fmt.Sprintf("do=load/pages=%d", n), func(b *testing.B) {
		for b.Loop() {
			if _, err := Read(bytes.NewReader(file.Bytes()), Options{}); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(file.Len()))
	})
}

// BenchmarkTop is the cost of Top for a status page.
func BenchmarkTop(b *testing.B) {
	n := 1_000_000
	if testing.Short() {
		n = 2000
	}
	f := New(Options{Cutoff: DL1})
	crawl(f, testWeb(n, 1), 0)
	b.Run(fmt.Sprintf("pages=%d", n), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for range f.Top(50) {
			}
		}
	})
}
