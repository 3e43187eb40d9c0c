package pagerank

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func tenPerHost(id uint32) uint32 { return id / 10 }

func TestNextReadySetsBusyHostsAside(t *testing.T) {
	f := New(Options{Cutoff: DL1, Host: tenPerHost})
	f.Fetched(90, []uint32{11, 12, 13, 14, 21})
	f.Fetched(91, []uint32{11, 12, 13})
	f.Fetched(92, []uint32{11, 12})
	busy := map[uint32]bool{1: true}
	asked := map[uint32]int{}
	ready := func(host uint32) bool {
		asked[host]++
		return !busy[host]
	}
	id, ok := f.NextReady(ready)
	require.True(t, ok)
	require.Equal(t, uint32(21), id, "11 to 14 are worth more, or came first, but their host is busy")
	require.Equal(t, map[uint32]int{1: 1, 2: 1}, asked, "a busy host is asked once")
	require.Equal(t, 4, f.Stats().Aside)
	_, ok = f.NextReady(ready)
	require.False(t, ok)
	require.Equal(t, 4, pending(f))

	// Score rises while it waits: 14 comes to the top, and finds its host busy still.
	f.Fetched(93, []uint32{14})
	_, ok = f.NextReady(ready)
	require.False(t, ok)
	require.Equal(t, 1, asked[1])
	requireLaw(t, f)

	busy[1] = false
	for _, want := range []uint32{14, 11, 12, 13} {
		_, ok = f.NextReady(ready)
		require.False(t, ok, "one id for each Release")
		f.Release(1)
		id, ok = f.NextReady(ready)
		require.True(t, ok)
		require.Equal(t, want, id)
	}
	f.Release(1)
	f.Release(77)
	require.Zero(t, pending(f))
	require.Empty(t, f.lots)
}

func TestFetchingOrDiscoveringWhatIsSetAside(t *testing.T) {
	f := New(Options{Cutoff: DL1, Host: tenPerHost})
	for _, id := range []uint32{11, 12, 13} {
		f.Discover(id)
	}
	never := func(uint32) bool { return false }
	f.NextReady(never)
	f.Discover(12)
	require.Equal(t, 3, f.Stats().Aside, "it is waiting already")
	f.Fetched(12, nil)
	require.Equal(t, 2, f.Stats().Aside)
	requireLaw(t, f)
	f.Release(1)
	id, _ := f.Next()
	require.Equal(t, uint32(11), id)
	f.Release(1)
	id, _ = f.Next()
	require.Equal(t, uint32(13), id)
}

// TestBusyHostsCostNothing counts how often ids are looked at: once each, not once for each Next.
func TestBusyHostsCostNothing(t *testing.T) {
	const ids = 10_000
	f := New(Options{Cutoff: DL1, Host: func(id uint32) uint32 { return id & 1 }})
	links := make([]uint32, 0, ids)
	for id := range uint32(ids) {
		links = append(links, id)
	}
	f.Fetched(ids+1, links) // on host 1, so that the ids of host 0 come first
	asked := 0
	ready := func(host uint32) bool { asked++; return host == 1 }
	for range ids / 2 {
		_, ok := f.NextReady(ready)
		require.True(t, ok)
	}
	require.Equal(t, ids/2+1, asked)
	require.Equal(t, ids/2, f.Stats().Aside)
	for range ids / 2 {
		f.Release(0)
		_, ok := f.NextReady(func(uint32) bool { return true })
		require.True(t, ok)
	}
	require.Zero(t, pending(f))
}

// TestEveryIdIsHandedOutOnce crawls with hosts that are busy for a while after each fetch. Some pages redirect
// to one that waits, perhaps on another host.
func TestEveryIdIsHandedOutOnce(t *testing.T) {
	for seed := range uint64(10) {
		g := testWeb(500, seed)
		r := rand.New(rand.NewPCG(seed, 8))
		f := New(Options{Host: func(id uint32) uint32 { return id % 13 }})
		f.Discover(0)
		until := map[uint32]int{}
		seen := map[uint32]bool{}
		for now := 0; pending(f) > 0; now++ {
			require.Less(t, now, 100_000, "stuck")
			for host, end := range until {
				if end == now {
					delete(until, host)
					f.Release(host)
				}
			}
			id, ok := f.NextReady(func(host uint32) bool { return until[host] == 0 })
			if !ok {
				continue
			}
			require.False(t, seen[id])
			require.Zero(t, until[id%13], "its host is busy")
			seen[id] = true
			until[id%13] = now + 1 + r.IntN(20)
			f.Fetched(id, g.Links(id))
			if to := r.Uint32N(500); !seen[to] && f.Score(to) > 0 {
				seen[to] = true
				f.Fetched(to, g.Links(to))
			}
		}
		require.Len(t, seen, len(crawl(New(Options{Cutoff: DL1}), g, 0)), "seed %d", seed)
		requireLaw(t, f)
	}
}

func TestPushKnowsTrapsByTheirHosts(t *testing.T) {
	// Host 1 makes pages without end, each of which links to five more; host 2 has three pages at the
	// end of a chain of pages that also link elsewhere.
	const trap, good = 1000, 900
	links := func(id uint32) (out []uint32) {
		switch {
		case id == 0:
			return []uint32{trap, 1}
		case id < 5:
			out = []uint32{id + 1}
			for i := range uint32(9) {
				out = append(out, 100+id*9+i)
			}
			return out
		case id == 5:
			return []uint32{good, good + 1, good + 2}
		case id >= trap:
			for i := range uint32(5) {
				out = append(out, trap+((id-trap)*5+i+1)%100_000, trap)
			}
		}
		return out
	}
	host := func(id uint32) uint32 {
		switch {
		case id >= trap:
			return 1
		case id >= good:
			return 2
		}
		return 10 + id
	}
	when := func(opts Options) (fetches int) {
		f := New(opts)
		f.Discover(0)
		for found := 0; found < 3 && fetches < 5000; fetches++ {
			id, ok := f.Next()
			require.True(t, ok)
			if id >= good && id < trap {
				found++
			}
			f.Fetched(id, links(id))
		}
		return fetches
	}
	plain, known := when(Options{}), when(Options{Host: host})
	require.Less(t, known, plain)
	require.Less(t, known, 200)
}

// TestReleaseTakesTheBestThatIsSetAside compares with a search through all that is set aside: of a
// host that is never ready, with pages found and scores risen at any time.
func TestReleaseTakesTheBestThatIsSetAside(t *testing.T) {
	never := func(uint32) bool { return false }
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 41))
		f := New(Options{Cutoff: DL1, Host: func(id uint32) uint32 { return id / 1000 }})
		var left []uint32
		for page := range uint32(400) {
			f.Fetched(1000+page, rising(r, 1+r.IntN(30)))
			_, ok := f.NextReady(never)
			require.False(t, ok)
			if r.IntN(4) > 0 {
				continue
			}
			left = left[:0]
			for id, n := range f.nodes {
				if n.state&aside != 0 {
					left = append(left, uint32(id))
				}
			}
			best := slices.MaxFunc(left, func(a, b uint32) int {
				return cmp.Compare(f.nodes[a].bucket(), f.nodes[b].bucket())
			})
			f.Release(0)
			id, ok := f.Next()
			require.True(t, ok)
			require.Equal(t, f.nodes[best].bucket(), f.nodes[id].bucket(), "seed %d, page %d", seed, page)
			requireLaw(t, f)
		}
	}
}

func TestAPageFoundLateWaitsAtItsPlace(t *testing.T) {
	f := New(Options{Cutoff: DL1, Host: tenPerHost})
	never := func(uint32) bool { return false }
	for _, found := range [][]page{
		{{90, []uint32{11}}, {91, []uint32{11, 12, 13, 14}}}, // 11 has 1.25, 12 to 14 have a quarter
		{{92, []uint32{15, 21}}},                             // 15 has a half
		{{93, []uint32{16, 22, 23, 24}}},                     // 16 a quarter, too
	} {
		fetchAll(f, found)
		f.NextReady(never)
	}
	for _, want := range []uint32{11, 15, 12, 13, 14, 16} {
		f.Release(1)
		id, ok := f.Next()
		require.True(t, ok)
		require.Equal(t, want, id)
	}
}

// TestAPageThatLosesWhileItWaits: neither Release nor a file takes it for what it was.
func TestAPageThatLosesWhileItWaits(t *testing.T) {
	opts := Options{Cutoff: AR, Threshold: 1, Host: tenPerHost}
	f := New(opts)
	fetchAll(f, []page{{20, []uint32{11}}, {21, []uint32{12, 22}}, {22, nil}})
	_, ok := f.NextReady(func(uint32) bool { return false })
	require.False(t, ok)
	f.Fetched(20, nil) // 11 has nothing left, and 12 a half
	read, err := Read(bytes.NewReader(saved(t, f)), opts)
	require.NoError(t, err)
	f.Release(1)
	for _, f := range []*Frontier{f, read} {
		id, ok := f.Next()
		require.True(t, ok)
		require.EqualValues(t, 12, id)
		requireLaw(t, f)
	}
}

func TestDroppedIdsAreNeverReturned(t *testing.T) {
	f := New(Options{Cutoff: DL1, Host: tenPerHost})
	f.Drop(14) // before any link to it
	f.Fetched(0, []uint32{11, 12, 13, 14})
	_, ok := f.NextReady(func(uint32) bool { return false }) // sets 11, 12, 13 aside
	require.False(t, ok)
	f.Drop(11)
	f.Release(1)
	f.Drop(12)                     // was back in the queue
	f.Fetched(1, []uint32{11, 12}) // links do not bring them back
	requireLaw(t, f)
	f.Release(1)
	require.Equal(t, []uint32{13}, upcoming(f, 9))
	require.InDelta(t, .75, f.Score(11), 1e-12)
	f.Discover(11)
	f.Drop(0) // fetched
	require.Equal(t, []uint32{11, 13}, upcoming(f, 9))
	require.Equal(t, 2, f.Stats().Fetched)
	requireLaw(t, f)
}

// TestADroppedIdWakesTheNext drops the id that the others of its host wait for: while it is queued, and
// after NextReady has returned it.
func TestADroppedIdWakesTheNext(t *testing.T) {
	f := New(Options{Cutoff: DL1, Host: func(uint32) uint32 { return 0 }})
	for id := range uint32(5) {
		f.Discover(id)
	}
	busy := false
	ready := func(uint32) bool { return !busy }
	visited, ok := f.NextReady(ready)
	require.True(t, ok)
	busy = true
	_, ok = f.NextReady(ready)
	require.False(t, ok)
	require.Equal(t, 4, f.Stats().Aside)
	f.Fetched(visited, nil)
	busy = false
	f.Release(0)
	f.Drop(1) // robots.txt has changed
	id, ok := f.NextReady(ready)
	require.True(t, ok)
	require.Equal(t, uint32(2), id)
	f.Drop(2) // instead of a visit
	id, ok = f.NextReady(ready)
	require.True(t, ok)
	require.Equal(t, uint32(3), id)
	busy = true
	f.Discover(5)
	_, ok = f.NextReady(ready) // the host is busy from now on
	require.False(t, ok)
	f.Drop(3)
	require.Equal(t, 2, f.Stats().Aside, "a busy host waits for Release")
}

// TestAPageFetchedByRedirectWakesTheNext has a page of another host redirect to the id that Release put
// back: no visit of its own will end.
func TestAPageFetchedByRedirectWakesTheNext(t *testing.T) {
	f := New(Options{Cutoff: DL1, Host: tenPerHost})
	f.Fetched(0, []uint32{11, 12, 13})
	_, ok := f.NextReady(func(uint32) bool { return false })
	require.False(t, ok)
	f.Release(1)
	f.Fetched(11, nil)
	requireLaw(t, f)
	id, ok := f.NextReady(func(uint32) bool { return true })
	require.True(t, ok)
	require.Equal(t, uint32(12), id)
	f.NextReady(func(uint32) bool { return false }) // nothing is queued, and the host is not busy
	f.Fetched(12, nil)                              // the visit is not over
	_, ok = f.Next()
	require.False(t, ok)
	f.Release(1)
	require.Equal(t, []uint32{13}, upcoming(f, 9))
}

// TestDroppingAndDiscoveringTakesNoMemory does both many times to one id, in the queue and aside.
func TestDroppingAndDiscoveringTakesNoMemory(t *testing.T) {
	f := New(Options{Host: func(uint32) uint32 { return 0 }})
	f.Discover(1)
	before := f.Stats().Bytes
	for range 100_000 {
		f.Drop(1)
		f.Discover(1)
	}
	require.Less(t, f.Stats().Bytes, 2*before)
	never := func(uint32) bool { return false }
	for range 100_000 {
		_, ok := f.NextReady(never)
		require.False(t, ok)
		f.Drop(1)
		f.Discover(1)
	}
	require.Less(t, f.Stats().Bytes, 2*before)
	require.Less(t, cap(f.lots[0].entries), 100)
}

// TestGapsInHostNumbers has hosts whose numbers have gaps, and come in any order. They rank as dense ones do.
func TestGapsInHostNumbers(t *testing.T) {
	const ids = 500
	gaps := New(Options{Host: func(id uint32) uint32 { return 900 - id%7*101 }})
	dense := New(Options{Host: func(id uint32) uint32 { return id % 7 }})
	r, s := rand.New(rand.NewPCG(1, 7)), rand.New(rand.NewPCG(1, 7))
	gaps.Discover(0)
	dense.Discover(0)
	for range ids {
		id, ok := gaps.Next()
		same, okToo := dense.Next()
		require.Equal(t, okToo, ok)
		require.Equal(t, same, id)
		if !ok {
			break
		}
		gaps.Fetched(id, randomLinks(r, 9, ids))
		dense.Fetched(id, randomLinks(s, 9, ids))
	}
	require.InDelta(t, dense.Stats().Bytes, gaps.Stats().Bytes, 8*1200)
}

// TestReadyMayRelease: a host that is released while it is asked for loses none of its ids.
func TestReadyMayRelease(t *testing.T) {
	f := New(Options{})
	f.Discover(1)
	for range 2 {
		_, ok := f.NextReady(func(host uint32) bool {
			f.Release(host)
			return false
		})
		require.False(t, ok)
		requireLaw(t, f)
		f.Release(0)
	}
	id, ok := f.Next()
	require.True(t, ok)
	require.EqualValues(t, 1, id)
}
