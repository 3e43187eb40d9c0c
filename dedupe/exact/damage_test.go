package exact

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// damageable returns the files of a Set with an index and two segments. The last segment is not
// indexed.
func damageable(t testing.TB) *vfs.Mem {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, Options{Memory: tiny})
	s.segmentSize = 1000
	for i := 0; len(s.older) < 1 || s.log.end < 300; i++ {
		add(t, s, page(i))
	}
	require.NoError(t, s.Close())
	return fs
}

// openAndRead opens a Set, reads all entries, and returns the first error.
func openAndRead(fs vfs.FS) error {
	s, err := open(fs, Options{Memory: tiny})
	if err != nil {
		return err
	}
	for _, err := range s.Entries(0) {
		if err != nil {
			return errors.Join(err, s.lock.Close())
		}
	}
	return s.Close()
}

// TestEveryDamageIsFound changes each byte of each file in turn, and truncates the file there.
func TestEveryDamageIsFound(t *testing.T) {
	whole := damageable(t)
	names, _ := whole.List()
	require.Len(t, names, 4)
	for _, name := range names {
		data := whole.Data(name)
		for i := range data {
			if name[0] == 'l' && syncMarks <= i && i < segmentHeader {
				continue // a lost sync mark is harmless
			}
			if name[0] == 'i' && i%64 > 3 && i > 64 {
				continue // a sample of the fingerprints is enough
			}
			damaged := slices.Clone(data)
			damaged[i] ^= 0x10
			for _, data := range [][]byte{damaged, data[:i]} {
				fs := whole.Clone()
				fs.Put(name, data)
				err := openAndRead(fs)
				require.ErrorIs(t, err, ErrCorrupt, "%s, byte %d", name, i)
				var corrupt *CorruptError
				require.ErrorAs(t, err, &corrupt)
				require.Contains(t, err.Error(), corrupt.File+": byte ")
			}
		}
		fs := whole.Clone()
		require.NoError(t, openAndRead(fs))
		require.NoError(t, fs.Remove(name))
		require.Error(t, openAndRead(fs), name)
	}
}

// TestAMissingFileIsDamage like any other for callers who branch on ErrCorrupt.
func TestAMissingFileIsDamage(t *testing.T) {
	whole := damageable(t)
	names, _ := whole.List()
	for _, name := range names {
		fs := whole.Clone()
		require.NoError(t, fs.Remove(name))
		var where *CorruptError
		require.ErrorAs(t, openAndRead(fs), &where, name)
		require.True(t, name == manifestName || name == where.File, name)
	}
}

// TestEntriesAfterATearAreDropped damages an entry that was not synced. It and all later entries
// are lost, and new entries must not bring any of them back.
func TestEntriesAfterATearAreDropped(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, Options{Memory: small})
	add(t, s, "a", "b")
	require.NoError(t, s.Sync())
	torn := s.log.end
	add(t, s, "c", "d", "e")
	kill(t, s)
	fs.Flip(s.log.name(), torn+5, 0)
	for range 2 {
		s = mustOpen(t, fs, Options{Memory: small})
		require.Equal(t, []string{"a", "b"}, entriesFrom(t, s, 0))
		kill(t, s)
	}
	s = mustOpen(t, fs, Options{Memory: small})
	add(t, s, "C") // an entry of the same size and number as the damaged one
	kill(t, s)
	s = mustOpen(t, fs, Options{Memory: small})
	require.Equal(t, []string{"a", "b", "C"}, entriesFrom(t, s, 0))
	add(t, s, "d")
	require.Equal(t, []string{"a", "b", "C", "d"}, entriesFrom(t, s, 0))
}

// TestDamageAfterOpen damages the index of an open Set. Each read must report it, and nothing may
// be lost.
func TestDamageAfterOpen(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, Options{Memory: tiny})
	added := 0
	for ; added < 60 || s.sweep != nil; added++ {
		add(t, s, page(added))
	}
	name := s.index.name()
	fs.Flip(name, pageSize+9, 0)
	var err error
	for i := 0; i < 60 && err == nil; i++ {
		_, err = s.Add(page(i))
	}
	require.ErrorIs(t, err, ErrCorrupt)
	require.NoError(t, s.Defer(page(0), nil)) // no longer in the list of the latest URLs
	require.ErrorIs(t, s.Merge(), ErrCorrupt)
	var sweeping error
	for i := added; i < 200; i++ {
		_, err = s.Add(page(i)) // some fail, since sweeps do
		sweeping = errors.Join(sweeping, err)
	}
	require.ErrorIs(t, sweeping, ErrCorrupt)
	fs.Flip(name, pageSize+9, 0)
	require.NoError(t, s.Merge())
	for i := range 200 {
		_, err := s.Add(page(i))
		require.NoError(t, err)
	}
	got := entriesFrom(t, s, 0)
	slices.Sort(got)
	require.Len(t, slices.Compact(got), 200)
}

// TestAStrayFileOfTheHighestNumber must not make the next file have number 0, which stands for none.
func TestAStrayFileOfTheHighestNumber(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs, Options{Memory: tiny})
	add(t, s, "first")
	require.NoError(t, s.Close())
	fs.Put(segmentName(math.MaxUint64), []byte("x"))
	s = mustOpen(t, fs, Options{Memory: tiny})
	n := 0
	for ; s.Stats().Sweeps == 0; n++ {
		add(t, s, page(n))
	}
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, Options{Memory: tiny})
	for i := range n {
		added, err := s.Add(page(i))
		require.NoError(t, err)
		require.False(t, added)
	}
	require.NoError(t, s.Close())
}

func TestNothingIsIndexedWithoutAnIndex(t *testing.T) {
	for _, m := range []manifest{{count: 1}, {indexed: 1}} {
		_, err := decodeManifest(m.encode())
		require.ErrorIs(t, err, ErrCorrupt)
	}
}

func FuzzManifest(f *testing.F) {
	m := &manifest{
		trimmed: 3, indexed: 9, index: 4, count: 9,
		segments: []segment{{2, 0, 100}, {3, 7, 0}},
	}
	f.Add(m.encode())
	f.Add([]byte("spinneret exact set 2\nkey\nkey \nindex\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeManifest(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(m.encode(), b) {
			t.Errorf("%q becomes %q", b, m.encode())
		}
	})
}

// FuzzFiles uses arbitrary bytes as index and segment. Open must report them as corrupt, or return
// a usable Set.
func FuzzFiles(f *testing.F) {
	whole := damageable(f)
	names, _ := whole.List()
	f.Add(whole.Data(names[1]), whole.Data(names[3]))
	f.Fuzz(func(t *testing.T, index, segment []byte) {
		fs := whole.Clone()
		fs.Put(names[1], index)
		fs.Put(names[3], segment)
		if err := openAndRead(fs); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Error(err)
			}
			return
		}
		s := mustOpen(t, fs, Options{Memory: tiny})
		for i := range 30 {
			if _, err := s.Add(page(i)); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestErrorsNameFileAndOffset(t *testing.T) {
	err := durable.Corrupt("index-00000001", 24, "wrong checksum")
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, "index-00000001", corrupt.File)
	require.EqualError(t, err, "index-00000001: byte 24: wrong checksum")
	require.ErrorIs(t, err, ErrCorrupt)
	require.NotErrorIs(t, ErrTrimmed, ErrCorrupt)
}

// TestAnotherVersion: a Set of another version is refused by name, and left as it is.
func TestAnotherVersion(t *testing.T) {
	for _, version := range []string{"1", "3", "12"} {
		fs := vfs.NewMem()
		text := []byte("spinneret exact set " + version + "\nwhatever it has\n")
		text = fmt.Appendf(text, "sum %08x\n", durable.Sum(text))
		fs.Put(manifestName, text)
		before := fs.Steps()
		_, err := open(fs, Options{})
		require.ErrorIs(t, err, ErrVersion)
		require.NotErrorIs(t, err, ErrCorrupt)
		require.Equal(t, before, fs.Steps())
		for bit := range 8 * len(text) { // a damaged version is damage
			text[bit/8] ^= 1 << (bit % 8)
			_, err := decodeManifest(text)
			require.ErrorIs(t, err, ErrCorrupt, bit)
			text[bit/8] ^= 1 << (bit % 8)
		}
	}
}
