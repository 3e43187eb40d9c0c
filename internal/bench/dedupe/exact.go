//go:build linux

package main

import "github.com/spinneret-go/spinneret/dedupe/exact"

// exactStore uses a Set with its defaults.
type exactStore struct{ set *exact.Set }

func openExact(dir string, o options) (store, error) {
	set, err := exact.Open(dir, exact.Options{Memory: o.memory})
	return exactStore{set}, err
}

func (s exactStore) add(url string) error { return s.set.Defer(url, nil) }

func (s exactStore) finish() (found uint64, err error) {
	if err := s.set.Merge(); err != nil {
		return 0, err
	}
	found = s.set.Stats().URLs
	return found, s.set.Close()
}

func (exactStore) unmap() error { return nil }
