package pagerank

import (
	"math"
	"unsafe"
)

// Stats describes a [Frontier]. All figures are kept up to date, so Stats is cheap. Bounds hold up
// to the rounding of float64.
type Stats struct {
	Known   int // ids
	Queued  int // of these, waiting to be returned
	Aside   int // of these, on hosts that are not ready
	Fetched int // of these
	Links   int // kept
	Updates int // number of shares given so far, the measure of work
	Dropped int // URLs that were too long, or beyond Limit

	Total float64 // sum of all scores
	Held  float64 // sum of the scores of fetched pages
	Open  float64 // sum of the residuals of fetched pages

	// Error bounds the distance of the scores from the PageRank of the known pages: the sum over
	// all pages of |Score/Total - exact|, where readers start on fetched pages (or as Inherit says)
	// and unfetched pages have no links. Refine reduces it. With Damping 1 it is 2, which means
	// nothing, once there are links.
	Error float64

	// Mass is a lower bound of the share of all PageRank that fetched pages hold, however the other
	// pages are linked, if readers start as above. With Damping 1 it is 0.
	Mass float64

	Bytes int   // of memory, without ids set aside
	Err   error // ErrFull, if some links are not kept
}

// Stats returns the current figures.
func (f *Frontier) Stats() Stats {
	s := &f.sums
	return Stats{
		Known: s.known, Queued: f.queue.live, Aside: f.aside, Fetched: f.fetched,
		Links: f.links.size, Updates: int(min(s.updates, math.MaxInt)),
		Total: s.put + s.total, Held: s.held, Open: s.open,
		Error: s.distance(), Mass: s.mass(),
		Bytes: f.bytes(), Err: f.links.err,
	}
}

// ahead bounds the sum of all changes of scores if everything were passed on: the open residuals
// and their consequences are a geometric series.
func (s *sums) ahead(open float64) float64 {
	if open <= 0 {
		return 0
	}
	return open * s.damping / (1 - s.damping)
}

// distance is Stats.Error. Let S be the sum of scores, e a page's future change, and T the sum of
// all e: the sum of |s/S - (s+e)/(S+T)| is at most (|T|+Σ|e|)/(S+T). Residuals above 0 cause
// changes above 0 that sum up to at most P, and those below 0 to at most N. The worst cases are P
// with N, and N alone.
func (s *sums) distance() float64 {
	total, p, n := s.put+s.total, s.ahead(s.open-s.debt), s.ahead(s.debt)
	switch {
	case p == 0 && n == 0:
		return 0
	case s.damping >= 1 || total <= n:
		return 2
	}
	return min(2, max(2*p/(total+p-n), 2*n/(total-n)))
}

// mass is Stats.Mass. Fetched pages can only gain, except for debt. The sum of all scores is at
// most what was put in and keeps circulating, minus what ends at pages without links.
func (s *sums) mass() float64 {
	if s.damping >= 1 || s.put <= 0 {
		return 0
	}
	loss := s.ahead(s.debt)
	most := (s.put - s.damping*max(s.dangling-loss, 0)) / (1 - s.damping)
	return min(max((s.held-loss)/most, 0), 1)
}

func (f *Frontier) bytes() int {
	h := &f.hosts
	return int(unsafe.Sizeof(*f)) + cap(f.nodes)*int(unsafe.Sizeof(node{})) + cap(f.passed)*8 +
		(cap(f.places)+cap(h.cash)+cap(h.weights)+cap(h.fetched))*4 +
		(cap(f.wave)+cap(f.targets)+cap(f.newcomers))*4 +
		f.queue.store.bytes() + f.links.bytes() + f.cleaner.Bytes()
}
