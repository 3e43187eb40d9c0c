package main

import (
	"bytes"
	"encoding/csv"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/revisit"
	"github.com/spinneret-go/spinneret/revisit/optimal"
)

// visited returns a track with visits at equal gaps, in days, that found changes or not.
func visited(gap float64, changed ...bool) *track {
	t := &track{page: &page{changes: []float64{10, 20}}}
	t.history = t.history.Observe(revisit.Visit{At: at(0)})
	for i, c := range changed {
		t.history = t.history.Observe(revisit.Visit{At: at(gap * float64(i+1)), Changed: c})
		t.gaps = append(t.gaps, optimal.Gap{Length: duration(gap), Changed: c})
	}
	return t
}

func TestTheExactEstimatorSolvesEquation2(t *testing.T) {
	next := exact(revisit.MLE{}).next
	// Equal gaps, where equation 2 has the closed form gap/ln(T/U).
	require.InEpsilon(t, 5/math.Log(2), next(visited(5, true, false)), 1e-6)
	require.InEpsilon(t, 7, next(visited(5)), 1e-6, "nothing is known: the second visit of MLE")
	require.InEpsilon(t, 70, next(visited(5, false)), 1e-3, "no rate: ten of the 7 days planned")
	require.InEpsilon(t, 1, next(visited(5, true)), 1e-3, "an infinite rate: its lower bound")
	seldom := visited(1, append(make([]bool, 600), true)...)
	require.EqualValues(t, 365, next(seldom), "no longer than a year")
}

func TestTheOracleWaitsForItsPrice(t *testing.T) {
	tr := &track{page: &page{changes: make([]float64, 73)}} // a change in five days
	for _, price := range []float64{0.1, 0.5, 0.9} {
		days := oracle(price).next(tr)
		require.InEpsilon(t, price, gain(days/5), 1e-6)
	}
	slow := &track{page: &page{changes: make([]float64, 5)}} // a change in 73 days
	require.InEpsilon(t, 0.4, gain(fairOracle(0.4, 100).next(slow)/73), 1e-6, "faster than Fair")
	require.InEpsilon(t, 0.4/7.3, gain(fairOracle(0.4, 10).next(slow)/73), 1e-6, "counts 7.3 times")
	still := &track{page: &page{changes: make([]float64, 1)}}
	require.EqualValues(t, year, oracle(0.99).next(still))
}

func TestGainGrowsFromNothingToOne(t *testing.T) {
	last := 0.0
	require.Zero(t, gain(0))
	for x := 0.01; x < 30; x *= 1.1 {
		require.Greater(t, gain(x), last)
		last = gain(x)
	}
	require.InDelta(t, 1, last, 1e-9)
}

func TestAPoolLearnsFromItsPages(t *testing.T) {
	s := pooled("pool", revisit.Bayes{})
	fresh := visited(5)
	before := s.next(fresh)
	crowd := func(changed bool) (seen []track) {
		for range 300 {
			seen = append(seen, *visited(5, changed, changed, changed, changed, changed, changed))
		}
		return seen
	}
	require.Less(t, s.learn(crowd(true))(fresh), before, "all pages are busy")
	require.Greater(t, s.learn(crowd(false))(fresh), before, "no page ever changed")
	require.InEpsilon(t, before, s.learn(nil)(fresh), 1e-5, "there were no pages to learn from")
}

// A family's points are ordered by cost: more expensive settings visit more.
func TestFamiliesAreSweptInOrder(t *testing.T) {
	pages := synthesize(15, 2, 1, 9)
	for _, f := range families() {
		require.Greater(t, len(f.strategies), 5, f.name)
		ends := []strategy{f.strategies[0], f.strategies[len(f.strategies)-1]}
		scores := lab{step: 1}.simulateAll(pages, ends, func(float64) {})
		require.Greater(t, scores[1].visits, 3*scores[0].visits, f.name)
	}
}

func TestPolicyNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range paperPolicies() {
		require.False(t, seen[p.name], p.name)
		seen[p.name] = true
	}
	for _, f := range families() {
		require.NotEmpty(t, f.name)
	}
}

func TestServersVisitDuePagesInOrder(t *testing.T) {
	pages := []page{{changes: []float64{5}}, {changes: []float64{9}}, {changes: []float64{90}}}
	c := crowd{tracks: make([]track, 3), intervals: make([]time.Duration, 3), admits: 1}
	for i := range c.tracks {
		tr := &c.tracks[i]
		tr.page = &pages[i]
		tr.history = visited(1).history
		tr.due = float64(10 - i)
	}
	come := order{next: plain("", revisit.Every(day)).next}
	require.Equal(t, []int{2, 1, 0}, c.queue(come, 10), "the longest waiting first")
	require.Equal(t, []int{2}, c.queue(come, 8), "the others are not due")

	ranked := come
	ranked.rank = func(t *track, _ float64) float64 { return float64(len(t.page.changes)) - t.due }
	require.Equal(t, []int{2, 1, 0}, c.queue(ranked, 10))
	ranked.rank = func(t *track, _ float64) float64 { return t.due }
	require.Equal(t, []int{0, 1, 2}, c.queue(ranked, 10), "the most worthy first")
	ranked.eager = true
	require.Equal(t, []int{0, 1, 2}, c.queue(ranked, 1), "even those that are not due")
	require.Empty(t, c.queue(ranked, 0), "but never twice a day")

	c.tracks[1].history = revisit.History{}
	require.Equal(t, 1, c.queue(ranked, 10)[0], "pages never visited come first in all orders")
}

func TestAServerSavesVisitsForADay(t *testing.T) {
	pages := []page{{changes: []float64{5}}}
	c := crowd{tracks: []track{{page: &pages[0], due: 300}}, admits: 2}
	c.intervals = make([]time.Duration, 1)
	l := lab{step: 1}
	o := order{next: plain("", revisit.Every(100*day)).next}
	for today := range 10 {
		l.serve(&c, o, float64(today))
	}
	require.EqualValues(t, 2, c.savings)
	require.EqualValues(t, 18, c.unused, "two visits a day, except for one day's")
	l.serve(&c, o, 300)
	require.EqualValues(t, 400, c.tracks[0].due)
}

func TestStretchedIntervalsFitTheServer(t *testing.T) {
	pages := synthesize(1+3+9+27, 2, 1, 3)
	all := orders(0.5)
	scores, unused := lab{step: 1}.overload(pages, 0.5, all)
	require.Less(t, scores[3].visits, scores[ofCome].visits)
	require.Greater(t, unused[3], 0.0)
}

func TestCSVHasTheNumbers(t *testing.T) {
	pages := synthesize(20, 2, 1, 8)
	r := result{name: "made", pages: pages}
	policies := paperPolicies()[:3]
	for _, p := range policies {
		r.names = append(r.names, p.name)
	}
	r.scores = lab{step: 1}.simulateAll(pages, policies, func(float64) {})
	var out bytes.Buffer
	require.NoError(t, r.policiesCSV(&out))
	rows, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 4)
	for i, row := range rows[1:] {
		require.Equal(t, policies[i].name, row[0])
		for column, want := range map[string]float64{
			"pages": 20, "visits": float64(r.scores[i].visits), "captured": float64(r.scores[i].captured),
			"coverage": r.scores[i].macro(), "efficiency": r.scores[i].useful(),
		} {
			got, err := strconv.ParseFloat(row[indexOf(rows[0], column)], 64)
			require.NoError(t, err)
			require.InEpsilon(t, want, got, 1e-4, column)
		}
	}
}

func indexOf(row []string, name string) int {
	for i, cell := range row {
		if cell == name {
			return i
		}
	}
	return -1
}

func TestFiguresShowTheScores(t *testing.T) {
	pages := synthesize(60, 2, 1, 5)
	r := result{name: "made", pages: pages}
	for _, p := range paperPolicies() {
		r.names = append(r.names, p.name)
	}
	r.scores = lab{step: 1}.simulateAll(pages, paperPolicies(), func(float64) {})
	figures := r.figures()

	five := figures["fig5-policies"]
	require.Len(t, five.Lines, len(r.names))
	for i, line := range five.Lines {
		require.Equal(t, []float64{r.scores[i].macro()}, line.X)
		require.Equal(t, []float64{r.scores[i].useful()}, line.Y)
		require.Equal(t, r.names[i] == "Bayes", line.Bold)
	}
	nine := figures["fig9-months"]
	require.Len(t, nine.Lines[0].X, months)
	missed := figures["fig8-missed"]
	all := missed.Lines[len(missed.Lines)-1]
	require.Equal(t, "all versions", all.Name)
	sum := 0.0
	for _, y := range all.Y {
		sum += y
	}
	require.EqualValues(t, r.scores[0].versions, sum)
	four := figures["fig4-intervals"]
	gaps, means := 0.0, 0.0
	for i := range four.Lines[0].Y {
		gaps += four.Lines[0].Y[i]
		means += four.Lines[1].Y[i]
	}
	require.EqualValues(t, r.scores[0].versions-len(pages), gaps, "one gap less than versions")
	require.EqualValues(t, len(pages), means)
	for name, p := range figures {
		var out bytes.Buffer
		require.NoError(t, p.Draw(&out), name)
		require.NotContains(t, out.String(), "NaN", name)
	}
}

// TestCutAgreesWithACheckOfEachDay compares cut with a slow version that checks each day of each
// page.
func TestCutAgreesWithACheckOfEachDay(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 0))
	for range 200 {
		end := 400 + random.Float64()*800
		events := []event{{"a", stamp(random.Float64() * 100), 'A'}}
		for d := 100.0; d < end; d += random.ExpFloat64() * 40 {
			op := byte('M')
			switch random.IntN(12) {
			case 0:
				op = 'D'
			case 1:
				op = 'A'
			}
			events = append(events, event{"a", stamp(d), op})
		}
		pages := cut(append(events, event{"z", stamp(end), 'M'}), 1, 1)
		var want []page
		for n := 0; ; n++ {
			start := stamp(end) - int64(n+1)*year*daySeconds
			if start < 0 {
				break
			}
			if p, ok := checkEachDay(events, start); ok && len(p.changes) > 0 {
				p.window, p.half = n, halfOf("a")
				want = append(want, p)
			}
		}
		require.Equal(t, want, pages, "%v", events)
	}
}

// checkEachDay returns the page of the year from start on, if it existed all year.
func checkEachDay(events []event, start int64) (p page, lived bool) {
	alive := false
	for _, e := range events {
		inside := e.at >= start && e.at < start+year*daySeconds
		switch {
		case e.op == 'D':
			if inside && alive || inside && e.at == start {
				return p, false
			}
			alive = false
		case !alive:
			if e.at > start && e.at < start+year*daySeconds {
				return p, false
			}
			alive = true
		case inside:
			p.change(float64(e.at-start)/daySeconds, 1)
		}
	}
	return p, alive || existedAt(events, start+year*daySeconds)
}

// existedAt reports whether the page existed at a time.
func existedAt(events []event, at int64) bool {
	alive := false
	for _, e := range events {
		if e.at >= at {
			break
		}
		alive = e.op != 'D'
	}
	return alive
}

func FuzzParseLogKeepsOrder(f *testing.F) {
	f.Add("a\t1\tA\nb\t2\n")
	f.Add("# comment\n\na\t1e3\tM\textra\n")
	f.Add("a\t-5\n\tx\n")
	f.Fuzz(func(t *testing.T, text string) {
		events, err := parseLog(strings.NewReader(text))
		if err != nil {
			t.Skip()
		}
		for i, e := range events {
			if i > 0 && (events[i-1].page > e.page || events[i-1].page == e.page && events[i-1].at > e.at) {
				t.Fatalf("%q: %v comes before %v", text, events[i-1], e)
			}
		}
		if n := strings.Count(text, "\n") + 1; len(events) > n {
			t.Fatalf("%d events from %d lines", len(events), n)
		}
		for _, p := range cut(events, 1, 0) {
			for i, d := range p.changes {
				if d < 1 || d >= year || i > 0 && d <= p.changes[i-1] {
					t.Fatalf("%q: changes on days %v", text, p.changes)
				}
			}
		}
	})
}
