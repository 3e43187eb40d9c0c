// Package extent stores records and messages: first in buffers, then in extents, which are pieces
// of about a megabyte of one data file.
//
// A [Part] is a sequence of entries of one bucket. The oldest entries are in extents, then come
// those that are being written, and the newest are in a buffer. The number of an entry never
// changes. [File] writes and reads extents and manages the room in the data file. [Reader] reads a
// Part.
//
// Read block.go and part.go first, then buffer.go, file.go, space.go and reader.go.
package extent

import (
	"encoding/binary"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// These constants are on disk. Do not change them; add a version.
const (
	Header   = 32         // bytes of a block's header
	Records  = 0x52544153 // "SATR", little endian
	Messages = 0x4d544153 // "SATM"
	Places   = 0x50544153 // "SATP"
)

// BlockSize is the number of bytes of entries in a block: large enough to make its header and
// checksum cheap, and small enough that a record that stays out keeps little memory.
const BlockSize = 64 << 10

// A Block is a piece of a bucket with a checksum. It can be read on its own, and identifies itself,
// so that it cannot be mistaken for another.
type Block struct {
	Magic  uint32
	Bucket uint64
	First  uint64 // entries of the part before this block
	Count  uint32
	Raw    []byte // the entries
}

// Has reports whether an entry of a bucket is in the block.
func (b Block) Has(bucket, entry uint64) bool {
	return b.Bucket == bucket && b.First <= entry && entry-b.First < uint64(b.Count)
}

// Seal fills in the header at dst[start:]. The entries follow it.
func (b Block) Seal(dst []byte, start int) {
	h := dst[start:]
	binary.LittleEndian.PutUint32(h[4:], b.Magic)
	binary.LittleEndian.PutUint32(h[8:], uint32(len(h)-Header))
	binary.LittleEndian.PutUint32(h[12:], b.Count)
	binary.LittleEndian.PutUint64(h[16:], b.Bucket)
	binary.LittleEndian.PutUint64(h[24:], b.First)
	binary.LittleEndian.PutUint32(h, durable.Sum(h[4:]))
}

// Open returns the block at the beginning of b and its size in bytes. The block shares the memory
// of b. The reason is "" if the block is valid.
func Open(b []byte) (found Block, size int, reason string) {
	if len(b) < Header {
		return Block{}, 0, "a block's header is cut off"
	}
	length := binary.LittleEndian.Uint32(b[8:])
	if uint64(length) > uint64(len(b)-Header) {
		return Block{}, 0, "impossible length of a block"
	}
	size = Header + int(length)
	if durable.Sum(b[4:size]) != binary.LittleEndian.Uint32(b) {
		return Block{}, 0, "wrong checksum"
	}
	if binary.LittleEndian.Uint32(b[12:]) > length { // an entry has a byte at least
		return Block{}, 0, "impossible number of entries in a block"
	}
	return Block{
		Magic:  binary.LittleEndian.Uint32(b[4:]),
		Count:  binary.LittleEndian.Uint32(b[12:]),
		Bucket: binary.LittleEndian.Uint64(b[16:]),
		First:  binary.LittleEndian.Uint64(b[24:]),
		Raw:    b[Header:size:size],
	}, size, ""
}
