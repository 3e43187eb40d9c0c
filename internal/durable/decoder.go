package durable

import (
	"encoding/binary"
	"math/bits"
)

// A Decoder takes values from the front of untrusted bytes. After the first invalid value it is
// bad, and all further values are zero. The zero Decoder has no bytes left. A Decoder is for use by
// one goroutine at a time.
type Decoder struct {
	B   []byte // what is left
	Bad bool
}

func (d *Decoder) fail() {
	d.Bad, d.B = true, nil
}

// Uvarint takes a number as encoding/binary writes it.
func (d *Decoder) Uvarint() uint64 {
	if len(d.B) > 0 && d.B[0] < 0x80 { // nearly always
		v := d.B[0]
		d.B = d.B[1:]
		return uint64(v)
	}
	return d.long()
}

func (d *Decoder) long() uint64 {
	v, n := binary.Uvarint(d.B)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.B = d.B[n:]
	return v
}

// Varint takes a signed number as encoding/binary writes it.
func (d *Decoder) Varint() int64 {
	v := d.Uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// Number takes a Uvarint of at most limit.
func (d *Decoder) Number(limit uint64) uint64 {
	v := d.Uvarint()
	if v > limit {
		d.fail()
		return 0
	}
	return v
}

// Length takes a Uvarint of at most limit.
func (d *Decoder) Length(limit int) int { return int(d.Number(uint64(limit))) }

// Take takes n bytes. They share the memory of B.
func (d *Decoder) Take(n int) []byte {
	if n > len(d.B) {
		d.fail()
		return nil
	}
	b := d.B[:n:n]
	d.B = d.B[n:]
	return b
}

// Bytes takes what AppendBytes appended, at most limit bytes.
func (d *Decoder) Bytes(limit int) []byte { return d.Take(d.Length(limit)) }

// Byte takes one byte.
func (d *Decoder) Byte() byte {
	if b := d.Take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// Uint64 takes 8 bytes, little endian.
func (d *Decoder) Uint64() uint64 {
	if b := d.Take(8); len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// AppendBytes appends the length of b, and b.
func AppendBytes[B string | []byte](dst []byte, b B) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// UvarintSize returns how many bytes a number takes.
func UvarintSize(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }
