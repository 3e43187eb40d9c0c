//go:build linux

package main

import (
	"bufio"
	"cmp"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
)

// A batch collects sightings for a key-value store, which looks them up in the order of its keys.
// The setup favors the stores: keys are fingerprints from the hash function of the Go runtime,
// there are no values, and new URLs go to a plain file without checksums. A crash may lose URLs
// whose keys are stored, or duplicate them.
type batch struct {
	size   int
	seed   maphash.Seed
	prints []sighting
	arena  []byte
	log    *os.File
	out    *bufio.Writer
	found  uint64
	decide func(sorted []sighting) (news []sighting, err error)
}

type sighting struct {
	print uint64
	at    uint64 // of the URL in the arena
}

// newBatch returns a batch that uses the given memory.
func newBatch(dir string, memory int64) (*batch, error) {
	f, err := os.Create(filepath.Join(dir, "urls"))
	size := int(memory) / (16 + meanURL)
	return &batch{
		size:   size,
		seed:   maphash.MakeSeed(),
		prints: make([]sighting, 0, size),
		arena:  make([]byte, 0, size*meanURL),
		log:    f,
		out:    bufio.NewWriterSize(f, 1<<18),
	}, err
}

func (b *batch) add(url string) error {
	b.prints = append(b.prints, sighting{maphash.String(b.seed, url), uint64(len(b.arena))})
	b.arena = append(b.arena, url...)
	if len(b.prints) < b.size {
		return nil
	}
	return b.merge()
}

// merge passes the batch to the store and writes the new URLs to the file.
func (b *batch) merge() error {
	slices.SortFunc(b.prints, func(x, y sighting) int {
		return cmp.Or(cmp.Compare(x.print, y.print), cmp.Compare(x.at, y.at))
	})
	sorted := slices.CompactFunc(b.prints, func(x, y sighting) bool { return x.print == y.print })
	news, err := b.decide(sorted)
	if err != nil {
		return err
	}
	slices.SortFunc(news, func(x, y sighting) int { return cmp.Compare(x.at, y.at) })
	for _, s := range news {
		_, _ = b.out.Write(b.arena[s.at : s.at+uint64(meanURL)]) // Flush returns errors
		_ = b.out.WriteByte(0x0a)
	}
	b.found += uint64(len(news))
	b.prints, b.arena = b.prints[:0], b.arena[:0]
	if err := b.out.Flush(); err != nil {
		return err
	}
	return b.log.Sync()
}
