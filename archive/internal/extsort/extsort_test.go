package extsort

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSorter(t *testing.T) {
	for _, memory := range []int{1, 100, 5000, 1 << 20} {
		r := rand.New(rand.NewPCG(uint64(memory), 0))
		s := New(memory)
		var want []string
		for range 2000 {
			item := make([]byte, r.IntN(12))
			for i := range item {
				item[i] = byte(r.IntN(3))
			}
			require.NoError(t, s.Add(item))
			want = append(want, string(item))
		}
		require.NoError(t, s.Sort())
		slices.Sort(want)
		for range 2 {
			var got []string
			for item, err := range s.Items() {
				require.NoError(t, err)
				got = append(got, string(item))
			}
			require.Equal(t, want, got)
		}
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
	}
}

// A disk error is returned, and not mistaken for the end.
func TestTruncatedTemporaryFile(t *testing.T) {
	s := New(1)
	for range 100 {
		require.NoError(t, s.Add([]byte("item")))
	}
	require.NoError(t, s.Sort())
	require.NoError(t, s.spill.Truncate(30))
	var failure error
	for _, err := range s.Items() {
		failure = errors.Join(failure, err)
	}
	require.ErrorContains(t, failure, "extsort: ")
	require.NoError(t, s.spill.Close())
	require.ErrorIs(t, s.Close(), os.ErrClosed)
}

// A damaged length does not make the sorter allocate what the length asks for.
func TestDamagedTemporaryFile(t *testing.T) {
	s := New(1000)
	for range 100 {
		require.NoError(t, s.Add([]byte("item")))
	}
	require.NoError(t, s.Sort())
	_, err := s.spill.WriteAt([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), 0)
	require.NoError(t, err)
	var failure error
	for _, err := range s.Items() {
		failure = errors.Join(failure, err)
	}
	require.ErrorContains(t, failure, "extsort: the temporary file is damaged")
	require.NoError(t, s.Close())
}

func TestTemporaryFileCannotBeCreated(t *testing.T) {
	t.Setenv("TMPDIR", "/no/such/directory")
	s := New(1)
	require.NoError(t, s.Add([]byte("fits")))
	require.ErrorIs(t, s.Add([]byte("does not")), os.ErrNotExist)
	require.NoError(t, s.Close())
}
