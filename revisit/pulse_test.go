package revisit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A site is a host whose pages change on given days, as far as share says, and at random beside.
type site struct {
	days   []float64 // of bulk changes
	share  float64   // of the pages that change on each of them
	random float64   // changes a day of each page
}

// changes returns the days of a year on which one page changes.
func (s site) changes(random *rand.Rand) (days []float64) {
	for _, d := range s.days {
		if random.Float64() < s.share {
			days = append(days, d)
		}
	}
	if s.random > 0 {
		for d := random.ExpFloat64() / s.random; d < yearDays; d += random.ExpFloat64() / s.random {
			days = append(days, d)
		}
	}
	return days
}

// crawl visits the pages of a site for a year as soon as they are worth the price, by the clock of
// the host or by that on the wall, and returns the visits and the versions caught.
func crawl(s site, price float64, byPulse bool) (visits, caught int) {
	type page struct {
		changes []float64
		h       History
		last    float64
	}
	random := rand.New(rand.NewPCG(9, 0))
	pages := make([]page, 300)
	for i := range pages {
		pages[i] = page{changes: s.changes(random), h: walk()}
	}
	b := Bayes{Price: price}
	var pulse Pulse
	for d := 1.0; d < yearDays; d++ {
		now := start.Add(time.Duration(d) * dayLong)
		for _, i := range random.Perm(len(pages)) {
			p := &pages[i]
			waited := now.Sub(p.h.Last())
			if byPulse {
				waited = pulse.Elapsed(p.h.Last(), now)
			}
			if b.Worth(p.h, waited) < price {
				continue
			}
			v := Visit{At: now}
			for _, c := range p.changes {
				v.Changed = v.Changed || c > p.last && c <= d
			}
			if byPulse {
				v.Elapsed = pulse.Observe(p.h, v)
			}
			p.h, p.last = p.h.Observe(v), d
			visits++
			if v.Changed {
				caught++
			}
		}
	}
	return visits, caught
}

// TestPulseCatchesBulkChanges: a host that publishes on some days of a few weeks, and is silent for
// months in between.
func TestPulseCatchesBulkChanges(t *testing.T) {
	bulk := site{share: 0.7, days: []float64{
		41, 44, 49, 53, 58, 151, 153, 157, 160, 166, 261, 265, 268, 275, 279, 331, 335, 339, 342, 350,
	}}
	visits, caught := crawl(bulk, 0.5, false)
	best := 0
	for price := 0.2; price < 1; price *= 1.1 {
		if v, c := crawl(bulk, price, true); v <= visits {
			best = max(best, c)
		}
	}
	t.Logf("%d visits catch %d versions without a pulse, %d with it", visits, caught, best)
	require.Greater(t, float64(best), 1.15*float64(caught))
}

// TestPulseLeavesOtherHostsAlone: where pages change on their own, the clock stays that on the wall.
func TestPulseLeavesOtherHostsAlone(t *testing.T) {
	steady := site{random: 0.05}
	visits, caught := crawl(steady, 0.35, false)
	v, c := crawl(steady, 0.35, true)
	require.InEpsilon(t, visits, v, 0.03)
	require.InEpsilon(t, caught, c, 0.03)
}

func TestPulseOfAHostNeverVisited(t *testing.T) {
	var p Pulse
	require.Equal(t, 10*dayLong, p.Elapsed(start, start.Add(10*dayLong)))
	require.Zero(t, p.Observe(History{}, Visit{At: start, Changed: true}), "the first visit to a page")
	h := walk()
	require.Equal(t, dayLong, p.Observe(h, Visit{At: start.Add(dayLong)}))
	require.Zero(t, p.Observe(h, Visit{At: start}), "a visit that is not later")
	p = Pulse{}
	late := start.Add(5 * 365 * dayLong)
	require.Equal(t, 5*365*dayLong, p.Observe(h, Visit{At: late}), "after years")
	require.Empty(t, p.fault())
}

func TestPulseTakesConstantSpaceAndNoAllocation(t *testing.T) {
	var p Pulse
	b, err := p.AppendBinary(nil)
	require.NoError(t, err)
	require.Len(t, b, 64)
	h := walk(step{3, true}, step{7, false})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.Observe(h, Visit{At: start.Add(40 * dayLong), Changed: true})
	}))
}

// One visit with a clock far ahead must not stop a host's clock for the years until then.
func TestAPulseOutlivesAWrongClock(t *testing.T) {
	var p Pulse
	h := walk()
	ahead := Visit{At: start.AddDate(10, 0, 0)}
	p.Observe(h, ahead)
	h = h.Observe(ahead)
	var sound Pulse
	for day := range 40 {
		v := Visit{At: start.Add(time.Duration(day) * dayLong), Changed: day%9 == 0}
		p.Observe(h, v)
		sound.Observe(h, v)
		h = h.Observe(v)
	}
	require.Equal(t, sound.activity, p.activity)
	require.Equal(t, sound.newest, p.newest)
}

// A visit from an old log does not erase what a host's other pages have shown.
func TestAnOldVisitCostsAPulseTwoDays(t *testing.T) {
	var p Pulse
	pages := make([]History, 60)
	now := start
	for day := range 400 {
		now = now.Add(dayLong)
		for i := range pages {
			if (day+i)%3 == 0 {
				v := Visit{At: now, Changed: day%14 < 3}
				v.Elapsed = p.Observe(pages[i], v)
				pages[i] = pages[i].Observe(v)
			}
		}
	}
	before := p
	month := now.AddDate(0, 0, -30)
	require.Zero(t, p.Observe(History{}, Visit{At: month}))
	require.Equal(t, before.newest-1, p.newest)
	require.Equal(t, before.activity[1:], p.activity[:spans-1])
	p.Observe(History{}, Visit{At: now})
	require.Equal(t, before.newest, p.newest)
	require.Equal(t, before.activity[1:], p.activity[1:])

	h := History{}.Observe(Visit{At: month.AddDate(0, 0, -7)})
	require.Equal(t, 7*dayLong, p.Observe(h, Visit{At: month}), "the time on the wall")
}

// A clock that was ahead for a page that is never visited again stops a host's clock for a while.
func TestManyVisitsOutliveAWrongClock(t *testing.T) {
	var p Pulse
	p.Observe(History{}, Visit{At: start.AddDate(10, 0, 0)})
	for range 150 {
		p.Observe(History{}, Visit{At: start})
	}
	require.InDelta(t, spanOf(unixSeconds(start)), int(p.newest), spans)
}

func TestTheClockOfAHostDoesNotGoBack(t *testing.T) {
	var p Pulse
	require.Zero(t, p.Elapsed(start, start.Add(-time.Hour)))
}
