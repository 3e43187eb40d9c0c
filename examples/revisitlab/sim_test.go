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
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/report"
	"github.com/spinneret-go/spinneret/revisit"
)

func TestThinTakesPagesEvenly(t *testing.T) {
	pages := make([]page, 100)
	for i := range pages {
		pages[i].window = i
	}
	require.Len(t, thin(pages, 0), 100, "0 means all")
	require.Len(t, thin(pages, 200), 100)
	some := thin(pages, 30)
	require.Len(t, some, 30)
	for i := range some[1:] {
		require.InDelta(t, 100.0/30, some[i+1].window-some[i].window, 1)
	}
}

// TestVisitsMayComeSeveralTimesADay compares visits by the hour with a count by hand.
func TestVisitsMayComeSeveralTimesADay(t *testing.T) {
	p := page{}
	for _, hour := range []float64{2, 5, 7, 30, 31} {
		p.change(hour/24, 1.0/24)
	}
	require.Len(t, p.changes, 5)
	s := plain("", revisit.Every(6*time.Hour))
	tr := lab{step: 1.0 / 24}.simulate([]page{p}, &s)[0]
	require.Equal(t, 365*4-1, tr.visits)
	// Hours 2 and 5 on 6, 7 on 12, 30 on 30 and 31 on 36.
	require.Equal(t, 4, tr.captured)
}

func TestIntervalsNeverFallBelowTheStep(t *testing.T) {
	s := strategy{name: "eager", next: func(*track) float64 { return 0 }}
	for _, step := range []float64{1, 5} {
		tr := lab{step: step}.simulate([]page{{}}, &s)[0]
		require.Equal(t, int(math.Ceil(year/step))-1, tr.visits)
	}
}

// A month has more minutes than 16 bits can count.
func TestAPageMayChangeEveryMinute(t *testing.T) {
	const minute = 1.0 / (24 * 60)
	p := page{}
	for n := range year * 24 * 60 {
		p.changes = append(p.changes, float64(n+1)*minute)
	}
	s := plain("", revisit.Every(time.Minute))
	tr := lab{step: minute}.simulate([]page{p}, &s)[0]
	sum := 0
	for _, n := range tr.months {
		require.Positive(t, n)
		sum += int(n)
	}
	require.Equal(t, tr.captured, sum)
}

// With the times of changes, the same visits give different evidence.
func TestServersMaySendLastModified(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	p := poissonPage(random, 3, 1)
	s := plain("", revisit.Every(20*day))
	blind := lab{step: 1}.simulate([]page{p}, &s)[0]
	told := lab{step: 1, modified: true}.simulate([]page{p}, &s)[0]
	require.Equal(t, blind.captured, told.captured, "the visits are the same")
	require.NotEqual(t, blind.history, told.history)
	require.NotEqual(t, revisit.MLE{}.Next(blind.history), revisit.MLE{}.Next(told.history))
}

func TestMonthsAreTwelve(t *testing.T) {
	require.Zero(t, monthOf(0))
	require.Equal(t, 11, monthOf(364.9))
	seen := map[int]bool{}
	for d := range year {
		seen[monthOf(float64(d))] = true
	}
	require.Len(t, seen, months)
}

func TestSynthesizedPagesAreLikeFigure4(t *testing.T) {
	pages := synthesize(4000, 2, 1, 1)
	daily, slow := 0, 0
	for i := range pages {
		require.GreaterOrEqual(t, len(pages[i].changes), 2)
		switch gap := pages[i].gap(); {
		case gap < 2:
			daily++
		case gap > 60:
			slow++
		}
	}
	require.InDelta(t, 0.25, float64(daily)/4000, 0.1, "a peak at a day")
	require.InDelta(t, 0.1, float64(slow)/4000, 0.05, "and a thin tail")
	require.Equal(t, pages, synthesize(4000, 2, 1, 1), "the same seed makes the same pages")
	require.NotEqual(t, pages, synthesize(4000, 2, 1, 2))
}

func TestMarginsShrinkWithPages(t *testing.T) {
	of := func(n int) float64 {
		var s score
		for i := range n {
			tr := track{page: &page{changes: []float64{1, 2}}, visits: 3, captured: i % 3}
			s.addTrack(&tr)
		}
		return s.margin()
	}
	require.InEpsilon(t, of(300)/10, of(30_000), 0.01)
	one := score{}
	one.addTrack(&track{page: &page{}, visits: 4})
	require.Zero(t, one.margin())
	require.InDelta(t, 1, one.macro(), 1e-9, "a page without versions is covered")
	require.Zero(t, one.useful(), "and all visits to it are useless")
}

func TestBothHalvesTogetherAreTheLog(t *testing.T) {
	var log strings.Builder
	random := rand.New(rand.NewPCG(5, 0))
	for n := range 60 {
		fmt.Fprintf(&log, "h%d.test/x\t0\tA\n", n)
		for d := random.ExpFloat64() * 20; d < 800; d += random.ExpFloat64() * 20 {
			fmt.Fprintf(&log, "h%d.test/x\t%d\tM\n", n, stamp(d))
		}
	}
	events, err := parseLog(strings.NewReader(log.String()))
	require.NoError(t, err)
	pages := cut(events, 1, 2)
	s := plain("", revisit.Bayes{})
	var sums [3]score
	for half := range sums {
		sums[half] = lab{step: 1}.simulateAll(ofHalf(pages, half), []strategy{s}, func(float64) {})[0]
	}
	require.Equal(t, sums[0].captured, sums[1].captured+sums[2].captured)
	require.Equal(t, sums[0].visits, sums[1].visits+sums[2].visits)
	require.Positive(t, sums[1].pages)
	require.Positive(t, sums[2].pages)
}

func TestCurvesArePrintedWhereDefined(t *testing.T) {
	require.Equal(t, "-", cell(math.NaN(), 1))
	require.Equal(t, "0.500 (-0.100)", cell(0.5, 0.6))
	require.Equal(t, "-", share(math.NaN()))
	require.Equal(t, "0.50", share(0.5))

	pages := synthesize(20, 2, 1, 4)
	r := result{name: "made", pages: pages}
	r.curves = lab{step: 1}.curves(pages, families(), func(float64) {})
	var out bytes.Buffer
	r.printAllCurves(report.NewPrinter(&out))
	for _, f := range families() {
		require.Equal(t, 2, strings.Count(out.String(), "\n"+f.name+"  "), f.name)
	}
	require.NotContains(t, out.String(), "NaN")
	require.Len(t, r.costs(), len(mleAlphas))
}

func TestRunWithoutCurvesStillWritesTables(t *testing.T) {
	dir := t.TempDir()
	args := []string{"-synthetic", "20", "-curves=false", "-out", dir}
	require.NoError(t, run(args, io.Discard, io.Discard))
	tables, err := os.ReadFile(filepath.Join(dir, "tables.md"))
	require.NoError(t, err)
	require.Contains(t, string(tables), "| claim | synthetic |")
	require.NotContains(t, string(tables), "gap closed")
}

// full is a writer that fails after some bytes, like a full disk.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestRunReportsAFullDisk(t *testing.T) {
	for _, left := range []int{0, 300, 3000} {
		err := run([]string{"-synthetic", "6", "-overload"}, &full{left}, io.Discard)
		require.ErrorIs(t, err, io.ErrShortWrite, "after %d bytes", left)
	}
	require.Error(t, run([]string{"-synthetic", "6", "-out", "/dev/null/x"}, io.Discard, io.Discard))
}

func TestBrokenLogsAreNamed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "broken.tsv.zst")
	require.NoError(t, os.WriteFile(name, []byte("not zstd"), 0o600))
	require.Error(t, run([]string{name}, io.Discard, io.Discard))
	name = filepath.Join(t.TempDir(), "broken.tsv")
	require.NoError(t, os.WriteFile(name, []byte("a\tnever\n"), 0o600))
	require.ErrorContains(t, run([]string{name}, io.Discard, io.Discard), "broken.tsv: line 1")
}
