package main

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

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

// record is the input for one member: a header, and the parts of a block.
type record struct {
	raw  []byte // header and block
	head int    // end of the header, which is not hashed
	body int    // start of the body, which is hashed twice
	tail int    // end of the block
}

// records returns the records of all sample pages, as an archive writes them.
func records() ([]record, error) {
	enc, err := warc.NewEncoder(warc.EncoderOptions{Compression: warc.None})
	if err != nil {
		return nil, err
	}
	list := make([]record, sample)
	for i := range list {
		c, out := capture(i), bytes.Buffer{}
		sum := sha1.Sum(c.Body)
		_, _, err := enc.Encode(&out, &warc.Head{Type: "response", Date: c.Time, TargetURI: c.URL,
			Payload: &sum, ContentType: "application/http;msgtype=response"}, c.Head, c.Body)
		if err != nil {
			return nil, err
		}
		raw := out.Bytes()
		body := len(raw) - len("\r\n\r\n") - len(c.Body)
		list[i] = record{raw: raw, head: body - len(c.Head), body: body, tail: len(raw) - len("\r\n\r\n")}
	}
	return list, nil
}

func write(o options) error {
	list, err := records()
	if err != nil {
		return err
	}
	for _, c := range compressions {
		row := func(name string, run func(dir string) error) subject {
			return subject{name + " " + c.name, func() error {
				dir, err := os.MkdirTemp(o.dir, "bench-archive-*")
				if err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				return run(dir)
			}}
		}
		appending := func(goroutines int, opts archive.Options) func(string) error {
			opts.Compression, opts.Compressors = c.Compression, goroutines
			return func(dir string) error { return appendAll(dir, o.pages, goroutines, opts) }
		}
		err := contest{
			row("bare", func(dir string) error { return writeBare(dir, list, o.pages, c.Compression, 0) }),
			row("bare, one digest", func(dir string) error {
				return writeBare(dir, list, o.pages, c.Compression, 1)
			}),
			row("bare, two digests", func(dir string) error {
				return writeBare(dir, list, o.pages, c.Compression, 2)
			}),
			row("append, no block digest", appending(1, archive.Options{NoBlockDigest: true})),
			row("append", appending(1, archive.Options{})),
			row("append by two", appending(2, archive.Options{})),
		}.compare("write", o)
		if err != nil {
			return err
		}
	}
	return nil
}

// bodies returns the bytes of the bodies of n pages.
func bodies(n int) (total int64) {
	list := pages()
	for i := range n {
		total += int64(len(list[i%sample].Body))
	}
	return total
}

// appendAll appends n pages from the given number of goroutines.
func appendAll(dir string, n, goroutines int, opts archive.Options) error {
	a, err := archive.Open(dir, opts)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, goroutines)
	for g := range goroutines {
		all.Go(func() {
			for i := g; i < n && errs[g] == nil; i += goroutines {
				_, errs[g] = a.Append(capture(i))
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, a.Close())...)
}

// writeBare writes each record as one member to a file, and syncs it like an archive. It hashes the
// body, or body and block, as requested.
func writeBare(dir string, list []record, n int, c warc.Compression, digests int) error {
	w, err := bare(c)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		return err
	}
	defer f.Close()
	var member bytes.Buffer
	for i := range n {
		r := &list[i%sample]
		if digests > 0 {
			sha1.Sum(r.raw[r.body:r.tail])
		}
		if digests > 1 {
			sha1.Sum(r.raw[r.head:r.tail])
		}
		member.Reset()
		w.Reset(&member)
		if _, err := w.Write(r.raw); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if _, err := f.Write(member.Bytes()); err != nil {
			return err
		}
	}
	return f.Sync()
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
		byReader := func() error {
			r := warc.NewReader(bytes.NewReader(data), warc.ReaderOptions{Verify: true})
			defer r.Close()
			for _, err := range r.Records() {
				if err != nil {
					return err
				}
			}
			return nil
		}
		err = contest{
			{"bare " + c.name, func() error { return readBare(data, places, c.Compression) }},
			{"reader " + c.name, byReader},
		}.compare("read", o)
		if err != nil {
			return err
		}
	}
	return nil
}

// readBare decompresses the members at known offsets and hashes their contents.
func readBare(data []byte, places []archive.Version, c warc.Compression) error {
	sum, buf, gz := sha1.New(), make([]byte, 32<<10), new(gzip.Reader)
	zs, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
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
			return err
		}
		sum.Reset()
		if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{r}, buf); err != nil {
			return err
		}
	}
	return nil
}
