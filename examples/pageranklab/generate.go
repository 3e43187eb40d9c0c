package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// generate returns a web of about n pages on many hosts. The sizes of hosts follow a power law. A
// host's pages form a tree and link to a few of its top pages. Links to other hosts copy those of
// earlier pages, so that popular pages become more popular. It shows scale and the effect of hosts,
// but is not realistic otherwise.
func generate(n int, seed uint64) *web {
	random := rand.New(rand.NewPCG(seed, 7))
	name := fmt.Sprintf("generated-%d", n)
	if seed != 1 {
		name += fmt.Sprintf("-%d", seed)
	}
	w := &web{name: name, hosts: make([]uint32, n), ties: make([]uint32, n)}
	var from, to, popular []uint32
	link := func(a, b uint32) { from, to = append(from, a), append(to, b) }
	hostNumber := uint32(0)
	for first := 0; first < n; hostNumber++ {
		size := min(n-first, int(8*math.Pow(random.Float64(), -1/1.1)), n/20+1)
		for i := range size {
			page := uint32(first + i)
			w.hosts[page] = hostNumber
			depth := uint32(math.Log2(float64(i + 1)))
			w.ties[page] = (3+depth)<<16 | (20 + 8*depth)
			if i > 0 {
				link(uint32(first+(i-1)/3), page) // its parent
			}
			for t := range min(size, 5) {
				link(page, uint32(first+t)) // the template
			}
			link(page, uint32(first+random.IntN(size)))
			for random.Float64() < 0.5 && len(popular) > 0 {
				target := popular[random.IntN(len(popular))]
				if random.Float64() < 0.3 {
					target = uint32(random.IntN(n)) // not a copy, and perhaps of a later host
				}
				link(page, target)
				popular = append(popular, target)
			}
		}
		popular = append(popular, uint32(first))
		first += size
	}
	w.graph = compare.NewGraph(n, func(yield func(a, b uint32) bool) {
		for i := range from {
			if !yield(from[i], to[i]) {
				return
			}
		}
	})
	return w
}
