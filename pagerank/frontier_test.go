package pagerank

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A page is a step of a crawl worked by hand.
type page struct {
	id    uint32
	links []uint32
}

// fetchAll plays steps and returns the scores of ids 0 to 5.
func fetchAll(f *Frontier, steps []page) (scores [6]float64) {
	for _, s := range steps {
		f.Fetched(s.id, s.links)
	}
	for id := range scores {
		scores[id] = f.Score(uint32(id))
	}
	return scores
}

func TestScoresWorkedByHand(t *testing.T) {
	// 0 gets 1 and gives 1/2 to each of 1 and 2.
	// 1 gets 1, has 3/2, and gives 3/4 to each of 0 and 3.
	// 3 gets 1, has 7/4, and gives it to 0.
	cycle := []page{{0, []uint32{1, 2}}, {1, []uint32{0, 3}}, {3, []uint32{0}}}
	for _, tt := range []struct {
		name  string
		opts  Options
		steps []page
		want  [6]float64
	}{
		{"DL1 gives to direct links only", Options{Cutoff: DL1}, cycle, [6]float64{3.5, 1.5, .5, 1.75}},
		{"DL1 damped", Options{Cutoff: DL1, Damping: .5}, cycle,
			[6]float64{1.3125 + .5*(1+.3125), 1.25, .25, 1.3125}},
		{
			"AR waits until a score has grown by thirty", Options{Cutoff: AR}, cycle,
			[6]float64{3.5, 1.5, .5, 1.75},
		},
		{
			// 0 has 1 passed on and 3.5: 2.5 saved is over 0.7 of it, so 1.25 go to 1 and 2. 1 has then
			// 2.75 and has saved 1.25, which is less.
			"AR passes on what was saved", Options{Cutoff: AR, Threshold: .7}, cycle,
			[6]float64{3.5, 2.75, 1.75, 1.75},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := New(tt.opts)
			require.InDeltaSlice(t, tt.want[:], slice(fetchAll(f, tt.steps)), 1e-12)
			requireLaw(t, f)
		})
	}
}

func slice(a [6]float64) []float64 { return a[:] }

func TestLinksThatDoNotCount(t *testing.T) {
	for _, tt := range []struct {
		name  string
		links []uint32
	}{
		{"plain", []uint32{1, 2}},
		{"to the page itself", []uint32{0, 1, 0, 2}},
		{"repeated", []uint32{2, 1, 2, 2, 1}},
		{"beyond the limit", []uint32{1, 100, 2, 4_000_000_000}},
	} {
		for _, cutoff := range []Cutoff{DL1, AR} {
			f := New(Options{Cutoff: cutoff, Limit: 100})
			f.Fetched(0, tt.links)
			require.Equal(t, [6]float64{1, .5, .5}, fetchAll(f, nil), tt.name)
			require.Equal(t, 2, pending(f), tt.name)
		}
	}
	f := New(Options{Limit: 10})
	f.Discover(10)
	f.Drop(11)
	f.Fetched(12, []uint32{1})
	require.Zero(t, f.Stats().Known)
}

func TestTiesGoToOtherHostsFirst(t *testing.T) {
	host := func(id uint32) uint32 { return id / 10 }
	f := New(Options{Cutoff: DL1, Host: host})
	f.Discover(1)
	id, _ := f.Next()
	f.Fetched(id, []uint32{3, 11, 2, 25, 12, 4})
	var order []uint32
	for id, ok := f.Next(); ok; id, ok = f.Next() {
		order = append(order, id)
	}
	require.Equal(t, []uint32{11, 25, 12, 3, 2, 4}, order)
}

func TestPagesFetchedAgain(t *testing.T) {
	f := New(Options{Cutoff: DL1, KeepLinks: true})
	f.Fetched(0, []uint32{1, 2}) // 1/2 each
	f.Fetched(3, []uint32{0})
	require.Equal(t, [6]float64{2, .5, .5, 1}, fetchAll(f, nil))

	f.Fetched(0, []uint32{2, 1}) // the same links: what came since goes over them too
	require.Equal(t, [6]float64{2, 1, 1, 1}, fetchAll(f, nil))
	requireLaw(t, f)

	f.Fetched(0, []uint32{4}) // others: 1 and 2 lose all that they had
	require.Equal(t, [6]float64{2, 0, 0, 1, 2}, fetchAll(f, nil))
	requireLaw(t, f)

	f.Fetched(0, nil)
	require.Equal(t, [6]float64{2, 0, 0, 1, 0}, fetchAll(f, nil))
	requireLaw(t, f)

	f.Fetched(0, []uint32{1})
	require.Equal(t, [6]float64{2, 2, 0, 1, 0}, fetchAll(f, nil))
	requireLaw(t, f)
	require.Equal(t, 2, f.Stats().Links)

	light := New(Options{Cutoff: DL1})
	light.Fetched(0, []uint32{1})
	light.Fetched(0, []uint32{2})
	require.Equal(t, [6]float64{1, 1, 0}, fetchAll(light, nil), "shares stay, links are discovered")
	require.Equal(t, 2, pending(light))
	id, _ := light.Next()
	light.Fetched(0, []uint32{1, 2})
	next, _ := light.Next()
	require.NotEqual(t, id, next, "an id that is out is not handed out twice")
	require.Zero(t, pending(light))
}

func TestNextTakesTheHighestScore(t *testing.T) {
	f := New(Options{Cutoff: DL1})
	for _, id := range []uint32{7, 0, 1} {
		f.Discover(id)
	}
	f.Fetched(0, []uint32{2, 3})
	f.Fetched(1, []uint32{3, 4, 5})
	var order []uint32
	for id, ok := f.Next(); ok; id, ok = f.Next() {
		order = append(order, id)
	}
	require.Equal(t, []uint32{3, 2, 4, 5, 7}, order)
	f.Discover(4)
	f.Discover(0)
	id, ok := f.Next()
	require.True(t, ok, "an id that could not be fetched comes back by Discover")
	require.Equal(t, uint32(4), id)
	_, ok = f.Next()
	require.False(t, ok, "one that is fetched does not")
}

func TestFetchedBeforeDiscovered(t *testing.T) {
	f := New(Options{})
	f.Fetched(3, nil)
	require.Equal(t, Stats{Known: 1, Fetched: 1, Total: 1, Held: 1, Mass: 1}, plain(f.Stats()))
	f.Discover(3)
	require.Zero(t, pending(f))
	ids := 0
	for id, score := range f.All() {
		require.Equal(t, uint32(3), id)
		require.InDelta(t, 1.0, score, 0)
		ids++
	}
	require.Equal(t, 1, ids)
	require.Zero(t, f.Score(1_000_000))
}

// plain leaves out what depends on the machine.
func plain(s Stats) Stats {
	s.Bytes = 0
	return s
}

func TestStatsCountWork(t *testing.T) {
	f := New(Options{Cutoff: DL1, Damping: .85})
	f.Fetched(0, []uint32{1, 2})
	f.Fetched(1, []uint32{0})
	s := f.Stats()
	require.Positive(t, s.Bytes)
	require.Equal(t, []int{3, 1, 0, 2, 0, 3}, []int{
		s.Known, s.Queued, s.Aside, s.Fetched, s.Links, s.Updates,
	})
	// 1 had 1+0.425 and gave 0.85 of it to 0, which has not passed that on.
	require.InDelta(t, .85*1.425, s.Open, 1e-12)
	require.InDelta(t, 2+.85+.85*1.425, s.Total, 1e-12)
	require.Less(t, s.Error, 2.0)
	require.Positive(t, s.Mass)
}

func TestSameCrawlTwice(t *testing.T) {
	g := testWeb(3000, 1)
	opts := Options{Host: func(id uint32) uint32 { return id / 50 }}
	require.Equal(t, crawl(New(opts), g, 0, 7), crawl(New(opts), g, 0, 7))
}

// pending returns how many pages are queued or set aside.
func pending(f interface{ Stats() Stats }) int {
	s := f.Stats()
	return s.Queued + s.Aside
}
