package archive

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive/warc"
)

// Pointers sort by the address of the content alone.
func TestPointersSortByAddress(t *testing.T) {
	var items []string
	for _, file := range []uint32{0, 1, 255, 256, 1 << 31} {
		for _, offset := range []int64{0, 1, 255, 256, 1 << 40, maxOffset} {
			e := someEntry()
			e.time, e.kind = rand.Int64(), Unchanged
			e.content = address{file, offset, 1 + rand.Int64N(1000), 200}
			items = append(items, string(packItem(nil, "url\x00http", &e, rand.Int64())))
		}
	}
	require.True(t, slices.IsSorted(items))
}

// unpack refuses an invalid pointer, and every prefix of a valid one that is too short.
func FuzzPointer(f *testing.F) {
	e := someEntry()
	f.Add(packItem(nil, "test,a)/\x00http", &e, never))
	e.kind, e.content, e.url = Unchanged, address{7, 8, 9, 200}, "http://a.test/"
	e.prior, e.hasPrior = e.time-1, true
	f.Add(packItem(nil, "x", &e, 5))
	f.Fuzz(func(t *testing.T, item []byte) {
		a := &Archive{index: &index{names: []string{"f"}}}
		v, err := a.unpack(item)
		if err != nil {
			require.ErrorIs(t, err, errEntry)
			return
		}
		require.False(t, v.Time.IsZero() && v.Until.IsZero() && v.URL == "")
		require.GreaterOrEqual(t, v.Content.Length, int64(0))
		for cut := range len(item) { // no short prefix is a pointer
			if _, err := a.unpack(item[:cut]); err == nil {
				require.Greater(t, cut, addressSize+timeSize+tailSize)
			}
		}
	})
}

// Reads are short in a file with documents far apart, and long where they are close together.
func TestAdaptiveReadAhead(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	const size, part = 60 << 20, 5000
	f, err := os.Create(filepath.Join(a.dir, "a.warc"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size)) // sparse
	require.NoError(t, f.Close())
	for _, tt := range []struct {
		name string
		gap  int64
		want int // size of the last read
	}{
		{"adjacent", 0, readAhead}, {"every second one", part, readAhead},
		{"far apart", 200 << 10, leastRead},
	} {
		s := &sequential{archive: a}
		for at := int64(0); at+part < size; at += part + tt.gap {
			_, _, err := s.read(Location{"a.warc", at, part})
			require.NoError(t, err)
		}
		require.Equal(t, tt.want, s.ahead, tt.name)
		s.close()
	}
	require.NoError(t, a.Close())
}

// Parts of files are read in order, with any sizes and gaps.
func TestSequentialReading(t *testing.T) {
	a := openDir(t, t.TempDir(), Options{})
	r := rand.New(rand.NewPCG(1, 1))
	contents := map[string][]byte{}
	for _, name := range []string{"a.warc", "b.warc"} {
		data := make([]byte, 3*readAhead+r.IntN(1000))
		for i := 0; i < len(data); i += 1 + i%251 { // distinct and fast to make
			data[i] = byte(r.Uint32())
		}
		contents[name] = data
		require.NoError(t, os.WriteFile(filepath.Join(a.dir, name), data, 0o644))
	}
	s := &sequential{archive: a}
	for _, name := range []string{"a.warc", "b.warc"} {
		data := contents[name]
		for at := 0; at < len(data); {
			size := 1 + r.IntN([]int{10, 5000, readAhead / 2, readAhead * 2}[r.IntN(4)])
			size = min(size, len(data)-at)
			raw, _, err := s.read(Location{name, int64(at), int64(size)})
			require.NoError(t, err)
			require.True(t, bytes.Equal(data[at:at+size], raw), "%s %d %d", name, at, size)
			again, _, err := s.read(Location{name, int64(at), int64(size)})
			require.NoError(t, err)
			require.True(t, bytes.Equal(raw, again), "the same part again")
			at += size
			if r.IntN(3) == 0 {
				at += r.IntN(readAhead) // a gap
			}
		}
	}
	end := int64(len(contents["b.warc"]))
	_, _, err := s.read(Location{"b.warc", end - 5, 10})
	require.ErrorIs(t, err, warc.ErrDamaged)
	require.ErrorContains(t, err, "too short")
	_, _, err = s.read(Location{"c.warc", 0, 10})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, _, err = s.read(Location{"c.warc", 10, 10})
	require.ErrorIs(t, err, os.ErrNotExist, "still missing")
	raw, _, err := s.read(Location{"a.warc", 0, MaxRaw + 1})
	require.NoError(t, err)
	require.Nil(t, raw, "too large for memory")
	s.close()
	require.NoError(t, a.Close())
}
