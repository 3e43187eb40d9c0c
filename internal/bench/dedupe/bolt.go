//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// boltStore uses a B+ tree. It maps its file into memory, which it neither reports nor limits: all
// of the given memory is for its batch.
type boltStore struct {
	*batch
	db *bbolt.DB
}

var boltBucket = []byte("urls")

func openBolt(dir string, o options) (store, error) {
	b, err := newBatch(dir, o.memory)
	if err != nil {
		return nil, err
	}
	db, err := bbolt.Open(filepath.Join(dir, "bolt"), 0o600, &bbolt.Options{
		FreelistType: bbolt.FreelistMapType, // the faster one
	})
	if err != nil {
		return nil, err
	}
	s := &boltStore{b, db}
	b.decide = s.decideSorted
	return s, nil
}

func (s *boltStore) decideSorted(sorted []sighting) (news []sighting, err error) {
	return news, s.db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists(boltBucket)
		if err != nil {
			return err
		}
		bucket.FillPercent = 0.7 // keys are random, so free space saves splits
		news = sorted[:0]
		cursor := bucket.Cursor()
		for _, sighting := range sorted {
			key := binary.BigEndian.AppendUint64(nil, sighting.print)
			if found, _ := cursor.Seek(key); string(found) == string(key) {
				continue
			}
			news = append(news, sighting)
		}
		for _, sighting := range news {
			key := binary.BigEndian.AppendUint64(nil, sighting.print)
			if err := bucket.Put(key, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *boltStore) finish() (found uint64, err error) {
	err = s.merge()
	return s.found, errors.Join(err, s.db.Close(), s.log.Close())
}

func (s *boltStore) unmap() error { return dropMapped(s.db.Info().Data) }
