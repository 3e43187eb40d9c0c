package main

import (
	"math"

	"github.com/spinneret-go/spinneret/revisit"
)

// orderGain returns how many more versions the best order of visits catches than first come, first
// served, in theory: each page changes at random at its true yearly rate, which is known, and
// servers admit a share of the visits of MLE.mix. It is the upper bound of what an order can gain.
func (l lab) orderGain(pages []page, share float64) float64 {
	first, best := 0.0, 0.0
	next := plain("", revisit.MLE{}).next
	for _, group := range servers(pages) {
		f, b := crowded(rates(group), l.demand(group, next), share)
		first += f
		best += b
	}
	return best / first
}

// rates returns the changes per day of pages that changed.
func rates(pages []page) (perDay []float64) {
	for i := range pages {
		if n := len(pages[i].changes); n > 0 {
			perDay = append(perDay, float64(n)/year)
		}
	}
	return perDay
}

// crowded returns the versions per day that a server's pages yield under first come and under the
// best order, if they need this many visits per day at intervals in proportion to their mean
// ones.
//
// Under first come the backlog grows until each page is late by the same time and the demand fits.
// The best order lengthens all intervals by one factor.
func crowded(rates []float64, demand, share float64) (first, best float64) {
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	if sum == 0 || demand == 0 {
		return 0, 0
	}
	wait := sum / demand // in mean intervals
	low, high := 0.0, float64(len(rates))/(share*demand)
	for range 60 {
		late, visits := (low+high)/2, 0.0
		for _, r := range rates {
			visits += 1 / (wait/r + late)
		}
		if visits > share*demand {
			low = late
		} else {
			high = late
		}
	}
	for _, r := range rates {
		first += perDay(r, wait/r+low)
		best += perDay(r, wait/r/share)
	}
	return first, best
}

// perDay returns the versions per day caught by visits at an interval to a page that changes at
// random.
func perDay(rate, interval float64) float64 { return -math.Expm1(-rate*interval) / interval }
