package durable

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
)

// SumSize is the size of a checksum in bytes.
const SumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum returns the CRC-32C of b.
func Sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// SumOn continues a checksum: sum is the CRC-32C of the bytes before b.
func SumOn(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// SumNumber continues a checksum with the eight bytes of a number, low ones first. Package crc32
// would make their array escape, and each call would allocate it.
func SumNumber(sum uint32, n uint64) uint32 {
	sum = ^sum
	for range 8 {
		sum = castagnoli[byte(sum)^byte(n)] ^ sum>>8
		n >>= 8
	}
	return ^sum
}

const (
	magicSize = 8
	frameSize = magicSize + 8 + SumSize // beside the body
)

// SumAt returns the checksum of a part of a file. It includes the number of the file and the place of
// the part in it, so that no part can be mistaken for another.
func SumAt(file uint64, at int64, b []byte) uint32 {
	return SumOn(SumNumber(SumNumber(0, file), uint64(at)), b)
}

// Seal returns a frame: the magic, the length of the body (8 bytes, little endian), the CRC-32C of
// both and the body, and the body. A magic has eight bytes: a name, the number of the version, and
// perhaps line feeds. This layout is the same in all versions, so that each can tell another one
// from damage.
func Seal(magic string, body []byte) []byte {
	if len(magic) != magicSize {
		panic("durable: a magic has 8 bytes")
	}
	b := make([]byte, frameSize, frameSize+len(body))
	copy(b, magic)
	binary.LittleEndian.PutUint64(b[magicSize:], uint64(len(body)))
	binary.LittleEndian.PutUint32(b[magicSize+8:], SumOn(Sum(b[:magicSize+8]), body))
	return append(b, body...)
}

// FrameSize returns the size of the frame that b begins with, according to its header, or MaxInt64 if
// there can be none.
func FrameSize(b []byte) int64 {
	if len(b) < frameSize {
		return math.MaxInt64
	}
	return frameSize + int64(min(binary.LittleEndian.Uint64(b[magicSize:]), math.MaxInt64-frameSize))
}

// Unseal returns the body of the frame that fills b. The file and the offset of b are for errors.
// The magics before are those of versions whose files had other frames.
func Unseal(file string, at int64, magic string, b []byte, before ...string) ([]byte, error) {
	if len(b) >= magicSize && slices.Contains(before, string(b[:magicSize])) {
		// Those had no checksum there. If the rest is right for the present magic, only that is damaged.
		if _, err := Unseal(file, at, magic, append([]byte(magic), b[magicSize:]...)); err == nil {
			return nil, Corrupt(file, at, "a damaged magic")
		}
		return nil, Version(file, string(b[:magicSize]))
	}
	if len(b) < frameSize {
		return nil, Corrupt(file, at, "the file ends too early")
	}
	head, body := b[:frameSize], b[frameSize:]
	size := binary.LittleEndian.Uint64(head[magicSize:])
	if size > uint64(len(body)) {
		return nil, Corrupt(file, at, "wrong length")
	}
	found := string(head[:magicSize])
	sum := SumOn(Sum(head[:magicSize+8]), body[:size])
	switch {
	case sum != binary.LittleEndian.Uint32(head[magicSize+8:]):
		return nil, Corrupt(file, at, "wrong checksum")
	case found == magic && size == uint64(len(body)):
		return body, nil
	case found != magic && family(found) == family(magic):
		return nil, Version(file, found)
	}
	return nil, Corrupt(file, at, "something else than what belongs here")
}

// Version returns an error that wraps ErrVersion.
func Version(file, found string) error {
	if file == "" {
		return fmt.Errorf("%w: %q", ErrVersion, strings.TrimSpace(found))
	}
	return fmt.Errorf("%w: %s: %q", ErrVersion, file, strings.TrimSpace(found))
}

// family is a magic without its version.
func family(magic string) string { return strings.TrimRight(magic, "0123456789\n") }
