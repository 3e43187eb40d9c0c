package satstore

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// These constants are on disk. Do not change them; add a version.
const (
	blockHeader  = 40
	recordsMagic = 0x52544153 // "SATR", little endian
	messageMagic = 0x4d544153 // "SATM"
)

// A block is a checksummed piece of a bucket that can be read on its own. It knows its place, so
// that it cannot be taken for another.
type block struct {
	magic  uint32
	bucket uint64
	first  uint64 // entries of the bucket before this block
	count  uint32
	raw    []byte // the entries
}

// A codec compresses blocks. It is not safe for concurrent use.
type codec struct {
	kind    Compression
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	small   []byte // for entries that are compressed
}

// seal makes a block of the entries that dst has behind room for a header, from start on. What does
// not get smaller is stored as it is.
func (c *codec) seal(dst []byte, start int, b block) []byte {
	raw, kind := dst[start+blockHeader:], c.kind
	switch kind {
	case S2:
		c.small = slices.Grow(c.small[:0], s2.MaxEncodedLen(len(raw)))
		c.small = s2.Encode(c.small[:cap(c.small)], raw)
	case Zstd:
		c.small = c.zstdEncoder().EncodeAll(raw, c.small[:0])
	}
	size := len(raw)
	if kind != None && len(c.small) < size {
		dst = append(dst[:start+blockHeader], c.small...)
	} else {
		kind = None
	}
	h := dst[start:]
	binary.LittleEndian.PutUint32(h[4:], b.magic)
	binary.LittleEndian.PutUint32(h[8:], uint32(len(h)-blockHeader))
	binary.LittleEndian.PutUint32(h[12:], uint32(size))
	binary.LittleEndian.PutUint32(h[16:], b.count)
	binary.LittleEndian.PutUint32(h[20:], uint32(kind))
	binary.LittleEndian.PutUint64(h[24:], b.bucket)
	binary.LittleEndian.PutUint64(h[32:], b.first)
	binary.LittleEndian.PutUint32(h, disk.Sum(h[4:]))
	return dst
}

// maxRaw bounds what a damaged header can make decode allocate.
const maxRaw = blockSize + MaxID + MaxData + 64

// decode reads the block at the beginning of b, with its entries in dst, and returns how many bytes
// of b it has. The reason is "" if all is well.
func (c *codec) decode(dst, b []byte) (found block, size int, reason string) {
	if len(b) < blockHeader {
		return block{}, 0, "a block's header is cut off"
	}
	stored := binary.LittleEndian.Uint32(b[8:])
	raw := binary.LittleEndian.Uint32(b[12:])
	if uint64(stored) > uint64(len(b)-blockHeader) || raw > maxRaw || stored > raw {
		return block{}, 0, "impossible length of a block"
	}
	size = blockHeader + int(stored)
	if disk.Sum(b[4:size]) != binary.LittleEndian.Uint32(b) {
		return block{}, 0, "wrong checksum"
	}
	found = block{
		magic:  binary.LittleEndian.Uint32(b[4:]),
		count:  binary.LittleEndian.Uint32(b[16:]),
		bucket: binary.LittleEndian.Uint64(b[24:]),
		first:  binary.LittleEndian.Uint64(b[32:]),
	}
	kind := Compression(binary.LittleEndian.Uint32(b[20:]))
	var err error
	if found.raw, err = c.expand(dst, b[blockHeader:size], kind, int(raw)); err != nil {
		return block{}, 0, "entries cannot be decompressed"
	}
	if len(found.raw) != int(raw) || kind < None || kind > Zstd {
		return block{}, 0, "another length than in the block's header"
	}
	return found, size, ""
}

func (c *codec) expand(dst, b []byte, kind Compression, raw int) ([]byte, error) {
	switch kind {
	case S2:
		if n, err := s2.DecodedLen(b); err != nil || n != raw {
			return nil, s2.ErrCorrupt
		}
		if cap(dst) < raw {
			dst = make([]byte, raw)
		}
		return s2.Decode(dst[:raw], b)
	case Zstd:
		decoder, err := c.zstdDecoder()
		if err != nil {
			return nil, err
		}
		return decoder.DecodeAll(b, dst[:0])
	}
	return append(dst[:0], b...), nil
}

func (c *codec) zstdEncoder() *zstd.Encoder {
	if c.encoder == nil {
		// No option is wrong, so there is no error.
		c.encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	}
	return c.encoder
}

func (c *codec) zstdDecoder() (*zstd.Decoder, error) {
	if c.decoder == nil {
		var err error
		c.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(maxRaw))
		if err != nil {
			return nil, err
		}
	}
	return c.decoder, nil
}
