package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"

	"github.com/spinneret-go/spinneret/archive"
)

// share compares appending with and without a search for equal bodies of all URLs. Distinct bodies
// show its cost, and ten copies of each its savings. Archives are opened before the measurement,
// because opening one costs more than appending many pages.
func share(o options) error {
	var all contest
	for _, c := range compressions {
		for _, kind := range []struct {
			name    string
			copies  int
			options archive.Options
		}{
			{"all distinct, default ", 1, archive.Options{}},
			{"all distinct, shared ", 1, archive.Options{Share: true}},
			{"ten of each, default ", 10, archive.Options{}},
			{"ten of each, shared ", 10, archive.Options{Share: true}},
		} {
			dir, err := os.MkdirTemp(o.dir, "bench-archive-*")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			kind.options.Compression, kind.options.Compressors = c.Compression, 1
			a, err := archive.Open(dir, kind.options)
			if err != nil {
				return err
			}
			defer a.Close()
			n := 0
			all = append(all, subject{name: kind.name + c.name, run: func() (int64, error) {
				first := n
				n += o.pages
				return bodies(o.pages), appendMarked(a, first, n, kind.copies)
			}})
		}
	}
	return all.compare("share", o.rounds)
}

// appendMarked appends pages first to end. Their bodies differ in the first bytes, with that many
// copies of each.
func appendMarked(a *archive.Archive, first, end, copies int) error {
	var failed error
	for i := first; i < end && failed == nil; i++ {
		c := capture(i)
		body := bytes.Clone(capture(i / copies).Body)
		binary.BigEndian.PutUint64(body, uint64(i/copies))
		c.Body = body
		_, err := a.Append(c)
		failed = errors.Join(failed, err)
	}
	return failed
}
