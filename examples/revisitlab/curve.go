package main

import (
	"cmp"
	"math"
	"slices"
)

// A curve is what one family reaches, from the cheapest to the dearest.
type curve struct {
	name   string
	points []score
}

// curves runs all families at once, so that all processors are busy.
func (l lab) curves(pages []page, families []family, done func(float64)) []curve {
	var all []strategy
	for _, f := range families {
		all = append(all, f.strategies...)
	}
	scores := l.simulateAll(pages, all, done)
	var out []curve
	for _, f := range families {
		n := len(f.strategies)
		points := slices.Clone(scores[:n])
		slices.SortFunc(points, func(a, b score) int { return cmp.Compare(a.perPage(), b.perPage()) })
		out = append(out, curve{f.name, points})
		scores = scores[n:]
	}
	return out
}

// at returns what the curve reaches at so many visits per page, straight between its points on a
// logarithmic axis of cost; NaN outside of them.
func (c curve) at(visits float64, of func(*sums) float64) float64 {
	for i := range c.points {
		right := &c.points[i].sums
		switch {
		case right.perPage() < visits:
		case right.perPage() == visits:
			return of(right)
		case i == 0:
			return math.NaN()
		default:
			left := &c.points[i-1].sums
			share := math.Log(visits/left.perPage()) / math.Log(right.perPage()/left.perPage())
			return of(left) + share*(of(right)-of(left))
		}
	}
	return math.NaN()
}

// gapClosed returns the share of the way from the base to the oracle that c goes, at one cost.
func gapClosed(c, base, oracle curve, visits float64, of func(*sums) float64) float64 {
	b := base.at(visits, of)
	return (c.at(visits, of) - b) / (oracle.at(visits, of) - b)
}
