package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/report"
	"github.com/spinneret-go/spinneret/revisit"
	"github.com/spinneret-go/spinneret/revisit/optimal"
)

func TestASiteIsTheHostIfKnown(t *testing.T) {
	for _, tt := range []struct{ page, site string }{
		{"http://a.test/x", "a.test"},
		{"https://A.test", "a.test"},
		{"https://a.test?q=1", "a.test"},
		{"a.test/x/y", "a.test"},
		{"a.test", "a.test"},
		{"manual.xml", "manual.xml"},
		{"en/manual.xml", "en/manual.xml"},
		{"4711", "4711"},
		{"", ""},
	} {
		require.Equal(t, tt.site, siteOf(tt.page), "%q", tt.page)
	}
}

func TestPagesOfASiteFallIntoOneHalf(t *testing.T) {
	const n = 2000
	first := 0
	for i := range n {
		home, deep := fmt.Sprintf("http://h%d.test/", i), fmt.Sprintf("http://h%d.test/a/b", i)
		require.Equal(t, halfOf(home), halfOf(deep))
		if halfOf(home) == 1 {
			first++
		}
	}
	require.InDelta(t, n/2, first, 4*math.Sqrt(n)/2, "the halves have about the same size")
	first = 0
	for i := range n {
		first += 2 - halfOf(fmt.Sprint(i))
	}
	require.InDelta(t, n/2, first, 4*math.Sqrt(n)/2, "also if page names are numbers")
}

// The results in the README depend on the division into halves, so it must not change.
func TestTheHalvesDoNotChange(t *testing.T) {
	var halves string
	for i := range 16 {
		halves += fmt.Sprint(halfOf(fmt.Sprint(i)))
	}
	require.Equal(t, "1111111111222222", halves)
}

func TestHalvesMakeTheWhole(t *testing.T) {
	pages := synthesize(101, 2, 1, 1)
	one, two := ofHalf(pages, 1), ofHalf(pages, 2)
	require.Len(t, one, 51)
	require.Len(t, two, 50)
	require.Equal(t, pages, ofHalf(pages, 0))
	for i := range two {
		require.Equal(t, pages[2*i+1], two[i])
	}
}

// TestTheModelIsBayes checks that numbers chosen with the model are valid for the library.
func TestTheModelIsBayes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	logs := 0.0
	const rounds = 400
	for range rounds {
		price := 0.1 + 0.8*random.Float64()
		rate, every := math.Exp2(-7*random.Float64()), 1+20*random.Float64()
		model := &track{}
		s := modelled(chosen, price)
		s.next(model)
		model.history = model.history.Observe(revisit.Visit{At: at(0)})
		now := 0.0
		for range random.IntN(40) {
			now += every
			changed := random.Float64() < -math.Expm1(-rate*every)
			model.history = model.history.Observe(revisit.Visit{At: at(now), Changed: changed})
			model.gaps = []optimal.Gap{{Length: duration(every), Changed: changed}}
			s.next(model)
		}
		want := inDays(revisit.Bayes{Price: price}.Next(model.history))
		got := model.belief.wait(chosen, price)
		require.Less(t, math.Abs(math.Log(got/want)), math.Ln2, "%+v at %v", model.history, price)
		logs += math.Abs(math.Log(got / want))
	}
	require.Less(t, logs/rounds, 0.12, "the mean difference, as a share of the interval")
}

func TestTheModelPerformsLikeBayes(t *testing.T) {
	pages := synthesize(150, 2, 1, 4)
	of := func(s strategy) score {
		return lab{step: 1}.simulateAll(pages, []strategy{s}, func(float64) {})[0]
	}
	for _, price := range []float64{0.3, 0.7} {
		own, model := of(plain("", revisit.Bayes{Price: price})), of(modelled(chosen, price))
		require.InEpsilon(t, own.perPage(), model.perPage(), 0.08, "visits at %v", price)
		require.InDelta(t, own.micro(), model.micro(), 0.02, "versions at %v", price)
	}
}

func TestTheModelsNumbersHaveTheirEffects(t *testing.T) {
	wait := func(n numbers, gaps ...float64) float64 {
		b := belief{}
		for _, g := range gaps { // a negative gap ends with a change
			b.observe(math.Abs(g), g < 0, n.wake)
		}
		return b.wait(n, 0.5)
	}
	slow := []float64{40, 40, -40, 40, 40}
	with := func(change func(*numbers)) numbers {
		n := chosen
		change(&n)
		return n
	}
	usual := wait(chosen, slow...)
	require.Less(t, wait(with(func(n *numbers) { n.fair = 1 }), slow...), usual)
	require.Greater(t, wait(with(func(n *numbers) { n.fair = 1e6 }), slow...), usual)

	quiet := []float64{20, 20, 20, 20, 20, 20}
	require.Greater(t, wait(with(func(n *numbers) { n.trust = 1 }), quiet...), wait(chosen, quiet...))

	changes := []float64{-3, 3, -3, 3, -3, 3, -3, 3, 3, 3}
	rest := with(func(n *numbers) { n.steady = 0 })
	require.NotEqual(t, wait(rest, changes...), wait(chosen, changes...))
	require.Equal(t, wait(rest, slow...), usual, "one change is too few for the sums")
}

// A page that was quiet for long may still start to change.
func TestTheModelForgets(t *testing.T) {
	const fastest = modelRates - 1
	last := math.Inf(1)
	for _, wake := range []float64{1e-6, 1e-4, 1e-2} {
		b := belief{}
		for range 20 {
			b.observe(60, false, wake)
		}
		b.observe(1, true, wake)
		// Of 20 quiet intervals, only the evidence against waking in the last day remains.
		require.InDelta(t, math.Log2(1/wake), b.bits[fastest]-b.bits[0]+math.Log2(1024), 1.2, "%v", wake)
		require.Less(t, b.bits[fastest], last)
		last = b.bits[fastest]
	}
}

func TestAnExcessivePriceWaitsLongest(t *testing.T) {
	b := belief{}
	require.EqualValues(t, year, b.wait(chosen, 1e9))
	require.EqualValues(t, 1, b.wait(chosen, 1e-12))
}

func TestLossesReduceTheScore(t *testing.T) {
	v := verdict{rivals: 0.02, least: -worst}
	require.InDelta(t, 0.02, v.score(), 1e-12)
	v.least -= 0.003
	require.InDelta(t, -0.01, v.score(), 1e-12)
}

func TestATrialKnowsTheBestRival(t *testing.T) {
	pages := synthesize(15, 2, 1, 2)
	made := lab{step: 1}.try("made", pages)
	require.Len(t, made.costs, len(summaryAlphas))
	for i, visits := range made.costs {
		require.InDelta(t, made.base.at(visits, (*sums).micro), made.best[0][i], 0.3)
		for m, of := range measures {
			require.GreaterOrEqual(t, made.best[m][i], made.base.at(visits, of))
		}
	}
	v := lab{step: 1}.evaluate(chosen, []*trial{made})
	require.Greater(t, v.paper, -0.05)
	require.LessOrEqual(t, v.least, v.paper)
	require.Less(t, v.rivals, (v.paper+v.mean)/2+1e-9, "the best rival is at least as good as MLE.mix")
}

func TestTheChoiceIsTheBestSeen(t *testing.T) {
	pages := synthesize(6, 2, 30, 3)
	l := lab{step: 30} // few visits, to be fast
	trials := []*trial{l.try("made", pages)}
	var out bytes.Buffer
	share := 0.0
	n := l.choose(trials, report.NewPrinter(&out), func(s float64) { share = s })
	require.EqualValues(t, 1, share)
	best := math.Inf(-1)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
	for _, line := range lines {
		fields := strings.Fields(line)
		var score float64
		_, err := fmt.Sscan(fields[len(fields)-1], &score)
		require.NoError(t, err, line)
		best = max(best, score)
	}
	best = max(best, l.evaluate(plainest(), trials).score())
	require.InDelta(t, best, l.evaluate(n, trials).score(), 1e-4)
}

func TestRunChoosesAndEvaluates(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-synthetic", "8", "-choose", "-resolution", "720h"}
	require.NoError(t, run(args, &out, io.Discard))
	for _, word := range []string{
		"# chosen on half 1", "# chosen on half 2", "# evaluated", "the library's", "the plainest",
	} {
		require.Contains(t, out.String(), word)
	}
	require.NotContains(t, out.String(), "NaN")
}

func TestAChoiceNeedsBothHalves(t *testing.T) {
	sets := []set{{"made", ofHalf(synthesize(6, 2, 30, 1), 1)}}
	s := settings{resolution: 30 * day}
	require.ErrorContains(t, s.chooseAndEvaluate(sets[:0], io.Discard, io.Discard), "half 1")
	require.ErrorContains(t, s.chooseAndEvaluate(sets, io.Discard, io.Discard), "half 2")
}

func TestRunTakesAHalf(t *testing.T) {
	var log strings.Builder
	for n := range 40 {
		fmt.Fprintf(&log, "%d\t0\tA\n", n)
		for d := 1 + n%7; d < 400; d += 9 {
			fmt.Fprintf(&log, "%d\t%d\tM\n", n, stamp(float64(d)))
		}
	}
	name := filepath.Join(t.TempDir(), "small.tsv")
	require.NoError(t, os.WriteFile(name, []byte(log.String()), 0o600))
	var pages [3]int
	for half := range pages {
		var out bytes.Buffer
		args := []string{"-curves=false", "-policies", "^CGM$", "-half", fmt.Sprint(half), name}
		require.NoError(t, run(args, &out, io.Discard))
		_, err := fmt.Sscanf(out.String(), "\n# small: %d pages", &pages[half])
		require.NoError(t, err)
	}
	require.Equal(t, pages[0], pages[1]+pages[2])
	require.NotZero(t, pages[1]*pages[2])
}
