package pagerank

import (
	"math"
	"unsafe"
)

// Stats is what a [Frontier] knows about itself. All of it is kept up to date, so that it may be asked
// often. Bounds hold up to the rounding of float64.
type Stats struct {
	Known   int // ids
	Queued  int // of them
	Aside   int // of them: their hosts were not ready
	Fetched int // of them
	Links   int // that are kept
	Updates int // shares given so far: the work

	Total float64 // sum of all scores
	Held  float64 // sum of the scores of fetched pages
	Open  float64 // received by fetched pages and not passed on: the sum of residuals

	// Error bounds how far scores are from the PageRank of the pages known: the sum over all pages
	// of |Score/Total - Exact|, where readers start on fetched pages (or as Trust said) and pages not
	// fetched have no links. Refine makes it smaller. With Damping 1 it is 2, which says nothing.
	Error float64

	// Mass is what the fetched pages hold at least of all PageRank, however the pages not fetched are
	// linked, if readers start as above. With Trusted this is a bound for the whole web, that of
	// RankMass (Cho and Schonfeld, 2007), and a reason to stop a crawl. It is 0 with Damping 1.
	Mass float64

	Bytes int   // of memory, but for the list of hosts that are not ready
	Err   error // of the spill, or ErrFull: some links are not kept
}

// Stats returns the figures as they are now.
func (f *Frontier) Stats() Stats {
	s := &f.sums
	return Stats{
		Known: s.known, Queued: f.queue.live, Aside: f.hosts.parked, Fetched: f.fetched,
		Links: f.links.size, Updates: int(min(s.updates, math.MaxInt)),
		Total: s.put + s.total, Held: s.held, Open: s.open,
		Error: s.distance(), Mass: s.mass(),
		Bytes: f.bytes(), Err: f.links.err,
	}
}

// ahead bounds the sum of all changes of scores that passing on everything would make: what is
// open, and then what becomes of it, is a geometric series. What VR has misplaced is one too.
func (s *sums) ahead(open float64) float64 {
	if open <= 0 && s.skew == 0 {
		return 0
	}
	return (open*s.damping + s.skew) / (1 - s.damping)
}

// distance is Stats.Error. Let S be the sum of scores, and E at least the sum of all changes e to
// come, e its true value per page: |s/S - (s+e)/(S+Σe)| sums up to at most 2E over S+Σe. Without
// debt and skew no e is negative, and Σe may be taken as E.
func (s *sums) distance() float64 {
	total, change := s.put+s.total, s.ahead(s.open)
	switch {
	case change == 0:
		return 0
	case s.damping >= 1:
		return 2
	case s.debt > 0 || s.skew > 0:
		total -= change
	default:
		total += change
	}
	if total <= change {
		return 2
	}
	return 2 * change / total
}

// mass is Stats.Mass. Fetched pages can only gain, but for debt and skew. All scores together are at
// most what was put in and comes back again and again, less what ends at pages without links.
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
	return cap(f.nodes)*int(unsafe.Sizeof(node{})) + cap(f.passed)*8 + cap(f.places)*4 +
		int(unsafe.Sizeof(*f)) + f.queue.store.bytes() + f.links.bytes() +
		(cap(h.cash)+cap(h.weights))*4 + cap(h.fetched)*4 + cap(h.chain)*8 +
		cap(f.wave)*16 + (cap(f.buffer)+cap(f.own)+cap(f.targets)+cap(f.newcomers))*4 + cap(f.sieve.slots)*8 + cap(f.before)*8
}
