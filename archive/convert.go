package archive

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/archive/internal/bolt"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// oldIndexName is the name of the index of version 1, a file of bbolt.
const oldIndexName = "index.bolt"

// convert converts an index of version 1, whose entries have no addresses of contents, and removes
// it. While it exists, the new index is incomplete. Records that it lacks are indexed afterwards,
// as in any archive.
func (a *Archive) convert() error {
	if !exists(a.fs, oldIndexName) {
		return nil
	}
	x := a.index
	var c converter
	ends, err := readOldIndex(a.fs, func(url string, e *entry) error {
		c.complete(url, e)
		x.replace(url, e)
		return x.admit()
	})
	if err != nil {
		return err
	}
	// Files get the same numbers as in the old index.
	for _, f := range ends {
		x.add(f.name, "", nil, "", f.end)
	}
	if err := x.commit(); err != nil {
		return err
	}
	return errors.Join(a.fs.Remove(oldIndexName), a.fs.Sync())
}

// oldFile is a WARC file in an index of version 1.
type oldFile struct {
	name string
	end  int64
}

// readOldIndex visits the entries of an index of version 1 in the order of their keys, and returns
// the files by their numbers.
func readOldIndex(files vfs.FS, visit func(url string, e *entry) error) (
	known []oldFile, err error,
) {
	f, err := files.Open(oldIndexName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	old, err := bolt.Open(f, size)
	if err == nil {
		err = old.Walk("meta", func(key, value []byte) error {
			if string(key) == "version" && string(value) != "1" {
				return fmt.Errorf("%w: unknown version %.20s", bolt.ErrCorrupt, value)
			}
			return nil
		})
	}
	if err == nil {
		err = old.Walk("files", func(key, value []byte) error {
			if len(key) != fileSize || len(value) < 8 ||
				binary.BigEndian.Uint32(key) != uint32(len(known)) {
				return fmt.Errorf("%w: broken list of files", bolt.ErrCorrupt)
			}
			known = append(known, oldFile{string(value[8:]), int64(binary.BigEndian.Uint64(value))})
			return nil
		})
	}
	if err == nil {
		err = old.Walk("entries", func(key, value []byte) error {
			var e entry
			url, err := e.cutKey(key)
			if err == nil {
				err = e.cutValue(value)
			}
			if err != nil {
				return err
			}
			return visit(string(url), &e)
		})
	}
	if errors.Is(err, bolt.ErrCorrupt) || errors.Is(err, errEntry) {
		err = fmt.Errorf("%w: %s: %w", ErrIndex, oldIndexName, err)
	}
	return known, err
}

// oldCounts is [index.counts] for an index of version 1.
func oldCounts(files vfs.FS) (map[string]count, error) {
	versions := map[uint32]int{}
	known, err := readOldIndex(files, func(_ string, e *entry) error {
		versions[e.file]++
		return nil
	})
	all := map[string]count{}
	for number, f := range known {
		all[f.name] = count{f.end, versions[uint32(number)]}
	}
	return all, err
}

// converter visits the entries of URLs in order, and adds what version 1 lacked: the address of the
// content of an unchanged version, and the time of the last change. Its zero value is ready to use,
// by one goroutine at a time.
type converter struct {
	url     string
	changed []entry           // of the URL
	last    map[digest]*entry // last of changed by digest, and of all by ""; nil until needed
	missing fruitless         // the last search for a reference that found nothing
}

// complete completes the next entry.
func (c *converter) complete(url string, e *entry) {
	if url != c.url {
		c.url, c.changed, c.last = url, c.changed[:0], nil
	}
	switch {
	case e.kind == Changed:
		c.changed = append(c.changed, *e)
		if c.last != nil {
			c.see(&c.changed[len(c.changed)-1])
		}
		return
	case len(c.changed) == 0:
		return
	case !e.hasPrior:
		e.prior, e.hasPrior = c.changed[len(c.changed)-1].time, true
	}
	if e.kind == Failed || e.content.length > 0 {
		return
	}
	if c.last == nil {
		c.last = map[digest]*entry{}
		for i := range c.changed {
			c.see(&c.changed[i])
		}
	}
	if before, found := c.last[e.digest]; found {
		e.repeat(before)
	}
}

func (c *converter) see(e *entry) {
	copied := *e // because the list may be reallocated
	c.last[e.digest], c.last[""] = &copied, &copied
}
