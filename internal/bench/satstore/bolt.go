package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"go.etcd.io/bbolt"
)

// boltEngine keeps records in a B+ tree by their fingerprints. Those of a slot are visited in the
// order of their keys, and written back in one transaction. Readers may bring the pages in before.
type boltEngine struct {
	db      *bbolt.DB
	w       *workload
	readers int
}

var boltBucket = []byte("records")

func openBolt(c config, w *workload) (engine, error) {
	db, err := bbolt.Open(filepath.Join(c.Dir, "bolt"), 0o600, &bbolt.Options{
		NoSync: c.Engine == "bolt-nosync", PageSize: c.Page,
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
	return &boltEngine{db, w, c.Readers}, err
}

// sortedKeys returns the keys of records in order, with their records.
func sortedKeys(records []int32) []keyOf {
	keys := make([]keyOf, len(records))
	for i, r := range records {
		keys[i] = keyOf{key(r), r}
	}
	slices.SortFunc(keys, func(a, b keyOf) int { return bytes.Compare(a.key[:], b.key[:]) })
	return keys
}

type keyOf struct {
	key    [16]byte
	record int32
}

func (e *boltEngine) load() error {
	all := make([]int32, e.w.records)
	for i := range all {
		all[i] = int32(i)
	}
	keys := sortedKeys(all) // as the paper does
	for len(keys) > 0 {
		n := min(len(keys), 200_000)
		err := e.db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(boltBucket)
			if err != nil {
				return err
			}
			b.FillPercent = 0.9
			for _, k := range keys[:n] {
				interval, _ := e.w.plan(int(k.record))
				value := e.w.url(e.w.data(nil, int(k.record), interval), int(k.record))
				if err := b.Put(k.key[:], value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		keys = keys[n:]
	}
	return e.db.Sync()
}

func (e *boltEngine) unit(slot int64, due []int32) (records int, err error) {
	keys := sortedKeys(due)
	if e.readers > 1 {
		if err := e.readAhead(keys); err != nil {
			return 0, err
		}
	}
	err = e.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(boltBucket)
		for _, k := range keys {
			old := b.Get(k.key[:])
			if old == nil {
				return fmt.Errorf("record %d is gone", k.record)
			}
			value := bytes.Clone(old)
			visit(value, slot)
			if err := b.Put(k.key[:], value); err != nil {
				return err
			}
			records++
		}
		return nil
	})
	return records, err
}

// readAhead reads the values by several goroutines, as the one writer cannot.
func (e *boltEngine) readAhead(keys []keyOf) error {
	var wait sync.WaitGroup
	errs := make([]error, e.readers)
	for i := range e.readers {
		part := keys[i*len(keys)/e.readers : (i+1)*len(keys)/e.readers]
		wait.Go(func() {
			errs[i] = e.db.View(func(tx *bbolt.Tx) error {
				b, n := tx.Bucket(boltBucket), 0
				for _, k := range part {
					n += len(b.Get(k.key[:]))
				}
				if n < len(part) {
					return fmt.Errorf("records are gone")
				}
				return nil
			})
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *boltEngine) close() error { return e.db.Close() }
