package archive

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// maxPart is the number of entries that one transaction of a commit writes: bbolt holds every page
// that a transaction changes in memory, several times as large as on disk.
const maxPart = 1 << 14

// dirty tells whether there is something to commit.
func (x *index) dirty() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, f := range x.files {
		if f.dirty {
			return true
		}
	}
	return x.count > 0
}

// commit writes what waits, in several transactions if it is much. It requires that the WARC files
// are on disk as far as they are indexed: the index must not outlive what it points to.
func (x *index) commit() (err error) {
	if !x.dirty() {
		return nil
	}
	before := guard()
	defer func() { mended(before, recover(), &err) }()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.idle.end()
	// In the order of the keys: neighbours then change the same page, which is written once.
	urls := slices.Sorted(maps.Keys(x.pending))
	for last := false; !last; {
		n, count := 0, 0
		for ; n < len(urls) && count < x.part; n++ {
			count += len(x.pending[urls[n]])
		}
		last = n == len(urls)
		if err := x.commitPart(urls[:n], last); err != nil {
			return fmt.Errorf("%w: commit: %w", ErrIndex, err)
		}
		urls = urls[n:]
	}
	return nil
}

// commitPart writes what waits of some URLs. Up to where files are indexed is only said with the
// last part: after a crash before that, the same entries are put in their places again. But files
// have their numbers from the first part on, as entries have those within. It requires that x.mu
// is held.
func (x *index) commitPart(urls []string, last bool) error {
	err := x.db.Update(func(tx *bbolt.Tx) error {
		if err := x.writeEntries(tx, urls); err != nil {
			return err
		}
		return x.writeFiles(tx, last)
	})
	if err != nil {
		return err
	}
	// Only now: until the transaction was committed, who asks has to find them here.
	for _, url := range urls {
		for i := range x.pending[url] {
			x.count--
			x.long -= len(x.pending[url][i].url)
		}
		delete(x.pending, url)
	}
	if last {
		for _, f := range x.files {
			f.kept, f.dirty = f.end, false
		}
	}
	return nil
}

func (x *index) writeEntries(tx *bbolt.Tx, urls []string) error {
	entries := tx.Bucket(entriesBucket)
	var key, values []byte
	for _, url := range urls {
		for i := range x.pending[url] {
			e := &x.pending[url][i]
			start := len(values)
			key, values = appendKey(key[:0], url, e), e.appendValue(values)
			// The key is copied; the value has to stay as it is until the end of the transaction.
			if err := entries.Put(key, values[start:len(values):len(values)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeFiles leaves the last committed ends as they are unless this is the last part.
func (x *index) writeFiles(tx *bbolt.Tx, last bool) error {
	files := tx.Bucket(filesBucket)
	for name, f := range x.files {
		if !f.dirty {
			continue
		}
		end := f.kept
		if last {
			end = f.end
		}
		value := append(binary.BigEndian.AppendUint64(nil, uint64(end)), name...)
		if err := files.Put(binary.BigEndian.AppendUint32(nil, f.number), value); err != nil {
			return err
		}
	}
	return nil
}
