//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/spinneret-go/spinneret/internal/bench/measure"
)

// pebbleEngine keeps records in a log-structured tree: by fingerprint, or by slot and fingerprint,
// so that a slot is one range, which is deleted as a whole when its records have been written to
// other slots.
type pebbleEngine struct {
	db     *pebble.DB
	cache  *pebble.Cache
	w      *workload
	byTime bool
}

func openPebbleID(c config, w *workload) (engine, error) { return openPebble(c, w, false) }

func openPebbleTime(c config, w *workload) (engine, error) { return openPebble(c, w, true) }

// openPebble uses half of the buffers for the cache and half for memtables.
func openPebble(c config, w *workload, byTime bool) (engine, error) {
	cache := pebble.NewCache(bufferBytes / 2)
	options := &pebble.Options{
		Cache: cache, MemTableSize: bufferBytes / 4, MemTableStopWritesThreshold: 4,
		L0CompactionThreshold: 4, L0StopWritesThreshold: 24, LBaseMaxBytes: 256 << 20,
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		BytesPerSync:               1 << 20, WALBytesPerSync: 1 << 20, Logger: measure.Silent{},
	}
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		options.Levels[i].BlockSize = 4 << 10
	}
	db, err := pebble.Open(filepath.Join(c.Dir, "pebble"), options)
	return &pebbleEngine{db, cache, w, byTime}, err
}

func timeKey(slot int64, k [16]byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(slot)), k[:]...)
}

// pebbleBatch is the number of records in a batch.
const pebbleBatch = 10_000

// full commits a batch that is full, and returns the one that continues.
func (e *pebbleEngine) full(b *pebble.Batch) (*pebble.Batch, error) {
	if b.Count() < pebbleBatch {
		return b, nil
	}
	return e.db.NewBatch(), b.Commit(pebble.NoSync)
}

func (e *pebbleEngine) load() error {
	b := e.db.NewBatch()
	for i := range e.w.records {
		interval, first := e.w.plan(i)
		k := key(int32(i))
		id := k[:]
		if e.byTime {
			id = timeKey(firstSlot+first, k)
		}
		err := b.Set(id, e.w.url(e.w.data(nil, i, interval), i), nil)
		if err != nil {
			return err
		}
		if b, err = e.full(b); err != nil {
			return err
		}
	}
	return errors.Join(b.Commit(pebble.NoSync), e.db.Flush())
}

func (e *pebbleEngine) unit(slot int64, due []int32) (int, error) {
	if e.byTime {
		return e.unitByTime(slot)
	}
	return len(due), e.visit(slot, sortedKeys(due))
}

func (e *pebbleEngine) visit(slot int64, keys []keyOf) error {
	b := e.db.NewBatch()
	for _, k := range keys {
		old, closer, err := e.db.Get(k.key[:])
		if err != nil {
			return fmt.Errorf("record %d: %w", k.record, err)
		}
		value := append([]byte(nil), old...)
		if err := closer.Close(); err != nil {
			return err
		}
		visit(value, slot)
		if err := b.Set(k.key[:], value, nil); err != nil {
			return err
		}
		if b, err = e.full(b); err != nil {
			return err
		}
	}
	return b.Commit(pebble.Sync)
}

func (e *pebbleEngine) unitByTime(slot int64) (records int, err error) {
	from, to := timeKey(slot, [16]byte{}), timeKey(slot+1, [16]byte{})
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return 0, err
	}
	b := e.db.NewBatch()
	var value []byte
	for more := it.First(); more && err == nil; more = it.Next() {
		value = append(value[:0], it.Value()...)
		next := visit(value, slot)
		records++
		if err = b.Set(timeKey(next, [16]byte(it.Key()[8:])), value, nil); err == nil {
			b, err = e.full(b)
		}
	}
	if err := errors.Join(err, it.Close()); err != nil {
		return records, err
	}
	if err := b.DeleteRange(from, to, nil); err != nil {
		return records, err
	}
	return records, b.Commit(pebble.Sync)
}

func (e *pebbleEngine) close() error {
	err := e.db.Close()
	e.cache.Unref()
	return err
}
