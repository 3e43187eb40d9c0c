package pagerank

import (
	"math/rand/v2"
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

// rising makes n links that are sorted already.
func rising(r *rand.Rand, n int) []uint32 {
	links := make([]uint32, n)
	for i := range links {
		links[i] = uint32(i*33 + r.IntN(33))
	}
	return links
}
