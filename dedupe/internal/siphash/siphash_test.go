package siphash

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// referenceKey and reference are from the authors' test vectors: the key is 00 01 … 0f.
var referenceKey = Key{0x0706050403020100, 0x0f0e0d0c0b0a0908}

func reference(length int) string {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// TestVectors has values from the authors' vectors.h, for messages 00 01 02 … of some lengths.
func TestVectors(t *testing.T) {
	for _, tt := range []struct {
		length int
		want   string
	}{
		{0, "310e0edd47db6f72"},
		{1, "fd67dc93c539f874"},
		{7, "37d1018bf50002ab"},
		{8, "6224939a79f5f593"},
		{9, "b0e4a90bdf82009e"},
		{15, "e545be4961ca29a1"},
		{16, "db9bc2577fcc2a3f"},
		{17, "9447be2cf5e99a69"},
		{31, "42c341d8fa92d832"},
		{63, "724506eb4c328a95"},
	} {
		message := reference(tt.length)
		var got [8]byte
		binary.LittleEndian.PutUint64(got[:], referenceKey.Sum64(message))
		require.Equal(t, tt.want, hex.EncodeToString(got[:]), "%d bytes", tt.length)
	}
}

func TestKeysAreStoredAndDiffer(t *testing.T) {
	b := referenceKey.Bytes()
	require.Equal(t, "000102030405060708090a0b0c0d0e0f", hex.EncodeToString(b[:]))
	require.Equal(t, referenceKey, KeyOf(b))
	require.NotEqual(t, NewKey(), NewKey())
	require.NotEqual(t, NewKey().Sum64("a"), NewKey().Sum64("a"))
}

func TestSumsAllocateNothing(t *testing.T) {
	message := strings.Repeat("x", 99)
	require.Zero(t, testing.AllocsPerRun(10, func() { referenceKey.Sum64(message) }))
}

func BenchmarkSum(b *testing.B) {
	message := strings.Repeat("x", 86) // the mean length of a URL in crawls
	b.ReportAllocs()
	b.SetBytes(int64(len(message)))
	for b.Loop() {
		referenceKey.Sum64(message)
	}
}
