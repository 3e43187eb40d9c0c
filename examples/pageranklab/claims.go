package main

import (
	"fmt"
	"strings"
)

// A claim is a sentence of the paper, or one of ours, with the verdict for a graph.
type claim struct {
	text  string
	holds bool
	seen  string // the figures that decided
}

func (c *claim) verdict() string {
	if c.holds {
		return "holds"
	}
	return "does not hold"
}

// betterIn returns the criteria in which a is better than b, up to a slack.
func betterIn(a, b *score, slack float64) (names []string) {
	for k, better := range []bool{
		a.top[0] > b.top[0]-slack, a.top[1] > b.top[1]-slack, a.top[2] > b.top[2]-slack,
		a.sum > b.sum-slack, a.error < b.error+slack,
	} {
		if better {
			names = append(names, criteria[k])
		}
	}
	return names
}

var criteria = []string{"A 0.1 %", "A 1 %", "A 10 %", "B", "C"}

func listed(names []string) string {
	if len(names) == 0 {
		return "in none"
	}
	return "in " + strings.Join(names, ", ")
}

// paperClaims checks sections 4.4 and 4.5.
func (r *result) paperClaims() (all []claim) {
	ipr := r.scores[nameDL1]
	for _, other := range []string{nameBF, nameBLC, namePR} {
		better := betterIn(ipr, r.scores[other], 0)
		all = append(all, claim{
			text:  "IPR (DL1) is better than " + other + " in A, B and C (Figs. 4 to 8)",
			holds: len(better) == len(criteria), seen: listed(better),
		})
	}
	gain := func(name string) float64 { return r.scores[name].sum - ipr.sum }
	cost := func(name string) float64 { return r.updates[name] / r.updates[nameDL1] }
	all = append(all, claim{
		text:  "every cutoff gains over DL1, a little (Fig. 9)",
		holds: gain(namePL) > 0 && gain(nameVR) > 0 && gain(nameAR) > 0,
		seen: fmt.Sprintf("B: PL %+.4f, VR %+.4f, AR %+.4f", gain(namePL), gain(nameVR),
			gain(nameAR)),
	}, claim{
		text:  "VR and AR cost little, PL does not pay",
		holds: cost(nameVR) < 1.5 && cost(nameAR) < 1.5 && cost(namePL) > 2*max(cost(nameVR), cost(nameAR)),
		seen: fmt.Sprintf("updates, times DL1's: VR %.2f, AR %.2f, PL %.1f", cost(nameVR),
			cost(nameAR), cost(namePL)),
	})
	return append(all, r.speedClaims()...)
}

// speedClaims checks Figure 10. It returns none if speed was not measured.
func (r *result) speedClaims() []claim {
	if len(r.paces) == 0 {
		return nil
	}
	speed := map[string]float64{}
	for _, p := range r.paces {
		speed[p.name] = p.pages
	}
	first, last := r.growth[1], r.growth[8]
	return []claim{{
		text:  "PR has a third of IPR's speed (Fig. 10)",
		holds: speed[namePR] < speed[nameDL1]/2,
		seen:  fmt.Sprintf("DL1 %.3g pages/s, PR 1/%.0f of it", speed[nameDL1], speed[nameDL1]/speed[namePR]),
	}, {
		text:  "a page costs the same as the crawl grows",
		holds: last < 1.5*first,
		seen:  fmt.Sprintf("ns for each link in the 2nd and the 9th tenth: %.1f, %.1f", first, last),
	}}
}

// ownClaims checks our claims about Push.
func (r *result) ownClaims() []claim {
	push, dl1, oracle := r.scores[namePush], r.scores[nameDL1], r.scores[nameOracle]
	rivals := &score{error: 2}
	for _, name := range []string{nameDL1, nameAR, namePR} {
		s := r.scores[name]
		for k := range s.top {
			rivals.top[k] = max(rivals.top[k], s.top[k])
		}
	}
	shares := (push.sum - dl1.sum) / max(oracle.sum-dl1.sum, 1e-9)
	inA := 0
	for k, best := range rivals.top {
		if push.top[k] > best-0.005 {
			inA++
		}
	}
	cost := r.updates[namePush] / r.updates[nameDL1]
	c := func(name string) float64 { return r.scores[name].error }
	return []claim{{
		text: "Push closes at least 15 % of DL1's gap to the oracle in B", holds: shares >= 0.15,
		seen: fmt.Sprintf("%.0f %% of %.3f", 100*shares, oracle.sum-dl1.sum),
	}, {
		text:  "in C, Push beats AR 29/30, and PR",
		holds: c(namePush) < c(nameAR) && c(namePush) < c(namePR),
		seen:  fmt.Sprintf("Push %.3f, AR %.3f, PR %.3f", c(namePush), c(nameAR), c(namePR)),
	}, {
		text:  "in A, Push is within 0.005 of the best of DL1, AR and PR",
		holds: inA == nTops,
		seen: fmt.Sprintf("Push %.3f %.3f %.3f, best %.3f %.3f %.3f", push.top[0], push.top[1],
			push.top[2], rivals.top[0], rivals.top[1], rivals.top[2]),
	}, {
		text: "Push costs at most 1.505 times DL1's updates", holds: cost <= 1.505,
		seen: fmt.Sprintf("%.2f", cost),
	}, {
		text: "scores are within the stated error of Exact", holds: r.bound.holds(),
		seen: fmt.Sprintf("where they are closest: actual %.3f, stated %.3f", r.bound.actual, r.bound.stated),
	}, {
		text: "fetched pages have at least the stated mass", holds: r.bound.massHolds(),
		seen: fmt.Sprintf("halfway stated %.3f, refined %.3f (%.0f updates/page), true %.3f",
			r.bound.half, r.bound.refinedMass, r.bound.refineCost, r.bound.halfTrue),
	}}
}
