package exact

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWriterWritesAll writes pieces of all sizes behind something that is there already, and counts
// the writes that it takes.
func TestWriterWritesAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	d := newMemDisk()
	f, err := d.create("x")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("before"), 0)
	require.NoError(t, err)
	w := newWriter(f, 6)
	want := []byte("before")
	steps := d.steps
	for range 3000 {
		piece := bytes.Repeat([]byte{byte(random.IntN(256))}, random.IntN(600))
		w.write(piece)
		want = append(want, piece...)
	}
	require.NoError(t, w.finish())
	require.True(t, bytes.Equal(want, d.names["x"].data))
	require.EqualValues(t, len(want), w.at)
	require.EqualValues(t, len(want)-6, w.n)
	require.LessOrEqual(t, d.steps-steps, len(want)/(writeSize-600)+2)
}

// TestWriterRemembersTheFirstError goes on writing after it. Nothing must look written.
func TestWriterRemembersTheFirstError(t *testing.T) {
	d := newMemDisk()
	f, err := d.create("x")
	require.NoError(t, err)
	w := newWriter(f, 0)
	d.failAt, d.failure = d.steps+1, errFull
	w.write(make([]byte, writeSize))
	w.write([]byte("this fails")) // as it makes room first
	w.write(make([]byte, writeSize))
	require.ErrorIs(t, w.finish(), errFull)
	require.Zero(t, w.n)
	require.Empty(t, d.names["x"].data)
}

// TestDirectory does to a directory of the system all that a Set does, and sees it fail where the
// system fails.
func TestDirectory(t *testing.T) {
	d := directory(t.TempDir())
	f, err := d.create("a")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("text"), 2)
	require.NoError(t, err)
	size, err := f.size()
	require.NoError(t, err)
	require.EqualValues(t, 6, size)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	_, err = f.size()
	require.ErrorIs(t, err, os.ErrClosed)

	require.NoError(t, d.rename("a", "b"))
	require.NoError(t, d.sync())
	names, err := d.list()
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, names)
	_, err = d.open("a")
	require.ErrorIs(t, err, os.ErrNotExist)
	f, err = d.open("b")
	require.NoError(t, err)
	text := make([]byte, 4)
	require.NoError(t, readFull(f, "b", text, 2))
	require.Equal(t, "text", string(text))
	require.ErrorIs(t, readFull(f, "b", text, 3), ErrCorrupt)
	require.NoError(t, f.Close())
	require.ErrorIs(t, readFull(f, "b", text, 0), os.ErrClosed)
	require.NoError(t, d.remove("b"))
	require.ErrorIs(t, d.remove("b"), os.ErrNotExist)

	gone := directory(d.path("gone"))
	_, err = gone.list()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, gone.sync(), os.ErrNotExist)
}

// TestMemDiskLosesWhatItMay takes the power away from the disk that the other tests trust.
func TestMemDiskLosesWhatItMay(t *testing.T) {
	found := map[string]int{}
	for seed := range uint64(200) {
		d := newMemDisk()
		for _, name := range []string{"synced", "not synced"} {
			f, err := d.create(name)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("old"), 0)
			require.NoError(t, err)
			require.NoError(t, f.Sync())
			if name == "synced" {
				require.NoError(t, d.sync())
			}
			_, err = f.WriteAt([]byte("new"), 0)
			require.NoError(t, err)
		}
		crashed := d.crash(rand.New(rand.NewPCG(seed, 0)))
		for name, f := range crashed.names {
			found[name+": "+string(f.data)]++
		}
		_, err := crashed.open("synced")
		require.NoError(t, err)
	}
	for _, name := range []string{"synced", "not synced"} {
		for _, data := range []string{"old", "new", "nld", "ned"} {
			require.Positive(t, found[name+": "+data], "%s: %s", name, data)
		}
	}
	require.Len(t, found, 8)
}

func TestErrorsSayWhere(t *testing.T) {
	err := error(&CorruptError{"run-00000001", 24, "wrong checksum"})
	require.EqualError(t, err, "exact: run-00000001: byte 24: wrong checksum")
	require.ErrorIs(t, err, ErrCorrupt)
	require.NotErrorIs(t, err, io.EOF)
	require.False(t, errors.Is(ErrTrimmed, ErrCorrupt))
}
