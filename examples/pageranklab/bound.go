package main

import (
	"math"

	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// A bound compares the stated error of a frontier with the actual one.
type bound struct {
	actual, stated float64 // where the first was closest to the second
	mass, trueMass float64
	broken         bool

	// Halfway, before and after refining the scores to an error of refined:
	half, halfTrue, refinedMass float64
	refineCost                  float64 // updates for each page fetched
}

// refined is an error small enough to stop a crawl by the stated mass.
const refined = 0.02

func (b *bound) holds() bool { return !b.broken }
func (b *bound) massHolds() bool {
	return b.mass <= b.trueMass+1e-9 && max(b.half, b.refinedMass) <= b.halfTrue+1e-9
}

// checkBound crawls with Push and compares with Exact, halfway and at the end. The graph is that
// of pages fetched or discovered, with readers starting on fetched pages.
func checkBound(s start, workers int) (b bound) {
	f := pagerank.New(pagerank.Options{Host: s.host()})
	for _, id := range s.seeds {
		f.Discover(id)
	}
	n := s.graph.Len()
	done := make([]bool, n)
	for i := range n {
		id, ok := f.Next()
		if !ok {
			break
		}
		done[id] = true
		f.Fetched(id, s.graph.Links(id))
		if i == n/2 || i == n-1 {
			b.check(s.graph, f, done, workers)
		}
		if i == n/2 {
			b.half, b.halfTrue = b.mass, b.trueMass
			before := f.Stats().Updates
			f.Refine(refined)
			b.refinedMass = f.Stats().Mass
			b.refineCost = float64(f.Stats().Updates-before) / float64(i+1)
			b.check(s.graph, f, done, workers)
		}
	}
	return b
}

// check compares the current scores.
func (b *bound) check(g *compare.Graph, f *pagerank.Frontier, done []bool, workers int) {
	put := make([]float64, g.Len())
	known := compare.NewGraph(g.Len(), func(yield func(from, to uint32) bool) {
		for id, fetched := range done {
			if !fetched {
				continue
			}
			put[id] = 1
			for _, to := range g.Links(uint32(id)) {
				if !yield(uint32(id), to) {
					return
				}
			}
		}
	})
	exact := compare.Exact(known, compare.ExactOptions{Teleport: put, Workers: workers})
	stats := f.Stats()
	off, mass := 0.0, 0.0
	for id, rank := range exact {
		off += math.Abs(rank - f.Score(uint32(id))/stats.Total)
		if done[id] {
			mass += rank
		}
	}
	if off/stats.Error > b.actual/max(b.stated, 1e-300) {
		b.actual, b.stated = off, stats.Error
	}
	b.broken = b.broken || off > stats.Error+1e-9
	b.mass, b.trueMass = stats.Mass, mass
}
