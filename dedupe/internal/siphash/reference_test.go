package siphash

import (
	"encoding/binary"
	"math/bits"
	"testing"
)

// plain follows the paper's section 2 sentence by sentence.
func plain(k Key, message string) uint64 {
	v := [4]uint64{
		k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d,
		k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573,
	}
	sipRounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[3]
			v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
			v[0] += v[3]
			v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
			v[2] += v[1]
			v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	padded := append([]byte(message), make([]byte, 8-len(message)%8)...)
	padded[len(padded)-1] = byte(len(message))
	for ; len(padded) > 0; padded = padded[8:] {
		m := binary.LittleEndian.Uint64(padded)
		v[3] ^= m
		sipRounds(2)
		v[0] ^= m
	}
	v[2] ^= 0xff
	sipRounds(4)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// FuzzSums compares the fast function with a plain transcription of the paper.
func FuzzSums(f *testing.F) {
	f.Add(uint64(1), uint64(2), "https://www.example.test/")
	f.Add(uint64(0), uint64(0), "")
	f.Add(^uint64(0), uint64(1), string(make([]byte, 300)))
	f.Fuzz(func(t *testing.T, k0, k1 uint64, message string) {
		key := Key{k0, k1}
		if want := plain(key, message); key.Sum64(message) != want {
			t.Errorf("Sum64 of %q with %x: %x, want %x", message, key, key.Sum64(message), want)
		}
	})
}
