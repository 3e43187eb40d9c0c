// Package randomweb makes graphs for the tests of package pagerank and its parts.
package randomweb

import "math/rand/v2"

// Links returns the links of n pages, of which some are far more popular than others. All pages can
// be reached from page 0. Some links repeat or lead to the page itself.
func Links(n int, seed uint64) [][]uint32 {
	r := rand.New(rand.NewPCG(seed, 6))
	links := make([][]uint32, n)
	var targets []uint32
	link := func(from, to uint32) {
		links[from] = append(links[from], to)
		targets = append(targets, to)
	}
	for i := 1; i < n; i++ {
		link(r.Uint32N(uint32(i)), uint32(i))
		for range r.IntN(12) {
			to := r.Uint32N(uint32(n))
			if r.IntN(3) > 0 {
				to = targets[r.IntN(len(targets))]
			}
			link(uint32(i), to)
		}
	}
	return links
}
