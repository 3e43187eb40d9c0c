package durable_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
)

const streamMagic = "TESTING3"

// stream returns a stream of these pieces.
func stream(t *testing.T, pieces ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := durable.NewStreamWriter(&out, streamMagic)
	for _, p := range pieces {
		_, err := w.Write(p)
		require.NoError(t, err)
	}
	n, err := w.Close()
	require.NoError(t, err)
	require.EqualValues(t, out.Len(), n)
	return out.Bytes()
}

// readAll reads n bytes, and the end.
func readAll(r io.Reader, n int, before ...string) ([]byte, error) {
	s := durable.NewStreamReader(r, streamMagic, before...)
	b := make([]byte, n)
	s.Fill(b)
	return b, s.End()
}

func TestStreamsHaveWhatWasWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 100, 32 << 10, 32<<10 + 1, 100_000, 3 << 20} {
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(random.Uint32())
		}
		file := append(stream(t, want[:n/3], nil, want[n/3:]), "more"...)
		in := bytes.NewReader(file)
		got, err := readAll(iotest.HalfReader(in), n)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), n)
		require.Equal(t, len("more"), in.Len(), "not a byte more")
		_, err = readAll(bytes.NewReader(file), n+1)
		require.ErrorIs(t, err, durable.ErrCorrupt)
		if n > 0 {
			_, err = readAll(bytes.NewReader(file), n-1)
			require.ErrorIs(t, err, durable.ErrCorrupt)
		}

		var long bytes.Buffer // the same in one piece
		w := durable.NewStreamWriter(&long, streamMagic)
		w.Buf = append(w.Buf, want...)
		_, err = w.Close()
		require.NoError(t, err)
		got, err = readAll(&long, n)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), n)
	}
}

func TestNumbersOfStreams(t *testing.T) {
	var out bytes.Buffer
	w := durable.NewStreamWriter(&out, streamMagic)
	numbers := []uint64{0, 1, 127, 128, 1 << 32, math.MaxInt64, math.MaxUint64}
	for _, n := range numbers {
		w.Uvarint(n)
	}
	w.Words(numbers...)
	w.Buf = append(w.Buf, 7, 1, 2)
	w.Buf = binary.LittleEndian.AppendUint32(w.Buf, math.Float32bits(1.5))
	w.Words(math.Float64bits(-2.5), math.Float64bits(math.NaN()))
	_, err := w.Close()
	require.NoError(t, err)

	r := durable.NewStreamReader(&out, streamMagic)
	for _, n := range numbers {
		require.Equal(t, n, r.Uvarint(math.MaxUint64, "a number"))
	}
	for _, n := range numbers {
		require.Equal(t, n, r.Word())
	}
	require.EqualValues(t, 7, r.Byte())
	require.EqualValues(t, 0x201, r.Uint16())
	require.Equal(t, float32(1.5), r.Float32())
	require.Equal(t, -2.5, r.Float())
	require.NoError(t, r.Err)
	require.Zero(t, r.Float())
	require.ErrorIs(t, r.Err, durable.ErrCorrupt)
	require.Zero(t, r.Word(), "after an error")

	for _, b := range [][]byte{{5}, {0x80}, bytes.Repeat([]byte{0x80}, 20), append(bytes.Repeat([]byte{0xff}, 9), 2)} {
		r := durable.NewStreamReader(bytes.NewReader(stream(t, b)), streamMagic)
		require.Zero(t, r.Uvarint(4, "a number"))
		require.ErrorIs(t, r.Err, durable.ErrCorrupt)
	}
}

// TestDamageOfStreamsIsFound flips each bit, cuts the stream at each byte, loses each frame, and
// changes their order.
func TestDamageOfStreamsIsFound(t *testing.T) {
	const n = 100
	whole := stream(t, make([]byte, n))
	check := func(b []byte, most int64) {
		t.Helper()
		_, err := readAll(bytes.NewReader(b), n)
		var where *durable.CorruptError
		require.ErrorAs(t, err, &where)
		require.LessOrEqual(t, where.Offset, most)
	}
	for bit := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		check(b, max(int64(bit/8), 8)) // another version is told by its first frame
	}
	for cut := range whole {
		check(whole[:cut], int64(cut))
	}
	b := append(bytes.Clone(whole[:8]), 0xff, 0xff, 0xff, 0xff) // a length beyond all memory
	check(append(b, whole[12:]...), 8)

	// Two streams whose frames differ only in their place.
	var frames bytes.Buffer
	w := durable.NewStreamWriter(&frames, streamMagic)
	for _, fill := range []byte{1, 2, 3} {
		w.Buf = append(w.Buf, bytes.Repeat([]byte{fill}, 32<<10)...)
		w.Flush()
	}
	_, err := w.Close()
	require.NoError(t, err)
	const frame = 4 + 32<<10 + 4
	b = frames.Bytes()
	at := func(i int) []byte { return b[8+i*frame : 8+(i+1)*frame] }
	end := b[8+3*frame:]
	for _, order := range [][]int{{1, 0, 2}, {0, 2}, {0, 0, 1, 2}, {0, 1}} {
		moved := bytes.Clone(b[:8])
		for _, i := range order {
			moved = append(moved, at(i)...)
		}
		_, err := readAll(bytes.NewReader(append(moved, end...)), 3*32<<10)
		require.ErrorIs(t, err, durable.ErrCorrupt, order)
	}
}

func TestStreamsOfOtherVersions(t *testing.T) {
	file := stream(t, []byte("what a later version has"))
	other := bytes.Clone(file)
	other[7] = '4'
	_, err := readAll(bytes.NewReader(other), 3)
	require.ErrorIs(t, err, durable.ErrCorrupt, "its checksum is not that of version 4")
	sum := durable.SumOn(durable.Sum(other[:8]), other[8:len(other)-12])
	binary.LittleEndian.PutUint32(other[len(other)-12:], sum)
	_, err = readAll(bytes.NewReader(other), 3)
	require.ErrorIs(t, err, durable.ErrVersion)
	require.ErrorContains(t, err, "TESTING4")
	require.NotErrorIs(t, err, durable.ErrCorrupt)

	old := []byte("OLD and without frames")
	_, err = readAll(bytes.NewReader(old), 3)
	require.ErrorIs(t, err, durable.ErrCorrupt)
	_, err = readAll(bytes.NewReader(old), 3, "OLD ")
	require.ErrorIs(t, err, durable.ErrVersion)
	_, err = readAll(bytes.NewReader(old[:9]), 3, "OLD ")
	require.ErrorIs(t, err, durable.ErrVersion, "shorter than a frame")
	cut := []byte("OLD and \x10\x00\x00\x00")
	_, err = readAll(io.MultiReader(bytes.NewReader(cut), iotest.ErrReader(io.ErrNoProgress)), 3, "OLD ")
	require.ErrorIs(t, err, io.ErrNoProgress)

	flipped := bytes.Clone(file)
	flipped[7] ^= '3' ^ '1'
	_, err = readAll(bytes.NewReader(flipped), 3, "TESTING1")
	require.ErrorIs(t, err, durable.ErrCorrupt, "one bit of the present magic")
	require.NotErrorIs(t, err, durable.ErrVersion)
}

func TestErrorsOfStreams(t *testing.T) {
	disk := errors.New("disk")
	file := stream(t, make([]byte, 100))
	for n := range file {
		_, err := readAll(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(disk)), 100)
		require.ErrorIs(t, err, disk)
		require.NotErrorIs(t, err, durable.ErrCorrupt)
	}

	name := filepath.Join(t.TempDir(), "stream")
	require.NoError(t, os.WriteFile(name, file[:50], 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	_, err = readAll(f, 100)
	require.ErrorContains(t, err, name+": byte 8: ")
}
