package compare

import (
	"iter"
	"slices"
)

// A Graph is a fixed web graph, for [Exact] and for simulations. Use [NewGraph]: a Graph has no zero
// value. Its methods are safe for concurrent use.
type Graph struct {
	offsets []uint64
	links   []uint32
}

// NewGraph returns the graph of ids below n with the given links, which it iterates twice. It drops
// links of a page to itself, repeated links, and ids from n on. The links of a page stay in order.
func NewGraph(n int, edges iter.Seq2[uint32, uint32]) *Graph {
	g := &Graph{offsets: make([]uint64, n+1)}
	ok := func(from, to uint32) bool {
		return from != to && uint64(from) < uint64(n) && uint64(to) < uint64(n)
	}
	for from, to := range edges {
		if ok(from, to) {
			g.offsets[from+1]++
		}
	}
	for i := range n {
		g.offsets[i+1] += g.offsets[i]
	}
	g.links = make([]uint32, g.offsets[n])
	// With the counts known, each link is written to its final place, and edges in any order need
	// no sort.
	next := slices.Clone(g.offsets[:n])
	for from, to := range edges {
		if ok(from, to) {
			g.links[next[from]] = to
			next[from]++
		}
	}
	g.compact()
	return g
}

// compact drops repeated links.
func (g *Graph) compact() {
	// Links only move towards the front, so nothing is overwritten before it is read.
	seen := make([]uint32, g.Len()) // the last page that linked here, plus one
	end := uint64(0)
	for from := range g.Len() {
		start := end
		for _, to := range g.Links(uint32(from)) {
			if seen[to] != uint32(from)+1 {
				seen[to] = uint32(from) + 1
				g.links[end] = to
				end++
			}
		}
		g.offsets[from] = start
	}
	g.offsets[g.Len()] = end
	g.links = g.links[:end]
}

// Len returns the number of pages.
func (g *Graph) Len() int { return len(g.offsets) - 1 }

// Size returns the number of links.
func (g *Graph) Size() int { return len(g.links) }

// Links returns the targets of a page's links. id must be below Len, and the slice must not be
// changed.
func (g *Graph) Links(id uint32) []uint32 {
	return g.links[g.offsets[id]:g.offsets[id+1]]
}

// reversed returns the graph with all links reversed.
func (g *Graph) reversed() *Graph {
	return NewGraph(g.Len(), func(yield func(from, to uint32) bool) {
		for from := range uint32(g.Len()) {
			for _, to := range g.Links(from) {
				if !yield(to, from) {
					return
				}
			}
		}
	})
}
