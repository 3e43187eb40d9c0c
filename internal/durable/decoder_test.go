package durable_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
)

func TestDecoder(t *testing.T) {
	b := binary.AppendUvarint(nil, 300)
	b = binary.AppendVarint(b, -7)
	b = durable.AppendBytes(b, "id")
	b = append(b, 9)
	b = binary.LittleEndian.AppendUint64(b, 1<<40)
	d := durable.Decoder{B: b}
	require.EqualValues(t, 300, d.Uvarint())
	require.EqualValues(t, -7, d.Varint())
	require.Equal(t, "id", string(d.Bytes(2)))
	require.EqualValues(t, 9, d.Byte())
	require.Equal(t, uint64(1<<40), d.Uint64())
	require.False(t, d.Bad)
	require.Empty(t, d.B)

	for name, take := range map[string]func(*durable.Decoder){
		"a number above its limit":  func(d *durable.Decoder) { d.Number(299) },
		"a length above its limit":  func(d *durable.Decoder) { d.Length(299) },
		"more bytes than there are": func(d *durable.Decoder) { d.Take(len(b) + 1) },
		"a byte after the end":      func(d *durable.Decoder) { d.Take(len(b)); d.Byte() },
		"a word after the end":      func(d *durable.Decoder) { d.Take(len(b) - 7); d.Uint64() },
		"a number after the end":    func(d *durable.Decoder) { d.Take(len(b)); d.Varint() },
	} {
		d := durable.Decoder{B: b}
		take(&d)
		require.True(t, d.Bad, name)
		require.Zero(t, d.Uvarint(), name)
	}
}

// FuzzDecoder: decoded values survive encoding and decoding.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, in []byte) {
		d := durable.Decoder{B: in}
		n, v, b := d.Uvarint(), d.Varint(), d.Bytes(100)
		if d.Bad {
			return
		}
		again := durable.Decoder{B: durable.AppendBytes(binary.AppendVarint(binary.AppendUvarint(nil, n), v), b)}
		require.Equal(t, n, again.Uvarint())
		require.Equal(t, v, again.Varint())
		require.Equal(t, b, again.Bytes(100))
		require.False(t, again.Bad)
	})
}

func TestUvarintSize(t *testing.T) {
	for _, n := range []uint64{0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1<<63 - 1, 1<<64 - 1} {
		require.Equal(t, len(binary.AppendUvarint(nil, n)), durable.UvarintSize(n), n)
	}
}
