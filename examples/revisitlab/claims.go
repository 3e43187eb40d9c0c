package main

import (
	"fmt"
	"math"
)

// A claim is a sentence of the paper, and whether it holds for a log.
type claim struct {
	text  string
	holds bool
	seen  string // the figures that decided
	brief string // the same for a narrow table; "" if yes or no is enough
	void  bool   // the log has no such pages
}

func (c *claim) verdict() string {
	switch {
	case c.void:
		return "no such pages"
	case c.holds:
		return "holds"
	default:
		return "does not hold"
	}
}

// claims checks the claims against the scores of paperPolicies.
func claims(scores map[string]*score) []claim {
	mix, low, avg := scores["MLE.mix(0.1-10)"], scores["MLE.min(0.1-10)"], scores["MLE.avg(0.1-10)"]
	half, narrow := scores["MLE.mix(0.1-10) x0.5"], scores["MLE.mix(0.5-2)"]
	aimd := scores["AIMD(1, 0.5)"]
	best := math.Max(half.macro(), aimd.macro())
	all := []claim{
		{
			text:  "coverage about 0.9 at an efficiency about 0.5 (Fig. 5)",
			holds: best > 0.8 && mix.useful() > 0.4,
			seen: fmt.Sprintf("MLE.mix %.2f/%.2f, x0.5 %.2f/%.2f, AIMD %.2f/%.2f", mix.macro(), mix.useful(),
				half.macro(), half.useful(), aimd.macro(), aimd.useful()),
		},
		{
			text:  "mix misses little of min's coverage and is more efficient (Figs. 6, 7)",
			holds: mix.macro() > low.macro()-0.06 && mix.useful() > low.useful(),
			seen: fmt.Sprintf("coverage min %.3f mix %.3f avg %.3f, efficiency %.3f %.3f %.3f", low.macro(),
				mix.macro(), avg.macro(), low.useful(), mix.useful(), avg.useful()),
		},
	}
	slowMix, slowNarrow, slowAIMD := slowEfficiency(mix), slowEfficiency(narrow), slowEfficiency(aimd)
	fastMissed := func(s *score) int { return s.bins[1].versions - s.bins[1].captured }
	mixRise, aimdRise := rise(mix), rise(aimd)
	return append(all,
		claim{
			text:  "MLE(0.1-10) keeps an efficiency of 0.2 to 0.4 on slow pages (Fig. 7)",
			holds: slowMix >= 0.2 && slowMix <= 0.4, seen: fmt.Sprintf("%.2f above 100 days", slowMix),
			brief: fmt.Sprintf("%.2f", slowMix),
			void:  math.IsNaN(slowMix),
		},
		claim{
			text:  "AIMD and MLE(0.5-2) fall below 0.1 there",
			holds: slowAIMD < 0.1 && slowNarrow < 0.1,
			seen:  fmt.Sprintf("AIMD %.2f, MLE(0.5-2) %.2f", slowAIMD, slowNarrow),
			brief: fmt.Sprintf("%.2f, %.2f", slowAIMD, slowNarrow),
			void:  math.IsNaN(slowAIMD),
		},
		claim{
			text:  "AIMD misses more versions of daily pages (Fig. 8)",
			holds: fastMissed(aimd) > fastMissed(mix),
			seen:  fmt.Sprintf("missed: AIMD %d, MLE.mix %d", fastMissed(aimd), fastMissed(mix)),
			brief: fmt.Sprintf("%d : %d", fastMissed(aimd), fastMissed(mix)),
			void:  aimd.bins[1].pages == 0,
		},
		claim{
			text:  "MLE's coverage rises over the months, AIMD's falls (Fig. 9)",
			holds: mixRise > 0 && aimdRise < 0,
			seen:  fmt.Sprintf("last quarter minus first: MLE %+.3f, AIMD %+.3f", mixRise, aimdRise),
			brief: signed(mixRise) + ", " + signed(aimdRise),
		},
	)
}

// slowEfficiency is the mean efficiency on pages that change every 100 days or less often.
func slowEfficiency(s *score) float64 {
	var slow sums
	for b := dayBins + tenBins; b < bins; b++ {
		slow.add(&s.bins[b])
	}
	return slow.useful()
}

// rise is the coverage of the last three months minus that of the first three.
func rise(s *score) float64 { return s.quarter(months-3) - s.quarter(0) }

func (s *score) quarter(from int) float64 {
	caught, versions := 0, 0
	for m := from; m < from+3; m++ {
		caught += s.months[m]
		versions += s.versionM[m]
	}
	return float64(caught) / float64(versions)
}
