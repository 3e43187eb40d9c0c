package pagerank

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomList makes a sorted list without repetitions; now and then a very long one.
func randomList(r *rand.Rand) []uint32 {
	n := 1 + r.IntN(30)
	if r.IntN(40) == 0 {
		n = 20_000
	}
	list := make([]uint32, n)
	for i := range list {
		list[i] = r.Uint32() >> r.IntN(28)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func TestLinksAreReadAsTheyWereKept(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "links"))
	require.NoError(t, err)
	defer file.Close()
	for name, spill := range map[string]spill{"memory": nil, "file": file} {
		r := rand.New(rand.NewPCG(1, 15))
		s := linkStore{spill: spill}
		var places []place
		var pages []uint32
		var lists [][]uint32
		size := 0
		for range 200 {
			list := randomList(r)
			page := r.Uint32()
			pages = append(pages, page)
			places, lists = append(places, s.put(page, list)), append(lists, list)
			size += len(list)
		}
		require.Greater(t, len(s.slabs), 1, "some lists lie in two slabs")
		for i, list := range lists {
			require.Equal(t, list, s.read(places[i], pages[i], nil), name)
		}
		require.Equal(t, size, s.size)
		require.NoError(t, s.err)
		if spill != nil {
			require.Less(t, s.bytes(), 3*slabBytes, "one slab is in memory, whatever was kept")
		}
	}
	require.Empty(t, new(linkStore).read(0, 7, nil))
}

func TestNeighboursTakeAByte(t *testing.T) {
	var s linkStore
	list := make([]uint32, 1000)
	for i := range list {
		list[i] = 1_000_000 + uint32(i)*100
	}
	s.put(1_000_050, list)
	require.Equal(t, uint64(2+1+999+0), s.end&^1, "the length, the first one, and a byte for each other")
}

func TestReplacedLinksAreFreed(t *testing.T) {
	f := New(Options{Cutoff: DL1, KeepLinks: true})
	r := rand.New(rand.NewPCG(1, 16))
	for range 600 {
		f.Fetched(r.Uint32N(20), rising(r, 200))
	}
	require.LessOrEqual(t, f.links.bytes(), 4*slabBytes, "200 links each, 20 pages")
	for id := range uint32(20) {
		require.NotZero(t, f.places[id])
		require.True(t, slices.IsSorted(f.links.read(f.places[id], id, nil)))
	}
	requireLaw(t, f)
}

// A brokenSpill fails after some writes or reads.
type brokenSpill struct{ writes, reads int }

var errBroken = errors.New("broken")

func (b *brokenSpill) WriteAt(p []byte, _ int64) (int, error) {
	if b.writes--; b.writes < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func (b *brokenSpill) ReadAt(p []byte, _ int64) (int, error) {
	if b.reads--; b.reads < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestABrokenSpillIsToldAndTheCrawlGoesOn(t *testing.T) {
	for _, spill := range []*brokenSpill{{0, 0}, {1, 0}, {100, 0}} {
		f := New(Options{Cutoff: DL1, KeepLinks: true, Spill: spill})
		r := rand.New(rand.NewPCG(1, 17))
		for range 1200 {
			f.Fetched(r.Uint32N(1000), rising(r, 150))
		}
		require.ErrorIs(t, f.Stats().Err, errBroken)
		require.Positive(t, pending(f))
		require.False(t, math.IsNaN(f.Stats().Total))
		if spill.writes > 0 {
			_, err := f.WriteTo(io.Discard)
			require.ErrorIs(t, err, errBroken, "links that were kept cannot be read")
		}
	}
}

// rising makes n links that are sorted already.
func rising(r *rand.Rand, n int) []uint32 {
	links := make([]uint32, n)
	for i := range links {
		links[i] = uint32(i*33 + r.IntN(33))
	}
	return links
}

func TestScoresDoNotDependOnTheSpill(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "links"))
	require.NoError(t, err)
	defer file.Close()
	g := testWeb(15_000, 7)
	inMemory, onDisk := New(Options{}), New(Options{Spill: file})
	require.Equal(t, crawl(inMemory, g, 0), crawl(onDisk, g, 0))
	require.NoError(t, onDisk.Stats().Err)
}

// A shortSpill says io.EOF with the last bytes that it has, as an io.ReaderAt may.
type shortSpill struct{ blocks []byte }

func (s *shortSpill) WriteAt(p []byte, off int64) (int, error) {
	s.blocks = append(s.blocks[:off], p...)
	return len(p), nil
}

func (s *shortSpill) ReadAt(p []byte, off int64) (n int, err error) {
	if n = copy(p, s.blocks[off:]); int(off)+n == len(s.blocks) {
		err = io.EOF
	}
	return n, err
}

func TestASpillMayTellItsEndWithTheLastBytes(t *testing.T) {
	s := linkStore{spill: &shortSpill{}}
	var places []place
	for page := range uint32(20_000) {
		places = append(places, s.put(page, []uint32{page + 1, page + 300, page + 70_000}))
	}
	require.Greater(t, len(s.slabs), 1)
	for page, at := range places {
		p := uint32(page)
		require.Equal(t, []uint32{p + 1, p + 300, p + 70_000}, s.read(at, p, nil), "page %d", page)
	}
	require.NoError(t, s.err)
	s.spill.(*shortSpill).blocks = s.spill.(*shortSpill).blocks[:20]
	require.Empty(t, s.read(places[2], 2, nil))
	require.ErrorIs(t, s.err, errSpill, "it has lost the rest")
}
