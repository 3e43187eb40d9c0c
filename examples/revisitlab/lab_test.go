package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/spinneret-go/spinneret/examples/internal/report"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/revisit"
)

func TestParseLog(t *testing.T) {
	const text = "# a comment\nb\t20\tM\n\na\t30\na\t10.5\tA\nb\t5\tA\tmore\n"
	events, err := parseLog(strings.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, []event{{"a", 10, 'A'}, {"a", 30, 'M'}, {"b", 5, 'A'}, {"b", 20, 'M'}}, events)

	for _, bad := range []string{"a 10", "a\tsoon", "a\t", "a\tNaN", "a\t1e300"} {
		_, err := parseLog(strings.NewReader("a\t1\n" + bad + "\n"))
		require.ErrorContains(t, err, "line 2", bad)
	}
}

func TestReadLogTakesBothForms(t *testing.T) {
	const text = "a\t10\tA\na\t20\tM\n"
	dir := t.TempDir()
	plainName, packedName := filepath.Join(dir, "log.tsv"), filepath.Join(dir, "log.tsv.zst")
	require.NoError(t, os.WriteFile(plainName, []byte(text), 0o600))
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(packedName, z.EncodeAll([]byte(text), nil), 0o600))
	want, err := readLog(plainName)
	require.NoError(t, err)
	got, err := readLog(packedName)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = readLog(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// stamp returns a day of the log as Unix seconds.
func stamp(day float64) int64 { return int64(day * daySeconds) }

func TestCut(t *testing.T) {
	// The log ends on day 800, so its windows begin on days 435 and 70.
	end := event{"z", stamp(800), 'M'}
	for _, tt := range []struct {
		name   string
		events []event
		want   []page
	}{
		{
			"a page of a year counts once",
			[]event{{"a", stamp(400), 'A'}, {"a", stamp(440.2), 'M'}, {"a", stamp(500.9), 'M'}},
			[]page{{changes: []float64{5, 65}}},
		},
		{
			"changes of one day count once, and those of the first day not",
			[]event{
				{"a", 0, 'A'}, {"a", stamp(435.5), 'M'}, {"a", stamp(440.2), 'M'}, {"a", stamp(440.8), 'M'},
			},
			[]page{{changes: []float64{5}}},
		},
		{
			"a page of two years counts twice",
			[]event{{"a", 0, 'A'}, {"a", stamp(80), 'M'}, {"a", stamp(445), 'M'}},
			[]page{{changes: []float64{10}}, {changes: []float64{10}, window: 1}},
		},
		{
			"one deleted or added within the year does not count",
			[]event{
				{"a", 0, 'A'}, {"a", stamp(80), 'M'}, {"a", stamp(300), 'D'},
				{"a", stamp(500), 'A'}, {"a", stamp(600), 'M'},
			},
			nil,
		},
		{
			"one that came back counts again",
			[]event{{"a", 0, 'A'}, {"a", stamp(300), 'D'}, {"a", stamp(400), 'A'}, {"a", stamp(600), 'M'}},
			[]page{{changes: []float64{165}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i := range tt.want {
				tt.want[i].half = halfOf("a")
			}
			require.Equal(t, tt.want, cut(append(tt.events, end), 1, 1))
		})
	}
}

func TestCutAtFinerSteps(t *testing.T) {
	events := []event{
		{"a", 0, 'A'}, {"a", stamp(40.1), 'M'}, {"a", stamp(40.6), 'M'}, {"z", stamp(365), 'M'},
	}
	pages := cut(events, 0.25, 1)
	require.Equal(t, []page{{changes: []float64{40, 40.5}, half: halfOf("a")}}, pages)
}

func TestVisitsCatchTheNewestVersionOnly(t *testing.T) {
	p := page{changes: []float64{1, 2, 9, 40}}
	s := plain("", revisit.Every(10*day))
	tracks := lab{step: 1}.simulate([]page{p}, &s)
	require.Equal(t, 36, tracks[0].visits, "the first one does not count")
	require.Equal(t, 2, tracks[0].captured, "day 9 on day 10, and day 40 on day 40")
	require.EqualValues(t, 1, tracks[0].months[0])
	require.EqualValues(t, 1, tracks[0].months[1])
}

func TestADailyVisitCatchesEverything(t *testing.T) {
	s := plain("", revisit.Every(0))
	for _, tr := range (lab{step: 1}).simulate(synthesize(50, 2, 1, 7), &s) {
		require.Equal(t, len(tr.page.changes), tr.captured)
		require.Equal(t, year-1, tr.visits)
	}
}

// naive is a straightforward simulation: day by day, at whole intervals.
func naive(p page, every int) (visits, captured int) {
	seen := 0
	for d := 1; d < year; d++ {
		if d%every != 0 {
			continue
		}
		visits++
		now := 0
		for _, c := range p.changes {
			if c <= float64(d) {
				now++
			}
		}
		if now > seen {
			captured++
		}
		seen = now
	}
	return visits, captured
}

func TestSimulationAgreesWithANaiveOne(t *testing.T) {
	pages := synthesize(60, 0, 1, 3)
	for _, every := range []int{1, 3, 7, 50, 364} {
		s := plain("", revisit.Every(time.Duration(every)*day))
		for _, tr := range (lab{step: 1}).simulate(pages, &s) {
			visits, captured := naive(*tr.page, every)
			require.Equal(t, visits, tr.visits, "every %d days", every)
			require.Equal(t, captured, tr.captured, "every %d days", every)
		}
	}
}

func TestLearningUsesThePast(t *testing.T) {
	pages := synthesize(20, 2, 1, 5)
	var days []float64
	s := plain("", revisit.Every(5*day))
	s.learn = func(seen []track) chooser {
		require.Len(t, seen, len(pages))
		latest := 0.0
		for i := range seen {
			latest = max(latest, seen[i].last)
		}
		days = append(days, latest)
		return s.next
	}
	lab{step: 1}.simulate(pages, &s)
	require.Equal(t, []float64{25, 55, 115, 235}, days)
}

func TestScoresDoNotDependOnTheOrderOfWork(t *testing.T) {
	pages := synthesize(100, 2, 1, 9)
	policies := paperPolicies()
	once := lab{step: 1}.simulateAll(pages, policies, func(float64) {})
	again := lab{step: 1}.simulateAll(pages, policies, func(float64) {})
	for i := range once {
		require.Equal(t, once[i].captured, again[i].captured, policies[i].name)
		require.Equal(t, once[i].visits, again[i].visits, policies[i].name)
		require.Equal(t, len(pages), once[i].pages)
		total := sums{}
		for b := range bins {
			total.add(&once[i].bins[b])
		}
		require.Equal(t, once[i].captured, total.captured, "the bins contain all pages")
		caught := 0
		for _, n := range once[i].months {
			caught += n
		}
		require.Equal(t, once[i].captured, caught, "the months contain all versions")
	}
}

func TestBinsAreThePapers(t *testing.T) {
	for _, tt := range []struct {
		gap  float64
		bin  int
		days float64
	}{
		{1, 1, 1}, {29.4, 29, 29}, {30, 30, 35}, {99, 36, 95}, {100, 37, 115}, {129, 37, 115},
		{130, 38, 145}, {365, bins - 1, 355},
	} {
		require.Equal(t, tt.bin, binOf(tt.gap), "%v", tt.gap)
		require.Equal(t, tt.days, binDays(tt.bin), "%v", tt.gap)
	}
}

func TestCurvesAreReadAtEqualCost(t *testing.T) {
	point := func(visits, captured int) score {
		return score{sums: sums{pages: 1, visits: visits, versions: 100, captured: captured}}
	}
	c := curve{"c", []score{point(10, 20), point(40, 60)}}
	require.InDelta(t, 0.2, c.at(10, (*sums).micro), 1e-9)
	require.InDelta(t, 0.2+0.4/3, c.at(20, (*sums).micro), 1e-9, "a third of the way")
	require.InDelta(t, 0.6, c.at(40, (*sums).micro), 1e-9)
	require.True(t, math.IsNaN(c.at(9, (*sums).micro)))
	require.True(t, math.IsNaN(c.at(41, (*sums).micro)))
	oracle := curve{"o", []score{point(10, 50), point(40, 90)}}
	base := curve{"b", []score{point(10, 10), point(40, 30)}}
	require.InDelta(t, 0.25, gapClosed(c, base, oracle, 10, (*sums).micro), 1e-9)
}

func TestTheOracleIsHardToBeat(t *testing.T) {
	pages := synthesize(50, 2, 1, 11)
	curves := lab{step: 1}.curves(pages, families(), func(float64) {})
	require.Equal(t, "Bayes", curves[ofBayes].name)
	require.Equal(t, "rate oracle", curves[ofOracle].name)
	require.Equal(t, "Bayes.pool", curves[ofPool].name)
	for _, c := range curves[:ofOracle] {
		for _, visits := range []float64{60, 100} {
			of := c.at(visits, (*sums).micro)
			if !math.IsNaN(of) {
				require.Less(t, of, curves[ofOracle].at(visits, (*sums).micro)+0.01, c.name)
			}
		}
	}
}

func TestThePacedOracleVisitsEachPageOncePerInterval(t *testing.T) {
	s := paced()
	for _, tr := range (lab{step: 1}).simulate(synthesize(100, 2, 1, 12), &s) {
		n := len(tr.page.changes)
		require.InDelta(t, n, tr.visits, 1.01, "%d versions", n)
		require.LessOrEqual(t, tr.captured, n)
	}
}

func TestServersHaveAllPages(t *testing.T) {
	pages := synthesize(3000, 0, 1, 2)
	sizes, total := map[int]int{}, 0
	for _, s := range servers(pages) {
		sizes[len(s)]++
		total += len(s)
	}
	require.Equal(t, len(pages), total)
	require.Greater(t, len(sizes), 5)
}

func TestNoOrderExceedsWhatServersAdmit(t *testing.T) {
	pages := synthesize(150, 2, 1, 4)
	l := lab{step: 1}
	admitted := 0.0
	for _, s := range servers(pages) {
		admitted += 0.5*l.demand(s, orders(1)[0].next)*year + 1
	}
	all := orders(0.3)
	scores, unused := l.overload(pages, 0.5, all)
	for i := range scores {
		// The first visits are not in the count.
		require.LessOrEqual(t, float64(scores[i].visits), admitted, all[i].name)
		require.Positive(t, scores[i].captured)
		require.GreaterOrEqual(t, unused[i], 0.0)
	}
	require.Equal(t, "Bayes, first come", all[ofCome].name)
	require.Equal(t, "Bayes, most worthy of all", all[5].name)
	stretched, worthy := scores[3], scores[5]
	require.Greater(t, unused[3], unused[5], "one factor for all leaves visits unused")
	require.Less(t, unused[5], 0.01)
	require.Greater(t, worthy.micro(), stretched.micro())
}

func TestBayesIsPricedForTheSameDemand(t *testing.T) {
	pages := synthesize(60, 2, 1, 6)
	l := lab{step: 1}
	price := l.priceFor(pages)
	demand := l.demand(pages, plain("", revisit.MLE{}).next)
	require.InEpsilon(t, demand, l.demand(pages, plain("", revisit.Bayes{Price: price}).next), 0.03)
}

func TestClaimsAreChecked(t *testing.T) {
	scores := map[string]*score{}
	for _, p := range paperPolicies() {
		s := score{sums: sums{
			pages: 10, visits: 10, versions: 10, captured: 9, coverage: 9, efficiency: 5,
		}}
		scores[p.name] = &s
	}
	verdicts := map[string]string{}
	for _, c := range claims(scores) {
		verdicts[c.text] = c.verdict()
	}
	require.Equal(t, "holds", verdicts["coverage about 0.9 at an efficiency about 0.5 (Fig. 5)"])
	require.Equal(t, "no such pages", verdicts["AIMD misses more versions of daily pages (Fig. 8)"])

	scores["AIMD(1, 0.5)"].bins[1] = sums{pages: 1, versions: 300, captured: 100}
	scores["MLE.mix(0.1-10)"].bins[1] = sums{pages: 1, versions: 300, captured: 290}
	for _, c := range claims(scores) {
		if c.text == "AIMD misses more versions of daily pages (Fig. 8)" {
			require.Equal(t, "holds", c.verdict())
			require.Equal(t, "missed: AIMD 200, MLE.mix 10", c.seen)
		}
	}
}

// TestSeriesAreDistinguishable checks that a plot can distinguish all policies.
func TestSeriesAreDistinguishable(t *testing.T) {
	require.LessOrEqual(t, len(paperPolicies()), report.Series)
	require.LessOrEqual(t, len(families()), report.Series)
}

func TestRunWritesEverything(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	for n := range 12 {
		fmt.Fprintf(&log, "p%d\t0\tA\n", n)
		for d := 1 + n%7; d < 400; d += 1 + n {
			fmt.Fprintf(&log, "p%d\t%d\tM\n", n, stamp(float64(d)))
		}
	}
	name := filepath.Join(dir, "small.tsv")
	require.NoError(t, os.WriteFile(name, []byte(log.String()), 0o600))

	var out, errs bytes.Buffer
	args := []string{"-out", dir, "-synthetic", "15", "-modified", "-exact", "-overload", name}
	require.NoError(t, run(args, &out, &errs))
	require.Empty(t, errs.String())
	for _, word := range []string{
		"# synthetic: 15 pages", "# small: 12 pages", "MLE.full", "Fig. 9", "gap to the oracle",
		"most worthy of all",
	} {
		require.Contains(t, out.String(), word)
	}
	tables, err := os.ReadFile(filepath.Join(dir, "tables.md"))
	require.NoError(t, err)
	require.Contains(t, string(tables), "| log | visits |")
	require.Contains(t, string(tables), "theory, known rates")
	for _, log := range []string{"synthetic", "small"} {
		figures, err := filepath.Glob(filepath.Join(dir, log, "*.svg"))
		require.NoError(t, err)
		require.Len(t, figures, 8)
		for _, table := range []string{"policies.csv", "curves.csv"} {
			f, err := os.Open(filepath.Join(dir, log, table))
			require.NoError(t, err)
			rows, err := csv.NewReader(f).ReadAll()
			require.NoError(t, err)
			require.NoError(t, f.Close())
			require.Greater(t, len(rows), 10)
		}
	}
}

func TestRunTakesSomePolicies(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-synthetic", "20", "-curves=false", "-policies", "^(Bayes|CGM)$"}
	require.NoError(t, run(args, &out, io.Discard))
	require.Contains(t, out.String(), "CGM")
	require.NotContains(t, out.String(), "MLE")
	require.NotContains(t, out.String(), "claim")
}

func TestRunRefusesInvalidArguments(t *testing.T) {
	for _, args := range [][]string{
		{"-no-such-flag"}, {"-resolution", "0s", "x"}, {"-resolution", "9999h", "x"},
		{"-half", "3", "x"}, {"-half", "-1", "x"}, {"-choose", "-half", "1", "x"},
		{"-policies", "(", "x"}, {"-synthetic", "9", "-policies", "no such"},
		{filepath.Join(t.TempDir(), "none")},
	} {
		require.Error(t, run(args, io.Discard, io.Discard), "%v", args)
	}
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, run([]string{"-synthetic", "9", "-out", file}, &out, io.Discard), "-out: ")
	require.Zero(t, out.Len(), "it is known before any work")
}

func TestAHalfWithoutPagesWritesNothing(t *testing.T) {
	out := filepath.Join(t.TempDir(), "none")
	var errs bytes.Buffer
	args := []string{"-synthetic", "1", "-half", "2", "-out", out}
	require.NoError(t, run(args, io.Discard, &errs))
	require.Contains(t, errs.String(), "no page in half 2")
	files, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestImpossiblePagesAreNotGenerated(t *testing.T) {
	require.Empty(t, synthesize(9, 365, 1, 1), "a year has 364 days after the first one")
	require.Len(t, synthesize(9, 200, 1, 1), 9, "one draw in thirteen has so many")
	var errs bytes.Buffer
	require.NoError(t, run([]string{"-synthetic", "9", "-least", "400"}, io.Discard, &errs))
	require.Contains(t, errs.String(), "synthetic: no page existed for a year with 400 changes")
}

func TestTooShortPagesAreReported(t *testing.T) {
	name := filepath.Join(t.TempDir(), "short.tsv")
	require.NoError(t, os.WriteFile(name, []byte("a\t0\tA\na\t100\tM\n"), 0o600))
	var errs bytes.Buffer
	require.NoError(t, run([]string{name}, io.Discard, &errs))
	require.Contains(t, errs.String(), "no page existed for a year")
}

// On real logs, Bayes catches more than the paper's method at the paper's own cost.
func TestRealLogs(t *testing.T) {
	data := os.Getenv("SPINNERET_DATA")
	if data == "" {
		data = filepath.Join("..", "..", "..", "shared", "data")
	}
	for _, name := range []string{"ota-pga", "scoop-main"} {
		t.Run(name, func(t *testing.T) {
			events, err := readLog(filepath.Join(data, "changes", name+".tsv.zst"))
			if os.IsNotExist(err) {
				t.Skip("no real change logs: set SPINNERET_DATA to the directory that contains changes/")
			}
			require.NoError(t, err)
			pages := thin(cut(events, 1, 2), 150)
			all := families()
			curves := lab{step: 1}.curves(pages, []family{all[ofMLE], all[ofBayes]}, func(float64) {})
			cost := curves[0].points[4].perPage() // half the mean interval
			mle, bayes := curves[0].at(cost, (*sums).micro), curves[1].at(cost, (*sums).micro)
			require.Greater(t, bayes, mle+0.03, "at %.0f visits", cost)
		})
	}
}

func BenchmarkYear(b *testing.B) {
	pages := synthesize(1000, 2, 1, 1)
	for _, s := range []strategy{plain("MLE.mix", revisit.MLE{}), plain("Bayes", revisit.Bayes{})} {
		b.Run("policy="+s.name, func(b *testing.B) {
			b.ReportAllocs()
			visits := 0
			for b.Loop() {
				for _, t := range (lab{step: 1}).simulate(pages, &s) {
					visits += t.visits
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(visits), "ns/visit")
			b.ReportMetric(float64(len(pages)*b.N)/b.Elapsed().Seconds(), "pages/s")
		})
	}
}

func TestWithoutArgumentsALogIsGenerated(t *testing.T) {
	s, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, defaultPages, s.synthetic)
	s, err = parse([]string{"log.tsv"}, io.Discard)
	require.NoError(t, err)
	require.Zero(t, s.synthetic)
	_, err = parse([]string{"-synthetic", "-1"}, io.Discard)
	require.Error(t, err)
}
