package archive

import (
	"bytes"
	"compress/flate"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/internal/urlkey"
	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/archive/warc"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// benchPage is 20 KB of markup and words with a Zipf distribution. It compresses to about a third,
// like real pages.
func benchPage(seed uint64) Capture {
	r := rand.New(rand.NewPCG(seed, 2))
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
	return page(fmt.Sprintf("http://www.example.org/a/page-%d.html", seed), body.String())
}

// compressors are options of an archive, and the compressors alone.
var compressors = []struct {
	name string
	opts Options
	bare func(b *testing.B) interface {
		io.WriteCloser
		Reset(io.Writer)
	}
}{
	{"gzip-1", Options{Level: 1}, bareGzip(flate.BestSpeed)},
	{"gzip-6", Options{}, bareGzip(6)},
	{"zstd-1", Options{Compression: warc.Zstd}, bareZstd(zstd.SpeedFastest)},
}

type resetter = interface {
	io.WriteCloser
	Reset(io.Writer)
}

func bareGzip(level int) func(b *testing.B) resetter {
	return func(b *testing.B) resetter {
		gz, err := gzip.NewWriterLevel(nil, level)
		require.NoError(b, err)
		return gz
	}
}

func bareZstd(level zstd.EncoderLevel) func(b *testing.B) resetter {
	return func(b *testing.B) resetter {
		zs, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1))
		require.NoError(b, err)
		return zs
	}
}

// BenchmarkAppend compares with the compressor alone, which is the floor.
func BenchmarkAppend(b *testing.B) {
	c := benchPage(1)
	for _, compressor := range compressors {
		b.Run("what=bare/with="+compressor.name, func(b *testing.B) {
			w := compressor.bare(b)
			b.SetBytes(int64(len(c.Body)))
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(io.Discard)
				_, _ = w.Write(c.Body)
				_ = w.Close()
			}
		})
		b.Run("what=append/with="+compressor.name, func(b *testing.B) {
			a := benchFiles(b, compressor.opts)
			b.SetBytes(int64(len(c.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Append(c); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "captures/s")
		})
		b.Run("what=append-parallel/with="+compressor.name, func(b *testing.B) {
			a := benchFiles(b, compressor.opts)
			b.SetBytes(int64(len(c.Body)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := a.Append(c); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// benchFiles writes to nowhere, to measure this package and not the disk.
func benchFiles(b *testing.B, opts Options) *store {
	opts.MaxFile = -1
	a, err := open(nowhere{}, opts)
	require.NoError(b, err)
	return a
}

type nowhere struct{}

func (nowhere) Create(string) (vfs.File, error)        { return nowhere{}, nil }
func (nowhere) Open(string) (vfs.File, error)          { return nil, fs.ErrNotExist }
func (nowhere) Rename(string, string) error            { return nil }
func (nowhere) Remove(string) error                    { return nil }
func (nowhere) List() ([]string, error)                { return nil, nil }
func (nowhere) Sync() error                            { return nil }
func (nowhere) Map(string, int) (*vfs.Map, error)      { return nil, errors.ErrUnsupported }
func (nowhere) Lock(string) (io.Closer, error)         { return nowhere{}, nil }
func (nowhere) ReadAt([]byte, int64) (int, error)      { return 0, io.EOF }
func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (nowhere) Truncate(int64) error                   { return nil }
func (nowhere) Size() (int64, error)                   { return 0, nil }
func (nowhere) Start(int64, int64)                     {}
func (nowhere) Random()                                {}
func (nowhere) Close() error                           { return nil }

// benchArchive returns an archive on disk, with one version of each of n pages.
func benchArchive(b *testing.B, n int, opts Options) *Archive {
	a := openDir(b, b.TempDir(), opts)
	b.Cleanup(func() { require.NoError(b, a.Close()) })
	var pages []Capture
	for i := range min(n, 50) {
		pages = append(pages, benchPage(uint64(i)))
	}
	for i := range n {
		c := pages[i%len(pages)]
		c.URL = fmt.Sprintf("http://%d.example.org/%d.html", i*7919%1000, i)
		_, err := a.Append(c)
		require.NoError(b, err)
	}
	require.NoError(b, a.Sync())
	return a
}

// BenchmarkStore measures all of Append: the index, the search for repeats, and the disk.
func BenchmarkStore(b *testing.B) {
	c := benchPage(1)
	for _, compressor := range compressors {
		b.Run("with="+compressor.name, func(b *testing.B) {
			a, err := Open(b.TempDir(), compressor.opts)
			require.NoError(b, err)
			b.SetBytes(int64(len(c.Body)))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c.URL = fmt.Sprintf("http://www.example.org/a/page-%d.html", i)
				i++
				if _, err := a.Append(c); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, a.Close())
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "captures/s")
		})
	}
}

// benchEntries fills an index with n entries of random URLs, four for each, and returns the keys.
func benchEntries(b *testing.B, x *index, n int) []string {
	keys := make([]string, n/4)
	for i := range keys {
		const format = "http://www.host-%d.example.org/some/path/of-usual-length/%x.html"
		keys[i], _ = urlkey.Of(fmt.Sprintf(format, i%5000, rand.Uint64()))
	}
	e := someEntry()
	for i := range n {
		e.time, e.offset = int64(i), int64(i)
		x.add("f.warc.gz", keys[rand.IntN(len(keys))], &e, "", int64(i))
		require.NoError(b, x.admit())
	}
	require.NoError(b, x.commit())
	return keys
}

// BenchmarkIndexAdd adds a million entries in random order to a new index in each round.
func BenchmarkIndexAdd(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		dir := b.TempDir()
		x, err := openIndex(vfs.OS(dir), writeIndex)
		require.NoError(b, err)
		benchEntries(b, x, n)
		require.NoError(b, x.close(true))
		size := int64(0)
		entries, err := os.ReadDir(dir)
		require.NoError(b, err)
		for _, entry := range entries {
			info, err := entry.Info()
			require.NoError(b, err)
			size += info.Size()
		}
		b.ReportMetric(float64(size)/n, "B/entry")
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

func BenchmarkAt(b *testing.B) {
	const n = 400_000
	a := openDir(b, b.TempDir(), Options{})
	keys := benchEntries(b, a.index, n)
	urls := make([]string, len(keys))
	for i := range keys {
		urls[i] = urlkey.URL(keys[i])
	}
	b.Run("what=at", func(b *testing.B) { benchAt(b, a, urls, n) })
	require.NoError(b, a.Close())
}

func benchAt(b *testing.B, a *Archive, urls []string, n int64) {
	found := 0
	b.ReportAllocs()
	for b.Loop() {
		v, err := a.At(urls[rand.IntN(len(urls))], time.UnixMicro(n/2))
		if err == nil && v.Kind == Changed {
			found++
		}
	}
	b.ReportMetric(float64(found)/float64(b.N), "found") // the others came later, or never
}

// BenchmarkRead compares a Reader that verifies digests with decompression and hashing alone.
func BenchmarkRead(b *testing.B) {
	const n = 400
	for _, compressor := range compressors[1:] {
		m := newMemory()
		a, err := open(m, Options{Compression: compressor.opts.Compression, MaxFile: -1})
		require.NoError(b, err)
		size := int64(0)
		var bounds []Location
		for i := range n {
			c := benchPage(uint64(i % 50))
			c.Request = nil // one record per capture, for both
			loc, err := a.Append(c)
			require.NoError(b, err)
			bounds = append(bounds, loc)
			size += int64(len(c.Body))
		}
		var data []byte
		for _, data = range m.contents() {
		}
		b.Run("what=bare/with="+compressor.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				readBare(b, data, bounds, compressor.opts.Compression)
			}
		})
		b.Run("what=reader/with="+compressor.name, func(b *testing.B) {
			r := warc.NewReader(nil, warc.ReaderOptions{Verify: true})
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				r.ResetAt(bytes.NewReader(data), 0, int64(len(data)))
				for _, err := range r.Records() {
					require.NoError(b, err)
				}
			}
		})
	}
}

// readBare decompresses the members at known positions, and hashes their contents.
func readBare(b *testing.B, data []byte, bounds []Location, compression warc.Compression) {
	sum, buf := sha1.New(), make([]byte, 32<<10)
	gz := new(gzip.Reader)
	zs, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	require.NoError(b, err)
	defer zs.Close()
	for _, loc := range bounds {
		member := bytes.NewReader(data[loc.Offset:][:loc.Length])
		var r io.Reader = gz
		if compression == warc.Zstd {
			r, err = zs, zs.Reset(member)
		} else {
			err = gz.Reset(member)
		}
		require.NoError(b, err)
		sum.Reset()
		_, err = io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{r}, buf)
		require.NoError(b, err)
	}
}

// BenchmarkSnapshot reads all documents of a snapshot, all files from end to end, including
// requests, and the documents one by one in the order of the index. Files are in the page cache.
func BenchmarkSnapshot(b *testing.B) {
	n := 5000
	if testing.Short() {
		n = 500
	}
	a := benchArchive(b, n, Options{Compression: warc.Zstd, MaxFile: 16 << 20})
	size := int64(0) // of the documents alone
	for v, err := range a.All() {
		require.NoError(b, err)
		size += v.Content.Length
	}
	b.Run("what=snapshot", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			s, err := a.Snapshot(Query{})
			require.NoError(b, err)
			for _, err := range s.Documents() {
				require.NoError(b, err)
			}
			require.NoError(b, s.Close())
		}
		b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "documents/s")
	})
	b.Run("what=sequential", func(b *testing.B) {
		names, err := a.Files()
		require.NoError(b, err)
		buf := make([]byte, readAhead)
		b.SetBytes(size)
		for b.Loop() {
			for _, name := range names {
				f, err := a.OpenFile(name)
				require.NoError(b, err)
				_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
				require.NoError(b, err)
				require.NoError(b, f.Close())
			}
		}
	})
	b.Run("what=by-pointer", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			for v, err := range a.All() {
				require.NoError(b, err)
				r := &sequential{archive: a}
				_, _, err = r.read(v.Content)
				require.NoError(b, err)
				r.close()
			}
		}
	})
}

// BenchmarkScan counts words in a snapshot, for several depths of the queues of workers.
func BenchmarkScan(b *testing.B) {
	a := benchArchive(b, 2000, Options{Compression: warc.Zstd})
	work := scan.Func(func(doc *scan.Document) ([]byte, error) {
		var text []byte
		var err error
		for range 10 { // the analysis costs more than reading the document
			if text, err = read(doc.Data); err != nil {
				return nil, err
			}
		}
		return fmt.Append(nil, len(bytes.Fields(text))), nil
	})
	for _, depth := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			o := scan.Options{Depth: depth}
			for b.Loop() {
				s, err := a.Snapshot(Query{})
				require.NoError(b, err)
				for _, err := range s.Scan(b.Context(), work, o) {
					require.NoError(b, err)
				}
				require.NoError(b, s.Close())
			}
		})
	}
}
