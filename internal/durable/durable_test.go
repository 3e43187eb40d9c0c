package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

const magic = "SPNTEST2"

func TestFramesTellDamageFromVersions(t *testing.T) {
	b := Seal(magic, []byte("body"))
	body, err := Unseal("f", 0, magic, b)
	require.NoError(t, err)
	require.Equal(t, "body", string(body))

	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		_, err := Unseal("f", 7, magic, b)
		require.ErrorIs(t, err, ErrCorrupt, "bit %d: a damaged version is damage", bit)
		require.NotErrorIs(t, err, ErrVersion)
		b[bit/8] ^= 1 << (bit % 8)
	}
	for n := range len(b) {
		_, err := Unseal("f", 0, magic, b[:n])
		require.ErrorIs(t, err, ErrCorrupt)
	}
	_, err = Unseal("f", 0, magic, append(b, 0))
	require.ErrorIs(t, err, ErrCorrupt)

	for _, other := range []string{"SPNTEST1", "SPNTEST3", "SPNTEST\n"} {
		_, err = Unseal("f", 0, magic, append(Seal(other, []byte("x")), "more"...))
		require.ErrorIs(t, err, ErrVersion)
		require.NotErrorIs(t, err, ErrCorrupt)
	}
	_, err = Unseal("f", 0, magic, Seal("SPNELSE2", nil))
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = Unseal("f", 0, magic, append([]byte("SPNTEST0"), Seal(magic, []byte("body"))[8:]...), "SPNTEST0")
	require.ErrorIs(t, err, ErrCorrupt, "a bit of the present magic")
	_, err = Unseal("f", 0, magic, []byte("OLDSTYLEbytes"), "OLDSTYLE")
	require.ErrorIs(t, err, ErrVersion)
}

// ownError is what a package that exports a CorruptError declares.
type ownError struct {
	File   string
	Offset int64
	Reason string
}

func (e *ownError) Error() string { return e.Reason }

func TestAs(t *testing.T) {
	err := fmt.Errorf("open: %w", Corrupt("a", 3, "torn"))
	var own *ownError
	require.True(t, errors.As(err, &own))
	require.Equal(t, &ownError{"a", 3, "torn"}, own)
	var path *vfs.Map
	require.False(t, (&CorruptError{}).As(&path))
	var any interface{ Timeout() bool }
	require.False(t, errors.As(err, &any))
	require.Equal(t, "open: a: byte 3: torn", err.Error())
}

func TestSumNumber(t *testing.T) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], 0x0123456789abcdef)
	require.Equal(t, SumOn(Sum([]byte("x")), b[:]), SumNumber(Sum([]byte("x")), 0x0123456789abcdef))
}

func TestReadFull(t *testing.T) {
	m := vfs.NewMem()
	m.Put("a", []byte("abc"))
	b, err := ReadFile(m, "a")
	require.NoError(t, err)
	require.Equal(t, "abc", string(b))
	f, err := m.Open("a")
	require.NoError(t, err)
	require.ErrorIs(t, ReadFull(f, "a", make([]byte, 4), 0), ErrCorrupt)
	err = ReadFull(broken{}, "a", make([]byte, 4), 0)
	require.ErrorIs(t, err, syscall.EIO)
	require.NotErrorIs(t, err, ErrCorrupt, "a disk that cannot be read is not damage")
}

type broken struct{ io.ReaderAt }

func (broken) ReadAt([]byte, int64) (int, error) { return 0, syscall.EIO }

// TestReplace fails each step of a replacement in each way, and then the power. The new content
// names another file, which must be there whenever that content is.
func TestReplace(t *testing.T) {
	for _, failure := range []error{vfs.ErrPower, syscall.EIO, syscall.EMFILE} {
		for step := 1; ; step++ {
			m := vfs.NewMem()
			m.Put("a", []byte("old"))
			named, err := m.Create("named")
			require.NoError(t, err)
			_, err = named.WriteAt([]byte("!"), 0)
			require.NoError(t, err)
			require.NoError(t, named.Sync())
			m.FailAt(m.Steps()+step, failure)
			err = Replace(m, "a", []byte("new"))
			seen := map[string]bool{}
			for seed := range uint64(200) {
				c := m.Crash(rand.New(rand.NewPCG(seed, uint64(step))))
				seen[string(c.Data("a"))] = true
				if string(c.Data("a")) == "new" {
					require.Equal(t, "!", string(c.Data("named")))
				}
			}
			if err == nil {
				require.Equal(t, map[string]bool{"new": true}, seen)
				break
			}
			require.ErrorIs(t, err, failure)
			delete(seen, "old")
			if !errors.Is(err, ErrUnknown) {
				require.Empty(t, seen)
			}
			delete(seen, "new")
			require.Empty(t, seen)
		}
	}
}

// TestReplaceWithoutDescriptors: before the rename nothing has happened, and the caller may try again.
func TestReplaceWithoutDescriptors(t *testing.T) {
	m := vfs.NewMem()
	m.FailAt(m.Steps()+4, syscall.EMFILE) // creates, writes and syncs the file before
	err := Replace(m, "a", []byte("new"))
	require.ErrorIs(t, err, syscall.EMFILE)
	require.ErrorContains(t, err, "sync the directory")
	require.NotErrorIs(t, err, ErrUnknown)
	require.NoError(t, Replace(m, "a", []byte("new")))
}

func TestWriter(t *testing.T) {
	m := vfs.NewMem()
	f, err := m.Create("a")
	require.NoError(t, err)
	w := &Writer{To: f}
	piece := make([]byte, 100_000)
	for range 5 {
		w.Write(piece)
	}
	require.EqualValues(t, 500_000, w.End())
	require.NoError(t, w.Flush())
	require.Len(t, m.Data("a"), 500_000)
	m.FailAt(m.Steps()+1, syscall.EIO)
	w.Write(piece)
	require.ErrorIs(t, w.Flush(), syscall.EIO)
	w.Write(piece)
	require.ErrorIs(t, w.Flush(), syscall.EIO, "the first error stays")
}
