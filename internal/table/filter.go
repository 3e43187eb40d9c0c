package table

import (
	"hash/crc32"
	"math/bits"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// A filter is a Bloom filter of lines of 64 bytes (Putze, Sanders and Singler, "Cache-, hash- and
// space-efficient Bloom filters", 2007): a look-up touches one cache line. Of look-ups in vain,
// about 1 % pass it with 10 bits for each key, 0.4 % with 12 and 0.1 % with 16. The layout is on
// disk. Do not change it; add a version.
type filter []byte

const (
	filterLine   = 64
	filterProbes = 7
)

// newFilter returns a filter of hashes.
func newFilter(hashes []uint64, bitsPerKey int) filter {
	f := make(filter, (len(hashes)*bitsPerKey/8/filterLine+1)*filterLine)
	for _, h := range hashes {
		line, spots := f.locate(h)
		for range filterProbes {
			line[spots>>3%filterLine] |= 1 << (spots & 7)
			spots >>= 9
		}
	}
	return f
}

// hashOf uses checksums that processors compute. A website that makes URLs with equal hashes costs
// one wasted read for each look-up.
func hashOf(key []byte) uint64 {
	h := uint64(durable.Sum(key))<<32 | uint64(crc32.ChecksumIEEE(key))
	h ^= h >> 31
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// locate returns the line of a hash, and the bits in it.
func (f filter) locate(hash uint64) (line []byte, spots uint64) {
	at, _ := bits.Mul64(hash, uint64(len(f)/filterLine))
	return f[at*filterLine:][:filterLine:filterLine], hash * 0xbf58476d1ce4e5b9 >> 1
}

// has may return true for a hash that was not added. A filter that is not in memory has all.
func (f filter) has(hash uint64) bool {
	if f == nil {
		return true
	}
	line, spots := f.locate(hash)
	for range filterProbes {
		if line[spots>>3%filterLine]&(1<<(spots&7)) == 0 {
			return false
		}
		spots >>= 9
	}
	return true
}
