// Package siphash computes SipHash-2-4 of strings.
//
// SipHash (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) is a keyed function
// that cannot be distinguished from a random one without the key. A crawler needs that: the author
// of a page chooses what is hashed, and with a predictable hash, the author could craft URLs that
// collide with those of other sites, whose pages would then look known. Unlike in hash/maphash, the
// key can be stored, together with the hashes.
package siphash

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// A Key selects one of the hash functions. It must be kept secret.
type Key [2]uint64

// KeySize is the size of a stored key in bytes.
const KeySize = 16

// NewKey returns a random key.
func NewKey() Key {
	var b [KeySize]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return KeyOf(b)
}

// KeyOf decodes a key as the authors of SipHash do: two words, little endian.
func KeyOf(b [KeySize]byte) Key {
	return Key{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// Bytes undoes KeyOf.
func (k Key) Bytes() (b [KeySize]byte) {
	binary.LittleEndian.PutUint64(b[:8], k[0])
	binary.LittleEndian.PutUint64(b[8:], k[1])
	return b
}

// Sum64 returns the 64-bit hash. It hashes the string word by word. The last word has the remaining
// bytes and the length.
func (k Key) Sum64(s string) uint64 {
	v0, v1 := k[0]^0x736f6d6570736575, k[1]^0x646f72616e646f6d
	v2, v3 := k[0]^0x6c7967656e657261, k[1]^0x7465646279746573
	last := uint64(len(s)) << 56
	for ; len(s) >= 8; s = s[8:] {
		m := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		v3 ^= m
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
		v0 ^= m
	}
	for i := range len(s) {
		last |= uint64(s[i]) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	for range 4 {
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

// round is the paper's SipRound. The compiler inlines it.
func round(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 = bits.RotateLeft64(v0, 32) + v3
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	return v0, v1, bits.RotateLeft64(v2, 32), v3
}
