package satstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// BenchmarkVisit visits records slot by slot, as a crawler does, that are due again after 1 to 128
// slots. internal/bench/satstore has the paper's intervals, sizes and competitors.
func BenchmarkVisit(b *testing.B) {
	for name, o := range map[string]Options{
		"mode=full":          {},
		"mode=full/log=off":  {NoLog: true},
		"mode=full/codec=s2": {Compression: S2},
		"mode=basic":         {Mode: Basic, NoLog: true},
		"mode=naive":         {Mode: Naive},
	} {
		b.Run(name, func(b *testing.B) {
			s := benchStore(b, o)
			read, written := s.fs.read.Load(), s.fs.written.Load()
			b.ReportAllocs()
			b.ResetTimer()
			n := 0
			for n < b.N {
				if err := s.Advance(); err != nil {
					b.Fatal(err)
				}
				n += visitSlot(b, s)
			}
			b.StopTimer()
			b.ReportMetric(float64(s.fs.read.Load()-read)/float64(n), "read-B/op")
			b.ReportMetric(float64(s.fs.written.Load()-written)/float64(n), "written-B/op")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func benchStore(b *testing.B, o Options) *Store {
	b.Helper()
	o.Start, o.Buffer = 1, 8<<20
	s, err := open(vfs.OS(b.TempDir()), o)
	if err != nil {
		b.Fatal(err)
	}
	items := make([]Item, 100_000)
	for i := range items {
		data := make([]byte, 100)
		binary.LittleEndian.PutUint64(data, uint64(i))
		url := fmt.Sprintf("https://www.example.com/a/path/of/usual/length/%d", i)
		items[i] = Item{url, 2 + int64(i%128), data}
	}
	if _, err := s.AddBatch(items); err != nil {
		b.Fatal(err)
	}
	return s
}

func visitSlot(b *testing.B, s *Store) (n int) {
	for r, err := range s.Due(context.Background()) {
		if err != nil {
			b.Fatal(err)
		}
		seed := binary.LittleEndian.Uint64(r.Data)
		binary.LittleEndian.PutUint64(r.Data[40:], seed*uint64(r.Slot))
		if err := r.Reschedule(r.Slot+1+int64(seed%128), r.Data); err != nil {
			b.Fatal(err)
		}
		n++
	}
	return n
}

// BenchmarkAddBatch adds URLs of which every other one is known.
func BenchmarkAddBatch(b *testing.B) {
	s := benchStore(b, Options{})
	items := make([]Item, 10_000)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range items {
			items[i] = Item{ID: fmt.Sprintf("https://www.example.com/other/%d", n+i/2), Slot: 5}
		}
		n += len(items) / 2
		if _, err := s.AddBatch(items); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(items)), "ns/URL")
}
