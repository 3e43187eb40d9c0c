package main

import (
	"math"
	"runtime"
	"sync"
)

// A score is the result of a strategy, added up over pages.
type score struct {
	sums
	months   [months]int // versions caught that were published in this month
	versionM [months]int // all versions of this month
	bins     [bins]sums  // by true mean interval
	caught   []uint32    // versions by page, so that strategies can be compared page by page
}

// sums are the four numbers from which all results are computed, and the sums over pages of the two
// ratios that the paper averages.
type sums struct {
	pages, visits, versions, captured int
	coverage, efficiency              float64
	squares                           float64 // of the pages' coverages
}

// micro is the share of all versions that were caught.
func (s *sums) micro() float64 { return float64(s.captured) / float64(s.versions) }

// macro is the paper's coverage: the mean over pages.
func (s *sums) macro() float64 { return s.coverage / float64(s.pages) }

// useful is the paper's efficiency: the mean over pages of versions caught per visit.
func (s *sums) useful() float64 { return s.efficiency / float64(s.pages) }

// perPage is the cost: visits per page.
func (s *sums) perPage() float64 { return float64(s.visits) / float64(s.pages) }

// margin is half the width of the 95 % confidence interval of macro.
func (s *sums) margin() float64 {
	n := float64(s.pages)
	variance := s.squares/n - s.macro()*s.macro()
	return 1.96 * math.Sqrt(max(variance, 0)/n)
}

func (s *sums) add(o *sums) {
	s.pages += o.pages
	s.visits += o.visits
	s.versions += o.versions
	s.captured += o.captured
	s.coverage += o.coverage
	s.efficiency += o.efficiency
	s.squares += o.squares
}

// addTrack adds one page. One without versions counts as covered, and all visits to it as wasted.
func (s *score) addTrack(t *track) {
	one := sums{
		pages: 1, visits: t.visits, versions: len(t.page.changes), captured: t.captured, coverage: 1,
	}
	if one.versions > 0 {
		one.coverage = one.micro()
	}
	if one.visits > 0 {
		one.efficiency = float64(one.captured) / float64(one.visits)
	}
	one.squares = one.coverage * one.coverage
	s.add(&one)
	if one.versions > 0 {
		s.bins[binOf(t.page.gap())].add(&one)
	}
	for m, n := range t.months {
		s.months[m] += int(n)
	}
	for _, day := range t.page.changes {
		s.versionM[monthOf(day)]++
	}
}

func (s *score) merge(o *score) {
	s.add(&o.sums)
	for m := range months {
		s.months[m] += o.months[m]
		s.versionM[m] += o.versionM[m]
	}
	for b := range bins {
		s.bins[b].add(&o.bins[b])
	}
}

// The paper's bins: single days below 30, tens of days below 100, then thirties.
const (
	dayBins = 30
	tenBins = 7
	bins    = dayBins + tenBins + 9
)

func binOf(gap float64) int {
	switch d := int(math.Round(gap)); {
	case d < dayBins:
		return d
	case d < 100:
		return dayBins + (d-dayBins)/10
	default:
		return min(dayBins+tenBins+(d-100)/30, bins-1)
	}
}

// binDays returns the middle of a bin.
func binDays(b int) float64 {
	switch {
	case b < dayBins:
		return float64(b)
	case b < dayBins+tenBins:
		return float64(dayBins + 5 + 10*(b-dayBins))
	default:
		return float64(115 + 30*(b-dayBins-tenBins))
	}
}

// chunk is the number of pages per job, unless the strategy must see all of a window.
const chunk = 4096

// A job is an independent part of the work.
type job struct {
	strategy int
	from     int // index of the first page
	pages    []page
}

// jobs splits the work. Pages of one window are adjacent, as returned by cut.
func jobs(pages []page, strategies []strategy) (all []job) {
	for i := range strategies {
		most := chunk
		if strategies[i].learn != nil || strategies[i].watch != nil {
			most = len(pages)
		}
		for rest := pages; len(rest) > 0; {
			n := 1
			for n < min(len(rest), most) && rest[n].window == rest[0].window {
				n++
			}
			all = append(all, job{i, len(pages) - len(rest), rest[:n]})
			rest = rest[n:]
		}
	}
	return all
}

// simulateAll runs all strategies over all pages on all processors, and returns their scores in the
// order of the strategies. It calls done occasionally with the completed share of the work.
func (l lab) simulateAll(pages []page, strategies []strategy, done func(float64)) []score {
	all := jobs(pages, strategies)
	scores := make([]score, len(strategies))
	for i := range scores {
		scores[i].caught = make([]uint32, len(pages))
	}
	queue := make(chan job)
	var mu sync.Mutex
	var wg sync.WaitGroup
	finished := 0
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for j := range queue {
				var sum score
				tracks := l.simulate(j.pages, &strategies[j.strategy])
				for i := range tracks {
					sum.addTrack(&tracks[i])
					// No other job writes to this place.
					scores[j.strategy].caught[j.from+i] = uint32(tracks[i].captured)
				}
				mu.Lock()
				scores[j.strategy].merge(&sum)
				finished++
				done(float64(finished) / float64(len(all)))
				mu.Unlock()
			}
		})
	}
	for _, j := range all {
		queue <- j
	}
	close(queue)
	wg.Wait()
	return scores
}
