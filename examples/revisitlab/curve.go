package main

import (
	"cmp"
	"math"
	"slices"
)

// A curve is the results of one family, from the cheapest to the most expensive.
type curve struct {
	name   string
	points []score
}

// curves runs all families concurrently, on all processors.
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

// at returns the value of the curve at this many visits per page; NaN beyond its ends.
func (c curve) at(visits float64, of func(*sums) float64) float64 {
	left, right, share := c.around(visits)
	if right == nil {
		return math.NaN()
	}
	return of(&left.sums) + share*(of(&right.sums)-of(&left.sums))
}

// around returns the points on both sides of this many visits, and the distance from the left one;
// nil beyond the ends. Values between two points can be achieved by visiting some pages as in one
// and the rest as in the other.
func (c curve) around(visits float64) (left, right *score, share float64) {
	for i := range c.points {
		right = &c.points[i]
		switch {
		case right.perPage() < visits:
		case right.perPage() == visits:
			return right, right, 0
		case i == 0:
			return nil, nil, 0
		default:
			left = &c.points[i-1]
			share = (visits - left.perPage()) / (right.perPage() - left.perPage())
			return left, right, share
		}
	}
	return nil, nil, 0
}

// lead returns the lead of c over the base, as a share of all versions at one cost, and half the
// width of its 95 % confidence interval. Both have visited the same pages, so the interval is one
// over the pages' differences; it is too narrow for pages that change together.
func (c curve) lead(base curve, visits float64, pages []page) (lead, margin float64) {
	own, other := c.perPage(visits), base.perPage(visits)
	if own == nil || other == nil {
		return math.NaN(), math.NaN()
	}
	sum, versions := 0.0, 0.0
	for i := range pages {
		sum += own(i) - other(i)
		versions += float64(len(pages[i].changes))
	}
	lead = sum / versions
	squares := 0.0
	for i := range pages {
		d := own(i) - other(i) - lead*float64(len(pages[i].changes))
		squares += d * d
	}
	return lead, 1.96 * math.Sqrt(squares) / versions
}

// perPage returns how many versions of each page are caught at one cost, or nil.
func (c curve) perPage(visits float64) func(page int) float64 {
	left, right, share := c.around(visits)
	if right == nil {
		return nil
	}
	return func(i int) float64 {
		l, r := float64(left.caught[i]), float64(right.caught[i])
		return l + share*(r-l)
	}
}

// gapClosed returns the share of the gap between the base and the oracle that c closes, at one
// cost.
func gapClosed(c, base, oracle curve, visits float64, of func(*sums) float64) float64 {
	b := base.at(visits, of)
	return (c.at(visits, of) - b) / (oracle.at(visits, of) - b)
}
