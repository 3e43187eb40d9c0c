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
		length          int
		want64, want128 string
	}{
		{0, "310e0edd47db6f72", "a3817f04ba25a8e66df67214c7550293"},
		{1, "fd67dc93c539f874", "da87c1d86b99af44347659119b22fc45"},
		{7, "37d1018bf50002ab", "a1f1ebbed8dbc153c0b84aa61ff08239"},
		{8, "6224939a79f5f593", "3b62a9ba6258f5610f83e264f31497b4"},
		{9, "b0e4a90bdf82009e", "264499060ad9baabc47f8b02bb6d71ed"},
		{15, "e545be4961ca29a1", "5493e99933b0a8117e08ec0f97cfc3d9"},
		{16, "db9bc2577fcc2a3f", "6ee2a4ca67b054bbfd3315bf85230577"},
		{17, "9447be2cf5e99a69", "473d06e8738db89854c066c47ae47740"},
		{31, "42c341d8fa92d832", "2939b0183223fafc1723de4f52c43d35"},
		{63, "724506eb4c328a95", "5150d1772f50834a503e069a973fbd7c"},
	} {
		message := reference(tt.length)
		var got [16]byte
		binary.LittleEndian.PutUint64(got[:], referenceKey.Sum64(message))
		require.Equal(t, tt.want64, hex.EncodeToString(got[:8]), "%d bytes", tt.length)

		first, second := referenceKey.Sum128(message)
		binary.LittleEndian.PutUint64(got[:8], first)
		binary.LittleEndian.PutUint64(got[8:], second)
		require.Equal(t, tt.want128, hex.EncodeToString(got[:]), "%d bytes", tt.length)
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
	require.Zero(t, testing.AllocsPerRun(10, func() {
		referenceKey.Sum64(message)
		referenceKey.Sum128(message)
	}))
}

func BenchmarkSum(b *testing.B) {
	message := strings.Repeat("x", 86) // the mean length of a URL in crawls
	b.Run("bits=64", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(message)))
		for b.Loop() {
			referenceKey.Sum64(message)
		}
	})
	b.Run("bits=128", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(message)))
		for b.Loop() {
			referenceKey.Sum128(message)
		}
	})
}
