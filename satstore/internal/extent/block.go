// Package extent keeps satstore's records and messages: in buffers while they come, then in
// extents, pieces of up to about a megabyte of one data file.
//
// A [Part] is a sequence of entries of one bucket. The oldest entries are in extents, then come
// those that are being written, and the newest are in a buffer. An entry keeps its number from
// the moment it comes, wherever it lies. [File] writes and reads extents, and knows which room of
// the data file is free. [Reader] goes through a Part.
//
// Read block.go and part.go first, then buffer.go, file.go, space.go and reader.go.
package extent

import (
	"encoding/binary"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// These constants are on disk. Do not change them; add a version.
const (
	Header   = 32         // bytes of a block's header
	Records  = 0x52544153 // "SATR", little endian
	Messages = 0x4d544153 // "SATM"
	Places   = 0x50544153 // "SATP"
)

// BlockSize is how many bytes of entries make a block: so many that its header and checksum cost
// nothing, so few that a record which is held for long does not keep much memory.
const BlockSize = 64 << 10

// A Block is a checksummed piece of a bucket that can be read on its own. It knows its place, so
// that it cannot be taken for another.
type Block struct {
	Magic  uint32
	Bucket uint64
	First  uint64 // entries of the part before this block
	Count  uint32
	Raw    []byte // the entries
}

// Seal fills the room for a header that dst has from start on; the entries are behind it.
func (b Block) Seal(dst []byte, start int) {
	h := dst[start:]
	binary.LittleEndian.PutUint32(h[4:], b.Magic)
	binary.LittleEndian.PutUint32(h[8:], uint32(len(h)-Header))
	binary.LittleEndian.PutUint32(h[12:], b.Count)
	binary.LittleEndian.PutUint64(h[16:], b.Bucket)
	binary.LittleEndian.PutUint64(h[24:], b.First)
	binary.LittleEndian.PutUint32(h, disk.Sum(h[4:]))
}

// Open returns the block at the beginning of b, which shares its memory, and how many bytes of b
// it has. The reason is "" if all is well.
func Open(b []byte) (found Block, size int, reason string) {
	if len(b) < Header {
		return Block{}, 0, "a block's header is cut off"
	}
	length := binary.LittleEndian.Uint32(b[8:])
	if uint64(length) > uint64(len(b)-Header) {
		return Block{}, 0, "impossible length of a block"
	}
	size = Header + int(length)
	if disk.Sum(b[4:size]) != binary.LittleEndian.Uint32(b) {
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
