package main

import (
	"math"
	"math/rand/v2"
)

// synthesize returns pages like those of the paper's Figure 4: mean intervals follow a power law,
// with a peak at one day, and changes come at random. Pages with fewer changes than least are drawn
// again; if too few pages have enough, there are fewer than n.
func synthesize(n, least int, step float64, seed uint64) []page {
	const (
		exponent = 1.3
		peak     = 0.08   // of the pages change daily
		patience = 10_000 // consecutive rejected draws
	)
	random := rand.New(rand.NewPCG(seed, 0))
	pages := make([]page, 0, n)
	for vain := 0; len(pages) < n && vain < patience; vain++ {
		gap := 1.0
		if random.Float64() >= peak {
			// By inversion: density t^-1.3 between 1 and 365 days.
			high := math.Pow(year, 1-exponent)
			gap = math.Pow(1+random.Float64()*(high-1), 1/(1-exponent))
		}
		if p := poissonPage(random, gap, step); len(p.changes) >= least {
			p.half = 1 + len(pages)%2
			pages = append(pages, p)
			vain = -1
		}
	}
	return pages
}

func poissonPage(random *rand.Rand, gap, step float64) (p page) {
	for day := random.ExpFloat64() * gap; day < year; day += random.ExpFloat64() * gap {
		p.change(day, step)
	}
	return p
}
