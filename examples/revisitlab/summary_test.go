package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/report"
)

// curveOf returns a curve with the given caught versions of each page by visits per page.
func curveOf(name string, points map[int][]uint32, pages []page) (c curve) {
	c.name = name
	for visits := range 1000 {
		caught, ok := points[visits]
		if !ok {
			continue
		}
		s := score{caught: caught}
		for i, n := range caught {
			s.pages++
			s.visits += visits
			s.captured += int(n)
			s.versions += len(pages[i].changes)
			s.coverage += float64(n) / float64(len(pages[i].changes))
		}
		c.points = append(c.points, s)
	}
	return c
}

func pagesWith(versions ...int) (pages []page) {
	for _, n := range versions {
		p := page{}
		for d := range n {
			p.change(float64(d+1), 1)
		}
		pages = append(pages, p)
	}
	return pages
}

func TestTheLeadIsReadPageByPage(t *testing.T) {
	pages := pagesWith(10, 20, 30)
	base := curveOf("base", map[int][]uint32{10: {1, 2, 3}, 40: {5, 10, 15}}, pages)
	ahead := curveOf("ahead", map[int][]uint32{10: {2, 4, 6}, 40: {6, 12, 18}}, pages)

	lead, margin := ahead.lead(base, 10, pages)
	require.InDelta(t, 0.1, lead, 1e-9)
	require.InDelta(t, 0, margin, 1e-9, "every page gains a tenth of its versions")

	lead, _ = ahead.lead(base, 20, pages)
	require.InDelta(t, 0.1, lead, 1e-9, "both are read halfway")

	uneven := curveOf("uneven", map[int][]uint32{10: {10, 2, 3}, 40: {5, 10, 15}}, pages)
	lead, margin = uneven.lead(base, 10, pages)
	require.InDelta(t, 9.0/60, lead, 1e-9)
	require.Greater(t, margin, 0.1, "one page of three made all of the gain")

	lead, margin = ahead.lead(base, 50, pages)
	require.True(t, math.IsNaN(lead) && math.IsNaN(margin), "beyond the curve")
}

// The interval contains the true difference with about the stated probability.
func TestTheMarginIsA95PercentInterval(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	const rounds, n = 400, 60
	inside := 0
	for range rounds {
		versions := make([]int, n)
		for i := range versions {
			versions[i] = 20
		}
		pages := pagesWith(versions...)
		draw := func(chance float64) []uint32 {
			caught := make([]uint32, n)
			for i := range caught {
				for range 20 {
					if random.Float64() < chance {
						caught[i]++
					}
				}
			}
			return caught
		}
		base := curveOf("base", map[int][]uint32{10: draw(0.5)}, pages)
		own := curveOf("own", map[int][]uint32{10: draw(0.6)}, pages)
		lead, margin := own.lead(base, 10, pages)
		if math.Abs(lead-0.1) <= margin {
			inside++
		}
	}
	require.InDelta(t, 0.95, float64(inside)/rounds, 0.04)
}

func TestTheShareClosedIsOverAllCosts(t *testing.T) {
	s := summary{costs: []summaryCost{
		{lead: 0.1, oracle: 0.2}, {lead: 0.01, oracle: 0.001}, {lead: math.NaN(), oracle: 0.2},
	}}
	require.InDelta(t, 0.11/0.201, s.closed(), 1e-9, "a tiny gap has a tiny weight")
	s = summary{costs: []summaryCost{{lead: 0.1, oracle: -0.2}}}
	require.True(t, math.IsNaN(s.closed()), "there is no gap")

	mean, least, closed := overall([]summary{
		{costs: []summaryCost{{lead: 0.1, oracle: 0.2}, {lead: 0.3, oracle: 0.2}}},
		{costs: []summaryCost{{lead: -0.1, oracle: 0.2}}},
	})
	require.InDelta(t, 0.1, mean, 1e-9)
	require.InDelta(t, -0.1, least, 1e-9)
	require.InDelta(t, 0.25, closed, 1e-9)
}

func TestTheSummaryReadsTheCurves(t *testing.T) {
	pages := synthesize(30, 2, 1, 3)
	r := result{name: "made", pages: pages}
	r.curves = lab{step: 1}.curves(pages, families(), func(float64) {})
	s := r.summarize()
	require.Len(t, s.costs, len(summaryAlphas))
	for i, c := range s.costs {
		base := r.curves[ofMLE].at(c.visits, (*sums).micro)
		lead := r.curves[ofBayes].at(c.visits, (*sums).micro) - base
		require.InDelta(t, lead, c.lead, 1e-9, "page by page and in all")
		if i > 0 {
			require.Greater(t, c.visits, s.costs[i-1].visits)
		}
	}
	won := s.won[0][r.curves[ofMLE].name]
	require.Equal(t, len(summaryAlphas)-1, won.of, "the lowest cost is left out")

	var out bytes.Buffer
	leadTable(report.NewPrinter(&out), []summary{s})
	require.Contains(t, out.String(), "made")
	require.Contains(t, out.String(), "over all logs and costs")
	require.NotContains(t, out.String(), "NaN")

	out.Reset()
	nan := math.NaN()
	leadTable(report.NewPrinter(&out), []summary{{
		name: "short", costs: []summaryCost{{visits: 9, lead: nan, margin: nan, mean: nan, oracle: nan}},
	}})
	require.Contains(t, out.String(), "short")
	require.NotContains(t, out.String(), "NaN", "a curve that ends too early has no number")
}

func TestFixedIntervalsLieCloseTogether(t *testing.T) {
	days := everyDays()
	require.Equal(t, float64(year), days[0])
	require.Equal(t, 1.0, days[len(days)-1])
	for i := range days[1:] {
		require.InDelta(t, 1, days[i]/days[i+1], 0.16)
	}
}

func TestPagesKeepTheirPlacesInTheScores(t *testing.T) {
	pages := synthesize(chunk+50, 2, 30, 8) // more than one job takes
	for i := range pages[chunk+20:] {
		pages[chunk+20+i].window = 1
	}
	all := paperPolicies()[:2]
	l := lab{step: 30}
	for i, s := range l.simulateAll(pages, all, func(float64) {}) {
		sum := 0
		for n, caught := range s.caught {
			require.LessOrEqual(t, int(caught), len(pages[n].changes))
			sum += int(caught)
		}
		require.Equal(t, s.captured, sum)
		last := l.simulate(pages[len(pages)-1:], &all[i])
		require.EqualValues(t, last[0].captured, s.caught[len(pages)-1])
	}
}
