package satstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A fingerprint stands for an id. SHA-256 needs no secret, so no two stores differ, and nobody can
// make ids that collide; 2^64 ids would have to be tried.
type fingerprint [fingerprintSize]byte

const fingerprintSize = 16

func fingerprintOf(id []byte) fingerprint {
	sum := sha256.Sum256(id)
	return fingerprint(sum[:fingerprintSize])
}

// ids is the sequence index: the sequence number of each id. It is a log-structured merge: ids that
// are new since the last checkpoint are in a map, the others in sorted runs, each more than twice
// as long as the next. A batch is looked up in order, so that it reads a block at most once, and an
// id that is new reads none, thanks to the runs' filters. A B-tree would read a leaf for each.
type ids struct {
	fs     vfs.FS
	noSync bool
	recent map[fingerprint]uint64
	runs   []*run // the longest and oldest first
	file   uint64 // number of the latest run
	closed bool   // so that whoever comes too late is told that, and not what the files say
}

// find returns the value of a fingerprint; values of deleted ids have the deletedBit.
func (x *ids) find(key fingerprint) (value uint64, found bool, err error) {
	if x.closed {
		return 0, false, ErrClosed
	}
	if value, found := x.recent[key]; found {
		return value, true, nil
	}
	for _, r := range slices.Backward(x.runs) {
		if value, found, err := r.find(key); found || err != nil {
			return value, found, err
		}
	}
	return 0, false, nil
}

// seq returns the sequence number of an id that is there.
func (x *ids) seq(key fingerprint) (seq uint64, found bool, err error) {
	value, found, err := x.find(key)
	return value &^ deletedBit, found && value&deletedBit == 0, err
}

func (x *ids) set(key fingerprint, value uint64) {
	if x.recent == nil {
		x.recent = map[fingerprint]uint64{}
	}
	x.recent[key] = value
}

// flush brings what is recent to the disk and returns the runs that are then in use. They have to
// be adopted once nothing can go back to the old ones.
func (x *ids) flush() (runs []*run, err error) {
	if len(x.recent) == 0 {
		return x.runs, nil
	}
	// Each run is more than twice as long as the next, so there are no more of them than the
	// logarithm of the number of ids, and an id is written again as often. The newest source comes
	// first, as its word counts.
	sources, most := []source{newRecentSource(x.recent)}, int64(len(x.recent))
	kept := len(x.runs)
	for kept > 0 && x.runs[kept-1].count <= 2*most {
		kept--
		sources = append(sources, &runSource{run: x.runs[kept]})
		most += x.runs[kept].count
	}
	x.file++ // also if it fails, so that no name is used twice while the store is open
	w, err := createRun(x.fs, x.file, most)
	if err != nil {
		return nil, err
	}
	err = merge(sources, func(key fingerprint, value uint64) {
		if value&deletedBit == 0 || kept > 0 { // what no older run has need not be forgotten
			w.add(key, value)
		}
	})
	if err == nil {
		err = w.finish(!x.noSync)
	}
	if err != nil {
		// The first error says more than these. On a full disk each attempt has a new name, and what
		// the last one wrote must not take the room for the next.
		_ = w.file.Close()
		_ = x.fs.Remove(w.name())
		return nil, err
	}
	return append(slices.Clone(x.runs[:kept]), w.run), nil
}

// adopt uses other runs from now on, closes those that are not among them, and returns their names.
func (x *ids) adopt(runs []*run) (old []string) {
	for _, r := range x.runs {
		if !slices.Contains(runs, r) {
			_ = r.file.Close() // it was only read
			old = append(old, r.name())
		}
	}
	x.runs, x.recent = runs, nil
	return old
}

func (x *ids) close() (err error) {
	x.closed = true
	for _, r := range x.runs {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// A source gives entries in order.
type source interface {
	// next returns false after the last entry.
	next() (key fingerprint, value uint64, more bool, err error)
}

type recentSource struct {
	keys   []fingerprint
	values map[fingerprint]uint64
}

func newRecentSource(recent map[fingerprint]uint64) *recentSource {
	s := &recentSource{make([]fingerprint, 0, len(recent)), recent}
	for key := range recent {
		s.keys = append(s.keys, key)
	}
	slices.SortFunc(s.keys, func(a, b fingerprint) int { return bytes.Compare(a[:], b[:]) })
	return s
}

func (s *recentSource) next() (key fingerprint, value uint64, more bool, err error) {
	if len(s.keys) == 0 {
		return key, 0, false, nil
	}
	key, s.keys = s.keys[0], s.keys[1:]
	return key, s.values[key], true, nil
}

type runSource struct {
	*run
	block int64
	rest  []byte
}

func (s *runSource) next() (key fingerprint, value uint64, more bool, err error) {
	if len(s.rest) == 0 {
		if s.block == s.blocks() {
			return key, 0, false, nil
		}
		size := s.entries(s.block)*runEntry + checkSize
		if s.rest, err = s.open(make([]byte, size), s.offset(s.block)); err != nil {
			return key, 0, false, err
		}
		s.block++
	}
	copy(key[:], s.rest)
	value = binary.LittleEndian.Uint64(s.rest[fingerprintSize:])
	s.rest = s.rest[runEntry:]
	return key, value, true, nil
}

// each visits all ids that are there.
func (x *ids) each(visit func(key fingerprint, seq uint64)) error {
	sources := []source{newRecentSource(x.recent)}
	for _, r := range slices.Backward(x.runs) {
		sources = append(sources, &runSource{run: r})
	}
	return merge(sources, func(key fingerprint, value uint64) {
		if value&deletedBit == 0 {
			visit(key, value)
		}
	})
}

// merge visits the entries of several sources in order. Of those with the same key, the first
// source's is the newest, and the only one.
func merge(sources []source, visit func(key fingerprint, value uint64)) error {
	keys, values := make([]fingerprint, len(sources)), make([]uint64, len(sources))
	step := func(i int) (more bool, err error) {
		keys[i], values[i], more, err = sources[i].next()
		return more, err
	}
	// There are a dozen sources at most, so looking at all of them for the least is as fast as a
	// heap.
	open := make([]bool, len(sources))
	for i := range sources {
		var err error
		if open[i], err = step(i); err != nil {
			return err
		}
	}
	for {
		first := -1
		for i := range sources {
			if open[i] && (first < 0 || bytes.Compare(keys[i][:], keys[first][:]) < 0) {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		key := keys[first]
		visit(key, values[first])
		for i := range sources {
			var err error
			if open[i] && keys[i] == key {
				if open[i], err = step(i); err != nil {
					return fmt.Errorf("satstore: merge ids: %w", err)
				}
			}
		}
	}
}
