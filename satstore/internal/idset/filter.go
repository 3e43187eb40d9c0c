package idset

import "encoding/binary"

// A filter rules out keys that a segment does not have, so that a new id costs no read. It is a
// Bloom filter whose bits for one key are in one cache line.
//
// Most runs are small, and most keys are in the large ones (as in Monkey: Dayan, Athanassoulis and
// Idreos, 2017). So the filters of small segments have more bits per key: about one look-up in
// 1,000 reads a block in vain there, and one in 240 in large segments, where memory matters.
type filter []byte

const (
	filterLine   = 64
	filterProbes = 7
	smallBits    = 16 // per key
	largeBits    = 12
)

func newFilter(keys, bits int64) filter {
	return make(filter, (keys*bits/8/filterLine+1)*filterLine)
}

func (f filter) line(key Key) []byte {
	n := binary.BigEndian.Uint64(key[:8]) % uint64(len(f)/filterLine)
	return f[n*filterLine:][:filterLine]
}

func (f filter) add(key Key) {
	line, h := f.line(key), binary.BigEndian.Uint64(key[8:])
	for range filterProbes {
		line[h%512/8] |= 1 << (h % 8)
		h >>= 9
	}
}

func (f filter) has(key Key) bool {
	line, h := f.line(key), binary.BigEndian.Uint64(key[8:])
	for range filterProbes {
		if line[h%512/8]&(1<<(h%8)) == 0 {
			return false
		}
		h >>= 9
	}
	return true
}
