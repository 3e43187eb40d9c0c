package extsort

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// texts returns the items of a sorter.
func texts(t testing.TB, s *Sorter) (list []string) {
	t.Helper()
	for item, err := range s.Items() {
		require.NoError(t, err)
		list = append(list, string(item))
	}
	return list
}

func TestOrders(t *testing.T) {
	for _, tt := range []struct {
		name     string
		in, want []string
	}{
		{"nothing", nil, nil},
		{"one", []string{"a"}, []string{"a"}},
		{"out of order", []string{"b", "c", "a"}, []string{"a", "b", "c"}},
		{"duplicates are kept", []string{"a", "b", "a"}, []string{"a", "a", "b"}},
		{"a prefix comes before the whole", []string{"ab", "a", ""}, []string{"", "a", "ab"}},
		{"sorted by bytes", []string{"é", "z", "\x00", "\xff"}, []string{"\x00", "z", "é", "\xff"}},
	} {
		for _, memory := range []int{1, 1 << 20} {
			t.Run(fmt.Sprintf("%s/memory=%d", tt.name, memory), func(t *testing.T) {
				s := New(memory)
				for _, item := range tt.in {
					require.NoError(t, s.Add([]byte(item)))
				}
				require.Equal(t, len(tt.in), s.Len())
				require.NoError(t, s.Sort())
				require.Equal(t, tt.want, texts(t, s))
				require.NoError(t, s.Close())
			})
		}
	}
}

// Strings larger than the memory are also sorted, with one at a time in memory.
func TestStringsLargerThanTheMemory(t *testing.T) {
	s := New(1000)
	var want []string
	for i := range 20 {
		item := make([]byte, 100+i*997%30_000)
		item[0] = byte(20 - i)
		want = append(want, string(item))
		require.NoError(t, s.Add(item))
		require.LessOrEqual(t, len(s.buf), max(1000, len(item)), "more than one string in memory")
	}
	require.NoError(t, s.Sort())
	slices.Sort(want)
	require.Equal(t, want, texts(t, s))
	require.NoError(t, s.Close())
}

// Add copies the string. An iteration may stop early, and start again.
func TestItemsMayStopAndStartAgain(t *testing.T) {
	for _, memory := range []int{1, 1 << 20} {
		s := New(memory)
		item := []byte("0000")
		for i := range 50 {
			copy(item, fmt.Sprintf("%04d", 49-i))
			require.NoError(t, s.Add(item))
		}
		require.NoError(t, s.Sort())
		for stop := range 50 {
			n := 0
			for got, err := range s.Items() {
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("%04d", n), string(got))
				if n == stop {
					break
				}
				n++
			}
			require.Equal(t, stop, n)
		}
		require.NoError(t, s.Close())
	}
}

// Close leaves no file behind.
func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := New(100)
	for i := range 1000 {
		require.NoError(t, s.Add(fmt.Append(nil, i)))
	}
	require.NoError(t, s.Sort())
	require.Greater(t, len(s.runs), 10)
	require.NoError(t, s.Close())
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// For any strings and any memory, the order is that of slices.Sort.
func FuzzSorter(f *testing.F) {
	f.Add(uint64(1), 50, 100)
	f.Add(uint64(2), 0, 1)
	f.Add(uint64(3), 300, 5000)
	f.Fuzz(func(t *testing.T, seed uint64, n, memory int) {
		if n < 0 || n > 500 {
			t.Skip()
		}
		r := rand.New(rand.NewPCG(seed, 0))
		s := New(memory)
		var want []string
		for range n {
			item := make([]byte, r.IntN(1+r.IntN(200)))
			for i := range item {
				item[i] = byte(r.Uint32())
			}
			want = append(want, string(item))
			require.NoError(t, s.Add(item))
		}
		require.NoError(t, s.Sort())
		slices.Sort(want)
		require.Equal(t, want, texts(t, s))
		require.NoError(t, s.Close())
	})
}
