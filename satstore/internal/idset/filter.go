package idset

import "encoding/binary"

// A filter tells which keys a segment surely does not have, so that a new id costs no read. It is
// a Bloom filter whose bits for one key are in one cache line: 10 bits for a key, 7 of them set,
// and about one in 60 of the others is taken for a member.
type filter []byte

const (
	filterLine   = 64
	filterBits   = 10
	filterProbes = 7
)

func newFilter(keys int64) filter {
	return make(filter, (keys*filterBits/8/filterLine+1)*filterLine)
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
