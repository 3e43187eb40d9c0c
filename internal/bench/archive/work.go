package main

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// resetter is a compressor.
type resetter interface {
	io.WriteCloser
	Reset(io.Writer)
}

func bare(c warc.Compression) (resetter, error) {
	if c == warc.Gzip {
		return gzip.NewWriterLevel(nil, warc.DefaultLevel)
	}
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1))
}

func write(o options) error {
	list := pages()
	for _, c := range compressions {
		w, err := bare(c.Compression)
		if err != nil {
			return err
		}
		alone := func() (total int64, err error) {
			for i := range o.pages {
				w.Reset(io.Discard)
				n, _ := w.Write(list[i%sample].Body)
				total += int64(n)
				err = w.Close()
			}
			return total, err
		}
		appending := func() (total int64, err error) {
			dir, err := os.MkdirTemp(o.dir, "bench-archive-*")
			if err != nil {
				return 0, err
			}
			defer os.RemoveAll(dir)
			a, err := fill(dir, o.pages, archive.Options{Compression: c.Compression, Compressors: 1})
			if err != nil {
				return 0, err
			}
			for i := range o.pages {
				total += int64(len(list[i%sample].Body))
			}
			return total, a.Close()
		}
		err = contest{{"bare " + c.name, alone}, {"append " + c.name, appending}}.hold("write", o.rounds)
		if err != nil {
			return err
		}
	}
	return nil
}

func read(o options) error {
	for _, c := range compressions {
		dir, err := os.MkdirTemp(o.dir, "bench-archive-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		a, err := fill(dir, o.pages, archive.Options{Compression: c.Compression, MaxFile: -1})
		if err != nil {
			return err
		}
		var places []archive.Version
		for v, err := range a.All() {
			if err != nil {
				return err
			}
			places = append(places, v)
		}
		if err := a.Close(); err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, places[0].Location.File))
		if err != nil {
			return err
		}
		byBare := func() (int64, error) { return readBare(data, places, c.Compression) }
		byReader := func() (total int64, err error) {
			r := warc.NewReader(bytes.NewReader(data), warc.ReaderOptions{Verify: true})
			defer r.Close()
			for rec, err := range r.Records() {
				if err != nil {
					return 0, err
				}
				total += rec.Size
			}
			return total, nil
		}
		err = contest{{"bare " + c.name, byBare}, {"reader " + c.name, byReader}}.hold("read", o.rounds)
		if err != nil {
			return err
		}
	}
	return nil
}

// readBare decompresses the members at known places, and hashes what is in them.
func readBare(data []byte, places []archive.Version, c warc.Compression) (total int64, err error) {
	sum, buf, gz := sha1.New(), make([]byte, 32<<10), new(gzip.Reader)
	zs, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return 0, err
	}
	defer zs.Close()
	for _, v := range places {
		member := bytes.NewReader(data[v.Location.Offset:][:v.Location.Length])
		var r io.Reader = gz
		if c == warc.Zstd {
			r, err = zs, zs.Reset(member)
		} else {
			err = gz.Reset(member)
		}
		if err != nil {
			return 0, err
		}
		sum.Reset()
		n, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{r}, buf)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func snapshot(o options) error {
	dir, err := os.MkdirTemp(o.dir, "bench-archive-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a, err := fill(dir, o.pages, archive.Options{Compression: warc.Zstd, MaxFile: 256 << 20})
	if err != nil {
		return err
	}
	defer a.Close()
	names, err := filepath.Glob(filepath.Join(dir, "*.warc.*"))
	if err != nil {
		return err
	}
	cold := func(run func() (int64, error)) func() (int64, error) {
		return func() (int64, error) {
			for _, name := range names {
				if err := forget(name); err != nil {
					return 0, err
				}
			}
			return run()
		}
	}
	return contest{
		{"sequential", cold(func() (int64, error) { return endToEnd(names) })},
		{"snapshot", cold(func() (int64, error) { return documents(a) })},
		{"by pointer", cold(func() (int64, error) { return byPointer(a, dir) })},
	}.hold("snapshot", o.rounds)
}

func endToEnd(names []string) (total int64, err error) {
	buf := make([]byte, 2<<20)
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
		total += n
		if err != nil {
			return 0, err
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return total, nil
}

func documents(a *archive.Archive) (total int64, err error) {
	s, err := a.Snapshot(archive.Query{})
	if err != nil {
		return 0, err
	}
	for doc, err := range s.Documents() {
		if err != nil {
			return 0, err
		}
		total += int64(len(doc.Raw))
	}
	return total, s.Close()
}

func openNamed(dir, name string) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		f, err = os.Open(filepath.Join(dir, name+".open"))
	}
	return f, err
}

func byPointer(a *archive.Archive, dir string) (total int64, err error) {
	files := map[string]*os.File{}
	buf := make([]byte, 1<<20)
	for v, err := range a.All() {
		if err != nil {
			return 0, err
		}
		f := files[v.Content.File]
		if f == nil {
			if f, err = openNamed(dir, v.Content.File); err != nil {
				return 0, err
			}
			defer f.Close()
			files[v.Content.File] = f
		}
		n, err := f.ReadAt(buf[:v.Content.Length], v.Content.Offset)
		if err != nil {
			return 0, fmt.Errorf("read: %w", err)
		}
		total += int64(n)
	}
	return total, nil
}
