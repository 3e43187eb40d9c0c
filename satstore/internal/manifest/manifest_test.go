package manifest

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/table"
	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/calendar"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// example returns a manifest with a value in every field.
func example() *Manifest {
	return &Manifest{
		Unit: time.Hour, Shape: calendar.Default, Generation: 7, Log: 3, Now: -5,
		NextBucket: 9, NextSeq: 1 << 18, Records: 1000, Ends: []int64{64, 1 << 14},
		IDs: idset.State{Last: 4, Runs: []table.RunState{{Files: []uint64{2}}, {Files: []uint64{4}}}},
		Pages: []extent.Extent{
			{}, {At: 90, Size: 1 << 17, Generation: 2}, {At: 200, Size: 1 << 17, Generation: 7},
		},
		Due: 1, Aside: 1, Split: &Split{Moved: 3, Forwarded: 0},
		Buckets: []Bucket{
			{
				ID: 1, Number: 4, Start: -6, Width: 1,
				Records: Part{70, []extent.Extent{{At: 1, Size: 99, First: 5, Count: 60, Generation: 1}}},
				Gone:    8, Done: []uint64{31, 32},
			},
			{
				ID: 2, Number: 1, Start: 64, Width: 64,
				Records: Part{9, []extent.Extent{
					{At: 2, Size: 9, Count: 4, Generation: 1},
					{At: 3, Size: 9, First: 4, Count: 5, Generation: 7},
				}},
				Messages: Part{1, []extent.Extent{{At: 4, Size: 9, Count: 1, Generation: 1}}},
			},
			{ID: 8, Number: 2, Start: 9, Width: 1},
			{
				ID: 3, Number: 7, Start: -128, Width: 64,
				Records: Part{9, []extent.Extent{{At: 5, Size: 9, First: 4, Count: 5, Generation: 1}}},
				Gone:    6, Done: []uint64{15},
			},
		},
	}
}

func TestSaveAndLoad(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, example().Save(fs))
	m, damage, err := Load(fs)
	require.NoError(t, err)
	require.NoError(t, damage)
	require.Equal(t, example(), m)
	used := []extent.Span{{At: 90, N: 32}, {At: 200, N: 32},
		{At: 1, N: 1}, {At: 2, N: 1}, {At: 3, N: 1}, {At: 4, N: 1}, {At: 5, N: 1}}
	require.Equal(t, used, m.Spans())
}

// TestEachFlippedBit: one flipped bit loses nothing, and is reported.
func TestEachFlippedBit(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, example().Save(fs))
	for at := range len(fs.Data(Name)) {
		damaged := fs.Clone()
		damaged.Flip(Name, int64(at), at%8)
		m, damage, err := Load(damaged)
		require.NoError(t, err, at)
		require.ErrorIs(t, damage, durable.ErrCorrupt, at)
		require.Equal(t, example(), m)
	}
}

func TestBothCopiesDamaged(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, example().Save(fs))
	fs.Flip(Name, 30, 1)
	fs.Flip(Name, int64(len(fs.Data(Name))/2+30), 1)
	m, _, err := Load(fs)
	require.ErrorIs(t, err, durable.ErrCorrupt)
	require.Nil(t, m)
	_, _, err = Load(vfs.NewMem())
	require.Error(t, err)
}

// TestSaveFailsAtEachStep: the old or the new manifest is there.
func TestSaveFailsAtEachStep(t *testing.T) {
	bad := errors.New("bad disk")
	for nth := 1; ; nth++ {
		fs := vfs.NewMem()
		old := example()
		old.Log = 1
		require.NoError(t, old.Save(fs))
		steps := fs.Steps()
		fs.FailAt(steps+nth, bad)
		err := example().Save(fs)
		found, damage, loaded := Load(fs)
		require.NoError(t, errors.Join(damage, loaded))
		if err == nil {
			require.Equal(t, example(), found)
			return
		}
		require.ErrorIs(t, err, bad)
		require.True(t, found.Log == 1 || reflect.DeepEqual(example(), found))
	}
}

// TestOneCopyIsEnough: whatever happens to the end of the file, the first copy is found, and the damage
// is reported. Whatever happens to the first copy, even all of its pages, the second one is found.
func TestOneCopyIsEnough(t *testing.T) {
	sealed := example().Seal()
	half := len(sealed) / 2
	size := int(durable.FrameSize(sealed))
	require.Zero(t, half%copySize)
	load := func(b []byte) (damage error) {
		fs := vfs.NewMem()
		require.NoError(t, durable.Replace(fs, Name, b))
		found, damage, err := Load(fs)
		require.NoError(t, err)
		require.Equal(t, example(), found)
		return damage
	}
	require.NoError(t, load(sealed))
	for n := size; n < half+size; n++ {
		require.ErrorIs(t, load(sealed[:n]), durable.ErrCorrupt)
	}
	require.ErrorIs(t, load(append(slices.Clip(sealed), 7, 7, 7)), durable.ErrCorrupt)
	for n := range size {
		b := slices.Clone(sealed)
		b[n] ^= 1
		require.ErrorContains(t, load(b), "byte 0")
	}
	b := slices.Clone(sealed)
	clear(b[:half])
	require.ErrorContains(t, load(b), "byte 0")
}

// TestUnsound: a valid checksum does not make a state possible. Reading by an impossible one might
// never end, or go beyond the file.
func TestUnsound(t *testing.T) {
	due := func(m *Manifest) *Bucket { return &m.Buckets[0] }
	split := func(m *Manifest) *Bucket { return &m.Buckets[1] }
	for name, spoil := range map[string]func(*Manifest){
		"no unit":                       func(m *Manifest) { m.Unit = 0 },
		"no shape":                      func(m *Manifest) { m.Shape.More = 0 },
		"a huge shape":                  func(m *Manifest) { m.Shape.First = 40 },
		"a slot beyond the maximum":     func(m *Manifest) { m.Now = calendar.MaxSlot + 1 },
		"no log":                        func(m *Manifest) { m.Log = 0 },
		"too many sequence numbers":     func(m *Manifest) { m.NextSeq = MaxSeq + 1 },
		"more records than numbers":     func(m *Manifest) { m.Records = -1 },
		"more pages than numbers":       func(m *Manifest) { m.NextSeq = 7 },
		"a page of a later time":        func(m *Manifest) { m.Pages[1].Generation = 8 },
		"no generation left":            func(m *Manifest) { m.Generation = 1<<32 - 1 },
		"a file of ids twice":           func(m *Manifest) { m.IDs.Runs[1].Files[0] = 2 },
		"more due buckets than buckets": func(m *Manifest) { m.Due = 5 },
		"a bucket without a time":       func(m *Manifest) { m.Due = 2 },
		"no bucket to be split":         func(m *Manifest) { m.Buckets, m.Aside = m.Buckets[:1], 0 },
		"more moved than there was":     func(m *Manifest) { m.Split.Moved = 10 },
		"more aside than buckets":       func(m *Manifest) { m.Aside = 3 },
		"less aside than that":          func(m *Manifest) { m.Aside = 0 },
		"more forwarded than there was": func(m *Manifest) { m.Split.Forwarded = 2 },
		"a number given twice":          func(m *Manifest) { split(m).Number = 4 },
		"more gone than there were":     func(m *Manifest) { split(m).Gone = 10 },
		"number 0":                      func(m *Manifest) { split(m).Number = 0 },
		"a bucket of a later time":      func(m *Manifest) { split(m).ID = 9 },
		"a bucket that was due":         func(m *Manifest) { m.Buckets[2].Start = -5 },
		"a split bucket that was due":   func(m *Manifest) { split(m).Start = -64 },
		"a split without targets":       func(m *Manifest) { split(m).Start, split(m).Width = -5, 1 },
		"a bucket that is not due":      func(m *Manifest) { due(m).Start = 1 },
		"entries without an extent":     func(m *Manifest) { split(m).Records.Count++ },
		"messages without any":          func(m *Manifest) { split(m).Messages.Extents = nil },
		"an extent of no bytes":         func(m *Manifest) { due(m).Records.Extents[0].Size = 0 },
		"an extent of no entries":       func(m *Manifest) { due(m).Records.Extents[0].Count = 0 },
		"an extent of gigabytes":        func(m *Manifest) { due(m).Records.Extents[0].Size = 1 << 30 },
		"an extent beyond the file":     func(m *Manifest) { due(m).Records.Extents[0].At = 1<<32 - 1 },
		"an extent in the header":       func(m *Manifest) { due(m).Records.Extents[0].At = 0 },
		"an extent of a later time":     func(m *Manifest) { due(m).Records.Extents[0].Generation = 8 },
		"an extent behind the end":      func(m *Manifest) { due(m).Records.Count = 64 },
		"a gap between extents":         func(m *Manifest) { split(m).Records.Extents[1].First = 5 },
		"bits without records":          func(m *Manifest) { due(m).Done[1] = 1 << 6 },
		"words without records":         func(m *Manifest) { due(m).Done = make([]uint64, 3) },
	} {
		m := example()
		spoil(m)
		sealed := m.Seal()
		_, err := unseal(sealed, 0)
		require.ErrorIs(t, err, durable.ErrCorrupt, name)
		fs := vfs.NewMem()
		require.NoError(t, example().Save(fs))
		require.ErrorIs(t, m.Save(fs), durable.ErrCorrupt, name)
		kept, damage, err := Load(fs)
		require.NoError(t, errors.Join(damage, err))
		require.Equal(t, example(), kept)
	}
}

// FuzzManifest: decoded manifests survive encoding and decoding.
func FuzzManifest(f *testing.F) {
	f.Add(example().append(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		m, _ := decode(in, 0)
		if m == nil {
			return
		}
		again, _ := decode(m.append(nil), 0)
		require.NotNil(t, again)
		require.Equal(t, m, again)
	})
}
