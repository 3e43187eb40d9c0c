package pagerank

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
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
	r := rand.New(rand.NewPCG(1, 15))
	var s linkStore
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
		require.Equal(t, list, s.read(places[i], pages[i], nil))
	}
	require.Equal(t, size, s.size)
	require.NoError(t, s.err)
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
	f := New(Options{Cutoff: AR, Threshold: 1})
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

// rising makes n links that are sorted already.
func rising(r *rand.Rand, n int) []uint32 {
	links := make([]uint32, n)
	for i := range links {
		links[i] = uint32(i*33 + r.IntN(33))
	}
	return links
}

// TestAFileWithoutRoomForItsLinks has an arena that is full but for the first of three lists.
func TestAFileWithoutRoomForItsLinks(t *testing.T) {
	f := New(Options{})
	for id := range uint32(3) {
		f.Fetched(id, []uint32{10 + id, 20})
	}
	got := New(Options{})
	got.links.slabs = make([][]byte, (1<<32-1)*align/slabBytes)
	got.links.slabs[len(got.links.slabs)-1] = make([]byte, slabBytes)
	got.links.end = uint64(len(got.links.slabs))*slabBytes - 4
	d := &decoder{durable.NewStreamReader(bytes.NewReader(saved(t, f)), magic)}
	got.read(d)
	require.NoError(t, d.end())
	require.Equal(t, ErrFull, got.Stats().Err)
	require.Equal(t, 2, got.Stats().Links)
	for _, f := range []*Frontier{f, got} {
		f.Fetched(30, []uint32{0, 1, 2})
		requireLaw(t, f)
	}
	require.InDelta(t, f.Score(0), got.Score(0), 1e-9)
	require.InDelta(t, f.Score(12), got.Score(12), 1e-9)
	require.Equal(t, f.Stats().Queued, got.Stats().Queued)
}
