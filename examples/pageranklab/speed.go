package main

import (
	"runtime"
	"slices"
	"time"

	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// A pace is the speed and the memory of a strategy.
type pace struct {
	name    string
	pages   float64 // per second, in total
	scoring float64 // per second, if keeping the links were free
	bytes   float64 // of memory per page at the end, as the garbage collector counts them
}

// paces measures all strategies on one core, alternating, so that other work on the machine affects
// them alike, and returns medians. The time to keep links is that of DL1 with links minus that of
// DL1.
func paces(s start, rounds int, tell func(share float64)) (all []pace) {
	var fast []contender
	for _, c := range contenders(s.hosts != nil) {
		if c.fast {
			fast = append(fast, c)
		}
	}
	keeper := contender{"keeper", func(s start) compare.Strategy {
		return pagerank.New(pagerank.Options{Cutoff: pagerank.AR, Threshold: 1, Host: s.host()})
	}, true, true}
	runs := append(fast, keeper)
	times := make([][]float64, len(runs))
	bytes := make([]float64, len(runs))
	for round := range rounds {
		for i, c := range runs {
			took, size := timed(s, c)
			times[i] = append(times[i], took)
			bytes[i] = size
			tell(float64(round*len(runs)+i+1) / float64(rounds*len(runs)))
		}
	}
	median := func(name string) float64 {
		i := slices.IndexFunc(runs, func(c contender) bool { return c.name == name })
		slices.Sort(times[i])
		return times[i][len(times[i])/2]
	}
	keeping := max(0, median(keeper.name)-median(nameDL1))
	n := float64(s.graph.Len())
	for i, c := range fast {
		took := median(c.name)
		p := pace{name: c.name, pages: n / took, scoring: n / took, bytes: bytes[i] / n}
		if c.keeps {
			p.scoring = n / max(took-keeping, took/100)
		}
		all = append(all, p)
	}
	return all
}

// timed crawls once and returns the seconds, and the heap bytes of the strategy at the end.
func timed(s start, c contender) (took, bytes float64) {
	before := heap()
	strategy := c.make(s)
	begin := time.Now()
	for _, id := range s.seeds {
		strategy.Discover(id)
	}
	for id, ok := strategy.Next(); ok; id, ok = strategy.Next() {
		strategy.Fetched(id, s.graph.Links(id))
	}
	took = time.Since(begin).Seconds()
	bytes = heap() - before
	runtime.KeepAlive(strategy)
	return took, max(bytes, 0)
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// growth returns DL1's time per link in each tenth of a crawl: the median, in nanoseconds. It
// should grow by cache misses only.
func growth(s start, rounds int) (tenths [10]float64) {
	var all [10][]float64
	for range rounds {
		f := pagerank.New(pagerank.Options{Cutoff: pagerank.DL1, Host: s.host()})
		for _, id := range s.seeds {
			f.Discover(id)
		}
		n := s.graph.Len()
		for t := range all {
			begin, before := time.Now(), f.Stats().Updates
			for range (t+1)*n/10 - t*n/10 {
				if id, ok := f.Next(); ok {
					f.Fetched(id, s.graph.Links(id))
				}
			}
			if links := f.Stats().Updates - before; links > 0 {
				all[t] = append(all[t], float64(time.Since(begin).Nanoseconds())/float64(links))
			}
		}
	}
	for t, times := range all {
		if slices.Sort(times); len(times) > 0 {
			tenths[t] = times[len(times)/2]
		}
	}
	return tenths
}
