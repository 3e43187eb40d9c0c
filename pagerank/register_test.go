package pagerank

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTidyWorkedByHand(t *testing.T) {
	for _, tt := range []struct {
		name  string
		links []uint32
		want  []uint32
	}{
		{"none", nil, nil},
		{"sorted", []uint32{1, 2, 7}, []uint32{1, 2, 7}},
		{"not sorted", []uint32{7, 1, 2}, []uint32{7, 1, 2}},
		{"twice in a row", []uint32{1, 1, 2}, []uint32{1, 2}},
		{"twice, apart", []uint32{2, 1, 2}, []uint32{2, 1}},
		{"to itself, first", []uint32{5, 6}, []uint32{6}},
		{"to itself, in between", []uint32{4, 5, 6}, []uint32{4, 6}},
		{"only to itself", []uint32{5}, nil},
		{"the last one within the limit", []uint32{1, 99}, []uint32{1, 99}},
		{"one beyond the limit", []uint32{1, 100}, []uint32{1}},
		{"beyond it and not sorted", []uint32{4_294_967_295, 3, 1}, []uint32{3, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := register{limit: 100}
			given := slices.Clone(tt.links)
			r.tidy(5, tt.links)
			require.Equal(t, tt.want, append([]uint32(nil), r.clean...))
			require.Equal(t, given, tt.links, "the caller's slice is not changed")
			require.LessOrEqual(t, len(r.nodes), 100)
			for id, n := range r.nodes {
				require.Zero(t, n.state, "id %d is left marked", id)
			}
			for _, to := range r.clean {
				require.Less(t, int(to), len(r.nodes), "there is room for all")
			}
		})
	}
}

func TestTheCallersSliceIsNeverChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 18))
	host := func(id uint32) uint32 { return id % 3 }
	for _, s := range []Strategy{
		New(Options{}), New(Options{Host: host}), New(Options{Cutoff: PL, Host: host}), New(Options{Cutoff: VR}),
		&BreadthFirst{Host: host}, &BackLinks{}, &Batch{Every: 3}, &OPIC{Host: host},
	} {
		for range 200 {
			links := randomLinks(r, 7, 50)
			if r.IntN(2) == 0 {
				slices.Sort(links)
			}
			before := slices.Clone(links)
			s.Fetched(r.Uint32N(50), links)
			require.Equal(t, before, links, "%T", s)
		}
	}
}

func TestSortedLinksScoreAsOthersDo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 19))
	for _, opts := range []Options{{Cutoff: DL1}, {Cutoff: DL1, KeepLinks: true}} {
		sorted, shuffled := New(opts), New(opts)
		for id := range uint32(60) {
			links := randomLinks(r, 61, 60)
			slices.Sort(links)
			links = slices.Compact(links)
			sorted.Fetched(id, links)
			r.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
			shuffled.Fetched(id, links)
		}
		for id := range uint32(62) {
			require.InDelta(t, sorted.Score(id), shuffled.Score(id), 1e-9)
		}
		requireLaw(t, sorted)
		requireLaw(t, shuffled)
	}
}

func TestHostNumbersBeyondTheLimitCountAsNone(t *testing.T) {
	f := New(Options{Limit: 50, Host: func(id uint32) uint32 { return id * 1_000_000 }})
	f.Fetched(0, []uint32{1, 2})
	require.LessOrEqual(t, len(f.hosts.weights), 50)
	id, ok := f.NextReady(func(host uint32) bool { return host == 0 })
	require.True(t, ok)
	require.Equal(t, uint32(1), id)
}

func TestTheHighestIdIsIgnored(t *testing.T) {
	const stray = math.MaxUint32 // an int of 32 bits takes it for -1
	for name, s := range map[string]Strategy{
		"Frontier": New(Options{}), "BreadthFirst": &BreadthFirst{}, "BackLinks": &BackLinks{},
		"Batch": &Batch{Every: 1}, "OPIC": &OPIC{},
	} {
		s.Discover(stray)
		s.Fetched(stray, []uint32{1})
		_, ok := s.Next()
		require.False(t, ok, name)
		s.Fetched(0, []uint32{stray, 2})
		s.Discover(stray)
		id, ok := s.Next()
		require.True(t, ok, name)
		require.Equal(t, uint32(2), id, name)
		_, ok = s.Next()
		require.False(t, ok, name)
	}
	f := New(Options{Host: func(uint32) uint32 { return stray }})
	f.Trust(stray, 1)
	f.Discover(0)
	require.Equal(t, 1, f.Stats().Known)
	require.Zero(t, f.Score(stray))
	id, ok := f.NextReady(func(host uint32) bool { return host == 0 })
	require.True(t, ok)
	require.Zero(t, id)
	require.Zero(t, graphOf([]uint32{stray}).Size())
}
