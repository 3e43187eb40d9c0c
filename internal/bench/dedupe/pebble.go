//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

// pebbleStore uses a log-structured tree with Bloom filters. A quarter of the memory is for its
// cache, a quarter for its memtables, and the rest for the batch.
type pebbleStore struct {
	*batch
	db    *pebble.DB
	cache *pebble.Cache
}

func openPebble(dir string, o options) (store, error) {
	b, err := newBatch(dir, o.memory/2)
	if err != nil {
		return nil, err
	}
	cache := pebble.NewCache(o.memory / 4)
	options := &pebble.Options{
		Cache:        cache,
		MemTableSize: uint64(max(o.memory/8, 1<<18)), // there may be two
		Logger:       measure.Silent{},
	}
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(filepath.Join(dir, "pebble"), options)
	if err != nil {
		return nil, err
	}
	s := &pebbleStore{b, db, cache}
	b.decide = s.decideSorted
	return s, nil
}

func (s *pebbleStore) decideSorted(sorted []sighting) (news []sighting, err error) {
	keys, err := s.db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	changes := s.db.NewBatch()
	defer changes.Close()
	news = sorted[:0]
	var key [8]byte
	for _, sighting := range sorted {
		binary.BigEndian.PutUint64(key[:], sighting.print)
		if keys.SeekGE(key[:]) && string(keys.Key()) == string(key[:]) {
			continue
		}
		if err := changes.Set(key[:], nil, nil); err != nil {
			return nil, errors.Join(err, keys.Close())
		}
		news = append(news, sighting)
	}
	if err := keys.Close(); err != nil {
		return nil, err
	}
	return news, changes.Commit(pebble.Sync)
}

func (s *pebbleStore) finish() (found uint64, err error) {
	err = s.merge()
	err = errors.Join(err, s.db.Close(), s.log.Close())
	s.cache.Unref()
	return s.found, err
}

func (s *pebbleStore) unmap() error { return nil }
