package satstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// BenchmarkVisit visits records slot by slot, as a crawler does. They are due again after 1 to 128
// slots. internal/bench/satstore has the paper's intervals, sizes and competitors.
func BenchmarkVisit(b *testing.B) {
	for _, detach := range []bool{false, true} {
		b.Run(fmt.Sprint("detach=", detach), func(b *testing.B) {
			s := benchStore(b)
			read, written := s.fs.read.Load(), s.fs.written.Load()
			b.ReportAllocs()
			b.ResetTimer()
			n := 0
			for slot := int64(2); n < b.N; slot++ {
				n += visitSlot(b, s, slot, detach)
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

func benchStore(b *testing.B) *Store {
	b.Helper()
	s, err := open(vfs.OS(b.TempDir()), Options{Start: at(1), Buffer: 8 << 20})
	if err != nil {
		b.Fatal(err)
	}
	items := make([]Item, 100_000)
	for i := range items {
		data := make([]byte, 100)
		binary.LittleEndian.PutUint64(data, uint64(i))
		url := fmt.Sprintf("https://www.example.com/a/path/of/usual/length/%d", i)
		items[i] = Item{url, at(2 + int64(i%128)), data}
	}
	if _, err := s.AddBatch(items); err != nil {
		b.Fatal(err)
	}
	return s
}

func visitSlot(b *testing.B, s *Store, slot int64, detach bool) (n int) {
	for r, err := range s.Due(context.Background(), at(slot)) {
		if err != nil {
			b.Fatal(err)
		}
		if detach {
			r = r.Detach()
		}
		seed := binary.LittleEndian.Uint64(r.Data)
		binary.LittleEndian.PutUint64(r.Data[40:], seed*uint64(slot))
		if err := r.Reschedule(at(slot+1+int64(seed%128)), r.Data); err != nil {
			b.Fatal(err)
		}
		n++
	}
	return n
}

// BenchmarkAddBatch adds URLs, half of which are known.
func BenchmarkAddBatch(b *testing.B) {
	s := benchStore(b)
	items := make([]Item, 10_000)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range items {
			items[i] = Item{ID: fmt.Sprintf("https://www.example.com/other/%d", n+i/2), At: at(5)}
		}
		n += len(items) / 2
		if _, err := s.AddBatch(items); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(items)), "ns/URL")
}
