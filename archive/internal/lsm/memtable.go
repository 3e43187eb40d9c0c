package lsm

import (
	"bytes"
	"runtime"
	"slices"
	"sync"
)

// perPair is the memory overhead of a pair.
const perPair = 80

// memtable is a sorted list of pairs in memory, in chunks, so that an insertion moves few pairs.
// Its methods are safe for concurrent use.
type memtable struct {
	mu     sync.RWMutex
	chunks [][]Pair // never empty ones
	count  int
	bytes  int
	meta   []byte // given to Freeze

	written bool // as a run, though not in the manifest yet
}

const chunkSize = 128

// put takes ownership of key and value.
func (m *memtable) put(key, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.chunks) == 0 {
		m.chunks = [][]Pair{append(make([]Pair, 0, chunkSize), Pair{Key: key, Value: value})}
		m.count, m.bytes = 1, len(key)+len(value)+perPair
		return
	}
	c := max(m.chunkAfter(key)-1, 0)
	at, found := slices.BinarySearchFunc(m.chunks[c], key, comparePair)
	if found {
		m.bytes += len(value) - len(m.chunks[c][at].Value)
		m.chunks[c][at].Value = value
		return
	}
	m.count++
	m.bytes += len(key) + len(value) + perPair
	m.chunks[c] = slices.Insert(m.chunks[c], at, Pair{Key: key, Value: value})
	if chunk := m.chunks[c]; len(chunk) == chunkSize {
		half := append(make([]Pair, 0, chunkSize), chunk[chunkSize/2:]...)
		clear(chunk[chunkSize/2:])
		m.chunks[c] = chunk[:chunkSize/2]
		m.chunks = slices.Insert(m.chunks, c+1, half)
	}
}

func comparePair(p Pair, key []byte) int { return bytes.Compare(p.Key, key) }

// chunkAfter returns the first chunk whose first key is above a key. It requires that m.mu is held.
func (m *memtable) chunkAfter(key []byte) int {
	n, _ := slices.BinarySearchFunc(m.chunks, key, func(chunk []Pair, key []byte) int {
		if bytes.Compare(chunk[0].Key, key) <= 0 {
			return -1
		}
		return 1
	})
	return n
}

// around updates the neighbors of a key.
func (m *memtable) around(n *Neighbors) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.chunks) == 0 {
		return
	}
	c := max(m.chunkAfter(n.Key)-1, 0)
	at, _ := slices.BinarySearchFunc(m.chunks[c], n.Key, comparePair)
	if at > 0 {
		n.SeeBelow(&m.chunks[c][at-1])
	} else if c > 0 {
		n.SeeBelow(&m.chunks[c-1][len(m.chunks[c-1])-1])
	}
	if at == len(m.chunks[c]) {
		if c, at = c+1, 0; c == len(m.chunks) {
			return
		}
	}
	n.SeeNext(m.chunks[c][at].Key)
}

// batch appends the pairs from a key on, up to the capacity of dst. Their bytes are not copied: put
// replaces a value, but never modifies it.
func (m *memtable) batch(dst []Pair, from []byte) []Pair {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.chunks) == 0 {
		return dst
	}
	c := max(m.chunkAfter(from)-1, 0)
	at, _ := slices.BinarySearchFunc(m.chunks[c], from, comparePair)
	for ; c < len(m.chunks) && len(dst) < cap(dst); c, at = c+1, 0 {
		n := min(len(m.chunks[c])-at, cap(dst)-len(dst))
		dst = append(dst, m.chunks[c][at:at+n]...)
	}
	return dst
}

func (m *memtable) size() (count, bytes int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.count, m.bytes
}

// memScan iterates over a memtable, which may grow during the scan.
type memScan struct {
	table *memtable
	pairs []Pair
	at    int
}

// memBatch is the number of pairs read under one lock, which takes microseconds.
const memBatch = 256

func newMemScan(m *memtable, low []byte) *memScan {
	return &memScan{table: m, pairs: m.batch(make([]Pair, 0, memBatch), low)}
}

// Next implements table.Source.
func (s *memScan) Next() (key, value []byte, err error) {
	if s.at == len(s.pairs) {
		if len(s.pairs) < memBatch {
			return nil, nil, nil
		}
		after := append(slices.Clone(s.pairs[s.at-1].Key), 0)
		if s.pairs, s.at = s.table.batch(s.pairs[:0], after), 0; len(s.pairs) == 0 {
			return nil, nil, nil
		}
		runtime.Gosched() // a lookup should not wait for the end of our time slice
	}
	p := s.pairs[s.at]
	s.at++
	return p.Key, p.Value, nil
}
