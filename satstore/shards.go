package satstore

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// Shards are several stores, each with a part of the ids, for several disks or cores. Every id
// belongs to one of them by its hash; so the directories have to be the same ones, in their order,
// whenever they are opened. Its methods are safe for concurrent use.
//
// What is due is read from each of [Shards.Stores] by a goroutine of its own.
type Shards struct{ stores []*Store }

// OpenShards opens a store in each directory, of which there has to be one at least. Options.Buffer
// is for each of them.
func OpenShards(dirs []string, o Options) (*Shards, error) {
	if len(dirs) == 0 {
		return nil, errors.New("satstore: open shards: no directory")
	}
	s := &Shards{}
	for _, dir := range dirs {
		store, err := Open(dir, o)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.stores = append(s.stores, store)
	}
	return s, nil
}

// Stores returns the stores in the order of their directories.
func (s *Shards) Stores() []*Store { return append([]*Store(nil), s.stores...) }

// For returns the store that an id belongs to.
func (s *Shards) For(id string) *Store { return s.stores[s.index(id)] }

func (s *Shards) index(id string) int {
	// By other bytes than those that sort the ids, or each store's would begin alike and fill
	// only a part of its filters' lines.
	print := idset.KeyOf(id)
	return int(binary.LittleEndian.Uint64(print[8:]) % uint64(len(s.stores)))
}

// AddBatch adds each record to its store, all stores at the same time. Of each store's part holds
// what [Store.AddBatch] says: an item of one that is refused does not keep back those of others.
func (s *Shards) AddBatch(items []Item) (added int, err error) {
	batches := make([][]Item, len(s.stores))
	for _, item := range items {
		i := s.index(item.ID)
		batches[i] = append(batches[i], item)
	}
	counts := make([]int, len(s.stores))
	err = s.each(func(i int, store *Store) (err error) {
		counts[i], err = store.AddBatch(batches[i])
		return err
	})
	for _, n := range counts {
		added += n
	}
	return added, err
}

// Advance begins the next slot in all stores. After an error some may be a slot ahead.
func (s *Shards) Advance() error {
	return s.each(func(_ int, store *Store) error { return store.Advance() })
}

// Sync syncs all stores.
func (s *Shards) Sync() error {
	return s.each(func(_ int, store *Store) error { return store.Sync() })
}

// Close closes all stores.
func (s *Shards) Close() error {
	return s.each(func(_ int, store *Store) error { return store.Close() })
}

// each calls do for all stores at the same time and joins the errors.
func (s *Shards) each(do func(int, *Store) error) error {
	errs := make([]error, len(s.stores)) // one each, so that nobody needs a lock
	var wait sync.WaitGroup
	for i, store := range s.stores {
		wait.Go(func() { errs[i] = do(i, store) })
	}
	wait.Wait()
	return errors.Join(errs...)
}
