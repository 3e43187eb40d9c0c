package satstore

import "encoding/binary"

// A decoder takes values from the front of foreign bytes. It remembers that something was wrong.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// length takes a number of at most limit.
func (d *decoder) length(limit int) int { return int(d.number(uint64(limit))) }

// number returns a number up to the limit, which need not fit into an int.
func (d *decoder) number(limit uint64) uint64 {
	v := d.uvarint()
	if v > limit {
		d.bad, d.b = true, nil
		return 0
	}
	return v
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.bytes(8); len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}
