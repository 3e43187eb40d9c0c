package pagerank

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStretchIsAboutAPercent(t *testing.T) {
	for _, tt := range []struct{ fetched, want int }{
		{0, 1}, {1, 1}, {127, 1}, {128, 2}, {255, 2}, {256, 4}, {1000, 8}, {1 << 20, 1 << 14},
	} {
		require.Equal(t, tt.want, stretch(tt.fetched), "%d pages", tt.fetched)
	}
	for fetched := 128; fetched < 1<<30; fetched += fetched/2 + 1 {
		part := float64(stretch(fetched)) / float64(fetched)
		require.GreaterOrEqual(t, part, 1.0/128)
		require.LessOrEqual(t, part, 1.0/64)
	}
}

// crawled returns a Push frontier and the graph that it has fetched some pages of.
func crawled(seed uint64, pages int) (*Frontier, webGraph) {
	f, g := New(Options{Host: func(id uint32) uint32 { return id % 31 }}), testWeb(6000, seed)
	f.Discover(0)
	for range pages {
		id, _ := f.Next()
		f.Fetched(id, g.Links(id))
	}
	return f, g
}

func TestNewcomersWaitAndAreThenLetIn(t *testing.T) {
	f, g := crawled(1, 1024) // just let in: the stretch is 8 pages from 512 on, 16 from 1024 on
	met := map[uint32]bool{}
	for id := range f.All() {
		met[id] = true
	}
	f.admit()
	for range 16 - 1 {
		id, ok := f.Next()
		require.True(t, ok)
		require.True(t, met[id], "an id found since then waits")
		f.Fetched(id, g.Links(id))
	}
	require.NotEmpty(t, inWait(f))
	requireLaw(t, f)
	id, _ := f.Next()
	f.Fetched(id, nil)
	require.Equal(t, 1040, f.fetched)
	require.Empty(t, inWait(f), "the 16th lets them in")
	requireLaw(t, f)
}

// inWait lists the newcomers that wait.
func inWait(f *Frontier) []uint32 {
	return slices.DeleteFunc(slices.Clone(f.newcomers), func(id uint32) bool { return !f.nodes[id].isNew() })
}

func TestNewcomersComeAtOnceIfNothingElseIsLeft(t *testing.T) {
	f := New(Options{})
	for id := range uint32(200) {
		f.Fetched(id, nil)
	}
	f.Fetched(200, []uint32{300, 301})
	require.Len(t, inWait(f), 2)
	require.Equal(t, 2, pending(f))
	require.Equal(t, []uint32{300, 301}, upcoming(f, 5))
	for _, want := range []uint32{300, 301} {
		id, ok := f.Next()
		require.True(t, ok)
		require.Equal(t, want, id)
	}
	_, ok := f.Next()
	require.False(t, ok)
	require.Zero(t, pending(f))
}

func TestNewcomersThatAreFetchedWhileTheyWait(t *testing.T) {
	f := New(Options{})
	for id := range uint32(200) {
		f.Fetched(id, nil)
	}
	f.Fetched(200, []uint32{300, 301, 302})
	f.Fetched(301, []uint32{300})
	f.Discover(302) // known, and queued in its way
	require.Equal(t, 2, pending(f))
	requireLaw(t, f)
	require.Equal(t, []uint32{300, 302}, upcoming(f, 3))
	var got []uint32
	for id, ok := f.Next(); ok; id, ok = f.Next() {
		got = append(got, id)
	}
	require.Equal(t, []uint32{300, 302}, got)
}

// TestSavingChangesNothing compares a crawl that was loaded, the one that was saved, and one that
// never was.
func TestSavingChangesNothing(t *testing.T) {
	for seed := range uint64(6) {
		f, g := crawled(seed, 603+int(seed)*5)
		require.NotEmpty(t, inWait(f))
		never, _ := crawled(seed, 603+int(seed)*5)
		got, err := Read(bytes.NewReader(saved(t, f)), f.opts)
		require.NoError(t, err)
		requireLaw(t, got)
		want := crawl(never, g)
		require.Equal(t, want, crawl(f, g), "seed %d: saved", seed)
		require.Equal(t, want, crawl(got, g), "seed %d: loaded", seed)
	}
}

// AR has no newcomers, but reads files that have.
func TestNewcomersOfAFileDoNotWaitWithAR(t *testing.T) {
	f, _ := crawled(1, 603)
	f.opts.Host, f.hosts = nil, hosts{}
	newcomer := inWait(f)[0]
	got, err := Read(bytes.NewReader(saved(t, f)), Options{Cutoff: AR, Damping: DefaultDamping})
	require.NoError(t, err)
	got.Fetched(5999, []uint32{newcomer})
	got.Fetched(5998, []uint32{newcomer})
	require.Empty(t, inWait(got))
	id, _ := got.Next()
	require.Equal(t, newcomer, id, "the best id")
	requireLaw(t, got)
}

func TestLosingScoreLetsANewcomerIn(t *testing.T) {
	f := New(Options{})
	for id := range uint32(200) {
		f.Fetched(id, nil)
	}
	f.Fetched(200, []uint32{300, 301})
	f.Fetched(200, []uint32{301}) // 300 gives back all that it had
	require.Zero(t, f.Score(300))
	requireLaw(t, f)
	require.Equal(t, []uint32{301, 300}, upcoming(f, 2)[:2])
}

// TestNewcomersSurviveRandomEdits is the law after edits of a crawl large enough to let ids wait.
func TestNewcomersSurviveRandomEdits(t *testing.T) {
	for seed := range uint64(3) {
		f, g := crawled(seed, 300)
		r := rand.New(rand.NewPCG(seed, 24))
		for range 60 {
			switch id := r.Uint32N(6000); r.IntN(4) {
			case 0:
				f.Fetched(id, randomLinks(r, id, 6000))
			case 1:
				f.Discover(id)
			case 2:
				f.Drop(id)
			default:
				if id, ok := f.NextReady(func(uint32) bool { return r.IntN(3) > 0 }); ok {
					f.Fetched(id, g.Links(id))
				}
				f.Release(r.Uint32N(31))
			}
		}
		requireLaw(t, f)
		seen := map[uint32]bool{}
		for host := range uint32(31) {
			for f.lots[host] != nil {
				f.Release(host)
			}
		}
		for id, ok := f.Next(); ok; id, ok = f.Next() {
			require.False(t, seen[id], "id %d comes twice", id)
			seen[id] = true
		}
		require.Zero(t, pending(f))
	}
}
