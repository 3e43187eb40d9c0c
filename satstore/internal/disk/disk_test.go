package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
)

func TestDecoder(t *testing.T) {
	b := binary.AppendUvarint(nil, 300)
	b = binary.AppendVarint(b, -7)
	b = AppendBytes(b, "id")
	b = append(b, 9)
	b = binary.LittleEndian.AppendUint64(b, 1<<40)
	d := Decoder{B: b}
	require.EqualValues(t, 300, d.Uvarint())
	require.EqualValues(t, -7, d.Varint())
	require.Equal(t, "id", string(d.Bytes(2)))
	require.EqualValues(t, 9, d.Byte())
	require.Equal(t, uint64(1<<40), d.Uint64())
	require.False(t, d.Bad)
	require.Empty(t, d.B)

	for name, take := range map[string]func(*Decoder){
		"a number above its limit":  func(d *Decoder) { d.Number(299) },
		"a length above its limit":  func(d *Decoder) { d.Length(299) },
		"more bytes than there are": func(d *Decoder) { d.Take(len(b) + 1) },
		"a byte after the end":      func(d *Decoder) { d.Take(len(b)); d.Byte() },
		"a word after the end":      func(d *Decoder) { d.Take(len(b) - 7); d.Uint64() },
		"a number after the end":    func(d *Decoder) { d.Take(len(b)); d.Varint() },
	} {
		d := Decoder{B: b}
		take(&d)
		require.True(t, d.Bad, name)
		require.Zero(t, d.Uvarint(), name)
	}
}

// FuzzDecoder: decoded values survive encoding and decoding.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, in []byte) {
		d := Decoder{B: in}
		n, v, b := d.Uvarint(), d.Varint(), d.Bytes(100)
		if d.Bad {
			return
		}
		again := Decoder{B: AppendBytes(binary.AppendVarint(binary.AppendUvarint(nil, n), v), b)}
		require.Equal(t, n, again.Uvarint())
		require.Equal(t, v, again.Varint())
		require.Equal(t, b, again.Bytes(100))
		require.False(t, again.Bad)
	})
}

func TestUvarintSize(t *testing.T) {
	for _, n := range []uint64{0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1<<63 - 1, 1<<64 - 1} {
		require.Equal(t, len(binary.AppendUvarint(nil, n)), UvarintSize(n), n)
	}
}

func TestReadFull(t *testing.T) {
	b := []byte("hello")
	err := ReadFull(bytes.NewReader(b), "a", make([]byte, 3), 4)
	require.ErrorIs(t, err, durable.ErrCorrupt)

	f, err := os.Create(filepath.Join(t.TempDir(), "a"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.ErrorIs(t, ReadFull(f, "a", b, 0), ErrClosed)
	require.ErrorIs(t, ReadFull(broken{}, "a", b, 0), errBroken)
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errBroken }
