package main

import (
	"sync"

	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// crawlAll runs each contender from each seed and computes means.
func (r *result) crawlAll(workers int, tell func(share float64)) {
	all := append(contenders(r.web.hosts != nil), thresholds(r.push)...)
	r.scores = map[string]*score{}
	r.updates, r.bytes = map[string]float64{}, map[string]float64{}
	jobs := make(chan contender)
	var mu sync.Mutex
	var group sync.WaitGroup
	done := 0
	for range workers {
		group.Go(func() {
			for c := range jobs {
				mean, stats, pages := r.crawls(c)
				mu.Lock()
				done++
				r.scores[c.name] = mean
				r.updates[c.name] = float64(stats.Updates) / float64(pages)
				r.bytes[c.name] = float64(stats.Bytes) / float64(pages)
				tell(float64(done) / float64(len(all)))
				mu.Unlock()
			}
		})
	}
	for _, c := range all {
		r.names = append(r.names, c.name)
		jobs <- c
	}
	close(jobs)
	group.Wait()
}

// crawls returns the mean score of a contender, and the sums of its statistics.
func (r *result) crawls(c contender) (mean *score, sum pagerank.Stats, pages int) {
	mean = &score{}
	for _, s := range r.starts {
		strategy := c.make(s)
		order := crawl(s.graph, s.seeds, strategy)
		mean.add(s.truth.rate(order))
		pages += len(order)
		stats := workOf(strategy)
		sum.Updates += stats.Updates
		sum.Bytes += stats.Bytes
	}
	mean.divide(float64(len(r.starts)))
	return mean, sum, pages
}

// crawl fetches pages in the order of a strategy, and returns that order.
func crawl(g *compare.Graph, seeds []uint32, s compare.Strategy) (order []uint32) {
	order = make([]uint32, 0, g.Len())
	for _, id := range seeds {
		s.Discover(id)
	}
	for {
		id, ok := s.Next()
		if !ok {
			return order
		}
		order = append(order, id)
		s.Fetched(id, g.Links(id))
	}
}

// An oracle takes the discovered page with the highest true PageRank. No strategy that does not
// know undiscovered pages can be much better.
type oracle struct {
	truth *truth
	known []bool
	heap  []uint32 // places in the true order
	ids   []uint32 // by place
}

func newOracle(t *truth) *oracle {
	o := &oracle{truth: t, known: make([]bool, len(t.order)), ids: make([]uint32, len(t.order))}
	for id, place := range t.order {
		o.ids[place] = uint32(id)
	}
	return o
}

func (o *oracle) Discover(id uint32) {
	if o.known[id] {
		return
	}
	o.known[id] = true
	o.heap = append(o.heap, o.truth.order[id])
	for i := len(o.heap) - 1; i > 0 && o.heap[i] < o.heap[(i-1)/2]; i = (i - 1) / 2 {
		o.heap[i], o.heap[(i-1)/2] = o.heap[(i-1)/2], o.heap[i]
	}
}

func (o *oracle) Fetched(_ uint32, links []uint32) {
	for _, to := range links {
		o.Discover(to)
	}
}

func (o *oracle) Next() (id uint32, ok bool) {
	h := o.heap
	if len(h) == 0 {
		return 0, false
	}
	best := h[0]
	h[0] = h[len(h)-1]
	h = h[:len(h)-1]
	for i := 0; 2*i+1 < len(h); {
		c := 2*i + 1
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	o.heap = h
	return o.ids[best], true
}
