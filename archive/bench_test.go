package archive

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
)

// benchPage is 20 KB of markup and words of which some come often and most hardly ever. It shrinks
// to about a third, as pages do.
func benchPage() Capture {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 4000)
	for i := range words {
		word := make([]byte, 2+r.IntN(9))
		for j := range word {
			word[j] = byte('a' + r.IntN(26))
		}
		words[i] = string(word)
	}
	zipf := rand.NewZipf(r, 1.2, 4, uint64(len(words)-1))
	var body bytes.Buffer
	for body.Len() < 20_000 {
		fmt.Fprintf(&body, "<p class=\"text\"><a href=\"/%s/%x.html\">%s</a>",
			words[zipf.Uint64()], r.Uint32(), words[zipf.Uint64()])
		for range 20 {
			body.WriteString(words[zipf.Uint64()] + " ")
		}
	}
	return page("http://www.example.org/a/page.html", body.String())
}

// BenchmarkAppend compares with the compressor alone, which is the floor.
func BenchmarkAppend(b *testing.B) {
	c := benchPage()
	for _, level := range []int{1, 6} {
		b.Run(fmt.Sprintf("what=bare-gzip/level=%d", level), func(b *testing.B) {
			gz, err := gzip.NewWriterLevel(nil, level)
			require.NoError(b, err)
			b.SetBytes(int64(len(c.Body)))
			b.ReportAllocs()
			for b.Loop() {
				gz.Reset(io.Discard)
				_, _ = gz.Write(c.Body)
				_ = gz.Close()
			}
		})
		b.Run(fmt.Sprintf("what=append/level=%d", level), func(b *testing.B) {
			a := benchArchive(b, level)
			b.SetBytes(int64(len(c.Body)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := a.Append(c)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "captures/s")
		})
	}
	b.Run("what=append-parallel/level=6", func(b *testing.B) {
		a := benchArchive(b, 6)
		b.SetBytes(int64(len(c.Body)))
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := a.Append(c); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// benchArchive writes to nowhere: what is measured is this package, not the disk.
func benchArchive(b *testing.B, level int) *Archive {
	a, err := open(nowhere{}, Options{Level: level, MaxFile: -1})
	require.NoError(b, err)
	return a
}

type nowhere struct{}

func (nowhere) create(string) (file, error)            { return nowhere{}, nil }
func (nowhere) rename(string, string) error            { return nil }
func (nowhere) remove(string) error                    { return nil }
func (nowhere) list() ([]string, error)                { return nil, nil }
func (nowhere) sync() error                            { return nil }
func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (nowhere) Truncate(int64) error                   { return nil }
func (nowhere) Sync() error                            { return nil }
func (nowhere) Close() error                           { return nil }
