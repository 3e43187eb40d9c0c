package warc

import (
	"errors"
	"io"
)

// frame reads exactly one zstd frame (RFC 8878, section 3.1.1). The decompressor alone would read
// further. Walking the blocks shows where a frame ends, and so where the next record begins.
type frame struct {
	src  *source
	left int64 // bytes to return before the header of the next block
	sum  int64 // the size of the checksum after the last block
	last bool  // there is no further block
}

var errFrame = errors.New("broken zstd frame")

// begin peeks at the header.
func (f *frame) begin(src *source) error {
	*f = frame{src: src}
	buf, err := src.Peek(5)
	if err != nil {
		return errors.Join(errFrame, io.ErrUnexpectedEOF)
	}
	// The descriptor gives the sizes of the rest of the header: the dictionary's ID, the content
	// size, and the window.
	descriptor := buf[4]
	n := 5 + [4]int{0, 1, 2, 4}[descriptor&3] + [4]int{0, 2, 4, 8}[descriptor>>6]
	if descriptor&0x20 == 0 {
		n++ // window descriptor
	} else if descriptor>>6 == 0 {
		n++ // a single segment has at least one byte of content size
	}
	if descriptor&4 != 0 {
		f.sum = 4
	}
	f.left = int64(n)
	return nil
}

// Read returns the bytes of the frame, then io.EOF.
func (f *frame) Read(p []byte) (int, error) {
	for f.left == 0 {
		if err := f.block(); err != nil {
			return 0, err
		}
	}
	n, err := f.src.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// block peeks at the header of a block, RFC 8878 section 3.1.1.2: a bit for the last one, two for
// the kind, and 21 for the size. A block of one repeated byte has its decompressed size there, and
// takes only that byte in the file. After the last block there is a checksum, or nothing.
func (f *frame) block() error {
	if f.last {
		return io.EOF
	}
	buf, err := f.src.Peek(3)
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	header := uint32(buf[0]) | uint32(buf[1])<<8 | uint32(buf[2])<<16
	size := int64(header >> 3)
	switch header >> 1 & 3 {
	case 1: // one byte, repeated
		size = 1
	case 3:
		return errFrame
	}
	if f.last = header&1 != 0; f.last {
		size += f.sum
	}
	f.left = 3 + size
	return nil
}
