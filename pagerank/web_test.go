package pagerank

import (
	"iter"
	"slices"

	"github.com/spinneret-go/spinneret/pagerank/internal/linklist"
	"github.com/spinneret-go/spinneret/pagerank/internal/randomweb"
)

// A webGraph is a graph to crawl: links by page.
type webGraph [][]uint32

func (g webGraph) Links(id uint32) []uint32 { return g[id] }
func (g webGraph) Len() int                 { return len(g) }

// newWeb returns the graph with the links that count.
func newWeb(n int, edges iter.Seq2[uint32, uint32]) webGraph {
	g, clean := make(webGraph, n), linklist.Cleaner{Limit: n}
	for from, to := range edges {
		g[from] = append(g[from], to)
	}
	var all []uint32 // a crawl should wait for the frontier's memory, not for the graph's
	for id := range g {
		links, _ := clean.Clean(uint32(id), g[id])
		all = append(all, links...)
		g[id] = g[id][:len(links)]
	}
	for id := range g {
		n := len(g[id])
		g[id], all = all[:n:n], all[n:]
	}
	return g
}

// exactly computes PageRank by iterating as often as damping needs for 1e-13.
func exactly(g webGraph, put []float64, damp func(id uint32) float64) []float64 {
	x := slices.Clone(put)
	for range 600 {
		next := slices.Clone(put)
		for id, links := range g {
			for _, to := range links {
				next[to] += x[id] * damp(uint32(id)) / float64(len(links))
			}
		}
		x = next
	}
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	for i := range x {
		if sum > 0 {
			x[i] /= sum
		}
	}
	return x
}

// crawl fetches everything from seeds on.
func crawl(f *Frontier, g webGraph, seeds ...uint32) (order []uint32) {
	for _, id := range seeds {
		f.Discover(id)
	}
	for id, ok := f.Next(); ok; id, ok = f.Next() {
		order = append(order, id)
		f.Fetched(id, g.Links(id))
	}
	return order
}

// testWeb makes a graph in which some pages are far more popular than others.
func testWeb(n int, seed uint64) webGraph {
	return newWeb(n, func(yield func(from, to uint32) bool) {
		for from, links := range randomweb.Links(n, seed) {
			for _, to := range links {
				if !yield(uint32(from), to) {
					return
				}
			}
		}
	})
}
