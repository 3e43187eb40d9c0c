//go:build linux

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"
)

// boltEngine keeps records in a B+ tree by their fingerprints. The records of a slot are visited in
// the order of their keys, and written back in transactions that fit into memory.
type boltEngine struct {
	db *bbolt.DB
	w  *workload
}

var boltBucket = []byte("records")

func openBolt(c config, w *workload) (engine, error) {
	db, err := bbolt.Open(filepath.Join(c.Dir, "bolt"), 0o600, &bbolt.Options{
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
	return &boltEngine{db, w}, err
}

// boltBatch is the number of records that one transaction changes: each may dirty a different page.
const boltBatch = 20_000

// sortedKeys returns the keys of records with the records, sorted by key.
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

// load puts the records in the order of their keys, as in the paper. It recomputes the keys,
// because storing them all would use much of the memory.
func (e *boltEngine) load() error {
	all := make([]int32, e.w.records)
	for i := range all {
		all[i] = int32(i)
	}
	slices.SortFunc(all, func(a, b int32) int {
		k, l := key(a), key(b)
		return bytes.Compare(k[:], l[:])
	})
	for some := range slices.Chunk(all, boltBatch) {
		err := e.db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(boltBucket)
			if err != nil {
				return err
			}
			b.FillPercent = 0.9
			for _, record := range some {
				interval, _ := e.w.plan(int(record))
				value := e.w.url(e.w.data(nil, int(record), interval), int(record))
				k := key(record)
				if err := b.Put(k[:], value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return e.db.Sync()
}

func (e *boltEngine) unit(slot int64, due []int32) (records int, err error) {
	for keys := range slices.Chunk(sortedKeys(due), boltBatch) {
		if err := e.visit(slot, keys); err != nil {
			return records, err
		}
		records += len(keys)
	}
	return records, nil
}

func (e *boltEngine) visit(slot int64, keys []keyOf) error {
	return e.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(boltBucket)
		for _, k := range keys {
			old := b.Get(k.key[:])
			if old == nil {
				return fmt.Errorf("record %d is missing", k.record)
			}
			value := bytes.Clone(old)
			visit(value, slot)
			if err := b.Put(k.key[:], value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *boltEngine) close() error { return e.db.Close() }
