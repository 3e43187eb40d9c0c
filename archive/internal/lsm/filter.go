package lsm

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// A filter is a Bloom filter of blocks of 64 bytes (Putze, Sanders and Singler, 2007): a lookup
// touches one cache line. With 10 bits per prefix, about 1% of lookups are false positives. The
// layout is on disk: do not change it.
type filter []byte

const (
	bitsPerPrefix = 10
	filterBlock   = 64
	filterProbes  = 6
	maxFilter     = 32 << 20 // bytes; a longer run has no filter
)

// newFilter returns nil if the filter would be too large. Then each lookup reads two blocks.
func newFilter(prefixes int64) filter {
	size := (prefixes*bitsPerPrefix/8 + filterBlock - 1) / filterBlock * filterBlock
	if size > maxFilter {
		return nil
	}
	return make(filter, max(size, filterBlock))
}

// hashOf must never change, so it uses checksums that processors compute. A website that makes URLs
// with equal hashes costs one wasted read per lookup.
func hashOf(prefix []byte) uint64 {
	h := uint64(crc32.Checksum(prefix, castagnoli))<<32 | uint64(crc32.ChecksumIEEE(prefix))
	h ^= h >> 31
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// locate returns the block of a hash, and the bits in it.
func (f filter) locate(hash uint64) (block []byte, probes uint64) {
	at, _ := bits.Mul64(hash, uint64(len(f)/filterBlock))
	return f[at*filterBlock:][:filterBlock], hash * 0xbf58476d1ce4e5b9 >> 8
}

func (f filter) add(hash uint64) {
	if f == nil {
		return
	}
	block, probes := f.locate(hash)
	for range filterProbes {
		block[probes>>3&63] |= 1 << (probes & 7)
		probes >>= 9
	}
}

// has may return true for a prefix that was not added.
func (f filter) has(hash uint64) bool {
	if f == nil {
		return true
	}
	block, probes := f.locate(hash)
	for range filterProbes {
		if block[probes>>3&63]&(1<<(probes&7)) == 0 {
			return false
		}
		probes >>= 9
	}
	return true
}

// sum is the checksum of a filter on disk.
func (f filter) sum() []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.Checksum(f, castagnoli))
}
