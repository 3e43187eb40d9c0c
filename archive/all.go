package archive

import (
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// All returns every version of every URL in the order of the index: URLs by their SURT, and
// versions by time. Contents are not resolved: that of an unchanged version is zero.
//
// All that was appended before is there. Of what is appended meanwhile, some may be.
func (a *Archive) All() iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		if err := a.flush(); err != nil {
			yield(Version{}, err)
			return
		}
		// A version is only known to be valid until the next one when that was met: each is held
		// back for one step.
		var before *Version
		var key string // of before
		for l, err := range a.index.forward() {
			if err != nil {
				yield(Version{}, err)
				return
			}
			v := a.describe(l.url, &l.entry, never)
			if v.Kind != Unchanged {
				v.Content = v.Location
			}
			if before != nil {
				if key == l.url {
					before.Until = v.Time
				}
				if !yield(*before, nil) {
					return
				}
			}
			before, key = &v, l.url
		}
		if before != nil {
			yield(*before, nil)
		}
	}
}

// OpenFile opens a WARC file of the archive for reading, as far as it holds whole captures now. The
// name is one of [Archive.Files] or that of a [Location].
func (a *Archive) OpenFile(name string) (io.ReadCloser, error) {
	if !filepath.IsAbs(name) {
		name = strings.TrimSuffix(name, unfinished)
	}
	end, known := a.index.end(name)
	if !known {
		return nil, fmt.Errorf("archive: open %s: %w", name, os.ErrNotExist)
	}
	f, err := a.openFile(name)
	if err != nil {
		return nil, err
	}
	return &part{io.NewSectionReader(f, 0, end), f}, nil
}

// part is the beginning of a file.
type part struct {
	io.Reader
	io.Closer
}

// located is an entry with the key of its URL.
type located struct {
	url   string
	entry entry
}

// forward returns all entries that are committed. Some are read at a time, since a long transaction
// would keep the index from being written.
func (x *index) forward() iter.Seq2[*located, error] {
	return func(yield func(*located, error) bool) {
		var at []byte
		for {
			batch, next, err := x.batch(at)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range batch {
				if !yield(&batch[i], nil) {
					return
				}
			}
			if next == nil {
				return
			}
			at = next
		}
	}
}

// batch returns some entries from a key on, and the key of the one after them.
func (x *index) batch(at []byte) (batch []located, next []byte, err error) {
	err = x.read(func(c *bbolt.Cursor) error {
		for key, value := c.Seek(at); key != nil; key, value = c.Next() {
			if len(batch) == walkBatch {
				next = slices.Clone(key)
				return nil
			}
			var l located
			url, err := l.entry.cutKey(key)
			if err == nil {
				err = l.entry.cutValue(value)
			}
			if err != nil {
				return err
			}
			l.url = string(url)
			batch = append(batch, l)
		}
		return nil
	})
	return batch, next, err
}
