package message

import (
	"math/bits"
	"net/netip"
)

// Hash is 64-bit FNV-1a followed by the finalizer of MurmurHash3, so that the high bits, which
// [Part] uses, depend on the whole key. It must never change: with another hash, keys would go to
// partitions that do not have their state.
func Hash(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h ^= uint64(key[i])
		h *= 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Part returns the partition of a key among n: the n equal parts of the range of Hash, in order.
func Part(key string, n int) int {
	part, _ := bits.Mul64(Hash(key), uint64(n))
	return int(part)
}

// AddrPart returns the partition of an address. One that is mapped into IPv6 counts as the IPv4
// one.
func AddrPart(addr netip.Addr, n int) int {
	b := addr.Unmap().WithZone("").As16()
	return Part(string(b[:]), n)
}
