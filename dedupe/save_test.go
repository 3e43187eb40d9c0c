package dedupe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/internal/layers"
	"github.com/spinneret-go/spinneret/dedupe/internal/siphash"
	"github.com/spinneret-go/spinneret/internal/durable"
)

// optionSets cover all kinds of filters: with and without a list, grown, rotated, saturated.
var optionSets = map[string]Options{
	"default":   {Capacity: 20_000},
	"no list":   {Capacity: 1000, Recent: -1},
	"grows":     {Capacity: 300, Rate: 0.01, Recent: 50},
	"shards":    {Capacity: 70_000, Rate: 0.05, Recent: 100},
	"rotates":   {Capacity: 400, Recent: 20, Generations: 4},
	"saturated": {Capacity: 500, Rate: 0.1, Recent: 10, MaxBytes: -1},
}

func filled(o Options, urls int) *Filter {
	f := New(o)
	for i := range urls {
		f.Add(fmt.Sprint("https://a.test/", i))
	}
	return f
}

func saved(t testing.TB, f *Filter) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := f.WriteTo(&out)
	require.NoError(t, err)
	require.EqualValues(t, out.Len(), n)
	return out.Bytes()
}

func TestReadFilterIsTheSame(t *testing.T) {
	for name, opts := range optionSets {
		t.Run(name, func(t *testing.T) {
			f := filled(opts, 2000)
			stored := saved(t, f)
			trailing := bytes.NewReader(append(bytes.Clone(stored), "more"...))
			g, err := Read(iotest.OneByteReader(trailing), opts)
			require.NoError(t, err)
			require.Equal(t, len("more"), trailing.Len())

			require.Equal(t, f.Stats(), g.Stats())
			require.Equal(t, f.Stats().URLs, g.Stats().URLs)
			require.True(t, bytes.Equal(stored, saved(t, g)))
			for i := range 5000 { // known URLs, then new ones
				url := fmt.Sprint("https://a.test/", i)
				require.Equal(t, f.Add(url), g.Add(url), url)
			}
			require.Equal(t, f.Stats(), g.Stats())
			require.True(t, bytes.Equal(saved(t, f), saved(t, g)))
		})
	}
}

// TestEveryDamageIsFound changes each byte of a stored filter in turn, and truncates it there.
func TestEveryDamageIsFound(t *testing.T) {
	o := Options{Capacity: 60, Rate: 0.1, Recent: 5}
	stored := saved(t, filled(o, 100))
	require.Less(t, len(stored), 1000)
	for i := range stored {
		damaged := bytes.Clone(stored)
		damaged[i] ^= 0x10
		requireCorrupt(t, damaged, o, i)
		requireCorrupt(t, stored[:i], o, i)
	}
}

func TestReadNamesWhatIsNotDamage(t *testing.T) {
	o := Options{Capacity: 60, Rate: 0.1, Recent: 5}
	stored := saved(t, filled(o, 100))
	for _, other := range []Options{
		{}, {Capacity: 61, Rate: 0.1, Recent: 5}, {Capacity: 60, Rate: 0.2, Recent: 5},
		{Capacity: 60, Rate: 0.1, Recent: -1}, {Capacity: 60, Rate: 0.1, Recent: 5, Generations: 1},
	} {
		_, err := Read(bytes.NewReader(stored), other)
		require.ErrorIs(t, err, ErrOptions, "%+v", other)
	}
	o.MaxBytes = 1 << 20
	_, err := Read(bytes.NewReader(stored), o)
	require.NoError(t, err, "the bound is not a property of what is stored")
	for _, old := range oldMagics {
		_, err = Read(strings.NewReader(old), o)
		require.ErrorIs(t, err, ErrVersion)
	}
	stored[len(magic)-1]++
	_, err = Read(bytes.NewReader(stored), o)
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = Read(bytes.NewReader(resum(stored)), o)
	require.ErrorIs(t, err, ErrVersion)
	require.NotErrorIs(t, err, ErrCorrupt)
}

func requireCorrupt(t *testing.T, stored []byte, o Options, at int) {
	t.Helper()
	f, err := Read(bytes.NewReader(stored), o)
	require.Nil(t, f)
	require.ErrorIs(t, err, ErrCorrupt)
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.LessOrEqual(t, corrupt.Offset, int64(at), err)
	require.Contains(t, err.Error(), fmt.Sprintf("byte %d: ", corrupt.Offset))
}

// TestFilesAreReplaced writes and reads a file, whose name is then in the error about its damage.
func TestFilesAreReplaced(t *testing.T) {
	o, name := Options{Capacity: 60, Rate: 0.1}, filepath.Join(t.TempDir(), "filter")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o600))
	require.NoError(t, filled(o, 10).WriteFile(name))
	read := func() error {
		file, err := os.Open(name)
		require.NoError(t, err)
		defer file.Close()
		_, err = Read(file, o)
		return err
	}
	require.NoError(t, read())
	require.NoError(t, os.Truncate(name, 20))
	var corrupt *CorruptError
	require.ErrorAs(t, read(), &corrupt)
	require.Equal(t, CorruptError{name, 8, "it ends too early"}, *corrupt)
	require.Error(t, filled(o, 10).WriteFile(filepath.Join(name, "x")))
	left, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestDiskErrorsAreNotCorruption(t *testing.T) {
	broken := errors.New("broken")
	_, err := Read(iotest.ErrReader(broken), Options{})
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, ErrCorrupt)

	n, err := filled(Options{}, 10).WriteTo(&fullDisk{space: 1000, err: broken})
	require.ErrorIs(t, err, broken)
	require.EqualValues(t, 1000, n)
}

// A fullDisk accepts space bytes and then fails.
type fullDisk struct {
	space int
	err   error
}

func (d *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), d.space)
	d.space -= n
	if n < len(b) {
		return n, d.err
	}
	return n, nil
}

// resum makes the checksums match the frames, so that their contents are checked.
func resum(stored []byte) []byte {
	stored = bytes.Clone(stored)
	if len(stored) < len(magic) {
		return stored
	}
	sum := durable.Sum(stored[:len(magic)])
	for at := len(magic); at+8 <= len(stored); {
		claimed := binary.LittleEndian.Uint32(stored[at:])
		if int64(claimed) > int64(len(stored)-at-8) {
			break
		}
		size := int(claimed)
		sum = durable.SumOn(sum, stored[at:at+4+size])
		binary.LittleEndian.PutUint32(stored[at+4+size:], sum)
		at += 4 + size + 4
	}
	return stored
}

// TestImpossibleContentsAreRefused changes each byte and fixes the checksums. Most results are
// valid, if different, filters; the others must do no harm.
func TestImpossibleContentsAreRefused(t *testing.T) {
	for _, generations := range []int{0, 3} {
		o := Options{Capacity: 60, Rate: 0.1, Recent: 4, Generations: generations}
		stored := saved(t, filled(o, 100))
		for i := range stored {
			for _, bit := range []byte{1, 0x80} {
				damaged := bytes.Clone(stored)
				damaged[i] ^= bit
				checkRead(t, resum(damaged), o)
			}
		}
	}
}

// TestForgedFiltersAreRefused has valid checksums for contents that no Filter writes. Each case
// modifies a filter of two shards before it is written.
func TestForgedFiltersAreRefused(t *testing.T) {
	const listed = 1<<63 - 1
	for _, tt := range []struct {
		name  string
		forge func(f *Filter)
		want  error
	}{
		{"other options", func(f *Filter) { f.plan.Recent = 6 }, ErrOptions},
		{"an entry of a future layer", func(f *Filter) {
			f.shards[0].recent.Add(listed, uint32(f.shards[0].latest+1))
		}, ErrCorrupt},
		{"counts whose sum overflows", func(f *Filter) {
			f.shards[0].added, f.shards[1].added = math.MaxInt, math.MaxInt
		}, ErrCorrupt},
		{"more new URLs than hashes", func(f *Filter) { f.shards[0].added += 100 }, ErrCorrupt},
		{"more hashes in layers than were added", func(f *Filter) { f.shards[0].settled = 0 }, ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, generations := range []int{0, 3} {
				o := Options{Capacity: 60, Rate: 0.1, Recent: 10, Generations: generations}
				f := newFilter(o.withDefaults(), siphash.Key{1, 2}, 2)
				for i := range f.shards {
					f.shards[i].catchUp()
				}
				for i := range 100 {
					f.Add(fmt.Sprint("https://a.test/", i))
				}
				checkRead(t, saved(t, f), o)
				tt.forge(f)
				_, err := Read(bytes.NewReader(saved(t, f)), o)
				require.ErrorIs(t, err, tt.want)
			}
		})
	}
}

// TestForgedSizesTakeNoMemory reads files that promise large layers and end early.
func TestForgedSizesTakeNoMemory(t *testing.T) {
	o := Options{Capacity: 1 << 26}
	for _, there := range []int{0, 1 << 10, 1 << 16} {
		var out bytes.Buffer
		w := durable.NewStreamWriter(&out, magic)
		p := o.withDefaults()
		w.Words(1, 2, uint64(p.Capacity), math.Float64bits(p.Rate), 0, 0, 1, 0, 0, 1, 1, 0)
		bits, functions := layers.Size(float64(p.Capacity), p.Rate*15/16)
		w.Words(bits, functions, 0)
		w.Words(make([]uint64, there)...)
		_, err := w.Close()
		require.NoError(t, err)
		stored := out.Bytes()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = Read(bytes.NewReader(stored), o)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, "missing")
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<18+6*len(stored)))
	}
}

// TestCountsBeyondAnInt reads counts that a machine with larger ints may have written.
func TestCountsBeyondAnInt(t *testing.T) {
	var out bytes.Buffer
	w := durable.NewStreamWriter(&out, magic)
	w.Words(math.MaxInt, math.MaxInt+1)
	_, err := w.Close()
	require.NoError(t, err)
	r := &reader{durable.NewStreamReader(&out, magic)}
	r.number(math.MaxUint64)
	require.NoError(t, r.Err)
	r.number(math.MaxUint64)
	require.ErrorIs(t, r.Err, ErrCorrupt)
}

// TestPlansOfAllSizesHaveLayers computes the keys of a layer where their sum would overflow.
func TestPlansOfAllSizesHaveLayers(t *testing.T) {
	for _, generations := range []int{0, 1, maxGenerations} {
		g := growth{plan: Options{Capacity: math.MaxInt, Generations: generations}}
		require.GreaterOrEqual(t, g.keysOf(1), int64(math.MaxInt/maxGenerations))
	}
}

// TestShardsFarBehindSkipLayers has one shard in the last of many layers and another in the first.
// When the second catches up, it must create only the layers that are still in use.
func TestShardsFarBehindSkipLayers(t *testing.T) {
	o := Options{Capacity: 60, Rate: 0.1, Recent: -1, Generations: 3}
	f := newFilter(o.withDefaults(), siphash.Key{1, 2}, 2)
	for i := range f.shards {
		f.shards[i].catchUp()
	}
	f.shards[1].latest = 100_000
	g, err := Read(bytes.NewReader(saved(t, f)), o)
	require.NoError(t, err)
	behind := &g.shards[0]
	require.EqualValues(t, 1, behind.latest)
	first := behind.layers
	require.Less(t, testing.AllocsPerRun(1, func() {
		behind.latest, behind.layers = 1, first
		behind.catchUp()
	}), 100.0)
	require.EqualValues(t, 100_000, behind.latest)
	require.Len(t, behind.layers, 4)
	checkRead(t, saved(t, g), o)
}

// checkRead asserts the law for any input: a filter that is read is usable, and writing and reading
// it again gives the same filter.
func checkRead(t *testing.T, stored []byte, o Options) {
	t.Helper()
	f, err := Read(bytes.NewReader(stored), o)
	if err != nil {
		require.True(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrOptions) || errors.Is(err, ErrVersion))
		return
	}
	f.Add("https://a.test/")
	require.False(t, f.Add("https://a.test/"))
	once := saved(t, f)
	g, err := Read(bytes.NewReader(once), o)
	require.NoError(t, err)
	require.True(t, bytes.Equal(once, saved(t, g)))
}

func FuzzRead(f *testing.F) {
	list := Options{Capacity: 60, Rate: 0.1, Recent: 4}
	rotating := Options{Capacity: 60, Rate: 0.1, Recent: -1, Generations: 2}
	f.Add(saved(f, filled(list, 100)))
	f.Add(saved(f, filled(rotating, 100)))
	f.Fuzz(func(t *testing.T, stored []byte) {
		for _, o := range []Options{list, rotating} {
			checkRead(t, stored, o)
			checkRead(t, resum(stored), o)
		}
	})
}

// BenchmarkSave stores and loads a filter of ten million URLs, in memory and through a file on
// disk.
func BenchmarkSave(b *testing.B) {
	f := fullFilter(1e7)
	var stored bytes.Buffer
	_, err := f.WriteTo(&stored)
	require.NoError(b, err)
	name := filepath.Join(b.TempDir(), "filter")
	for _, bb := range []struct {
		name string
		run  func() error
	}{
		{"WriteTo/memory", func() error { _, err := f.WriteTo(io.Discard); return err }},
		{"Read/memory", func() error { _, err := Read(bytes.NewReader(stored.Bytes()), f.plan); return err }},
		{"WriteTo/file", func() error { return writeFile(name, f) }},
		{"Read/file", func() error { return readFile(name, f.plan) }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(stored.Len()))
			for b.Loop() {
				require.NoError(b, bb.run())
			}
		})
	}
}

func writeFile(name string, f *Filter) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteTo(file)
	return errors.Join(err, file.Sync(), file.Close())
}

func readFile(name string, o Options) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	_, err = Read(file, o)
	return errors.Join(err, file.Close())
}
