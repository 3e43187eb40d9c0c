package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// siteShapes are the kinds of sites that sites generates. Real crawls have 10 to 30 links per page.
var siteShapes = []struct {
	fan, menu int     // maximum children of a page, and links of a menu
	external  float64 // links to other sites per page
}{{6, 5, .2}, {6, 20, .2}, {12, 10, .5}}

// sites generates a web of about n pages on few large sites with many links per page. Each site is
// a tree of very uneven sections. A page links to its children, to the pages above it, and to the
// menus of the site and of its section. It also links to a few siblings and to a few pages of its
// section, most of them near its top. Crawls of large sites look like this, unlike the graphs of
// generate.
func sites(n int, seed uint64) *web {
	random := rand.New(rand.NewPCG(seed, 8))
	shape := siteShapes[seed%uint64(len(siteShapes))]
	w := &web{name: fmt.Sprintf("sites-%d-%d", n, seed), hosts: make([]uint32, n), ties: make([]uint32, n)}
	var from, to, popular []uint32
	link := func(a, b int) { from, to = append(from, uint32(a)), append(to, uint32(b)) }
	for first, host := 0, uint32(0); first < n; host++ {
		s := newSite(random, min(n-first, int(30*math.Pow(random.Float64(), -1/0.8)), n/8+1), shape.fan)
		for i := range s.parent {
			page := first + i
			w.hosts[page] = host
			w.ties[page] = uint32(3+s.depth[i])<<16 | uint32(20+8*s.depth[i])
			for _, target := range s.links(random, i, shape.menu) {
				link(page, first+target)
			}
			for random.Float64() < shape.external {
				target := uint32(random.IntN(n))
				if len(popular) > 0 && random.Float64() < .7 {
					target = popular[random.IntN(len(popular))]
				}
				link(page, int(target))
				popular = append(popular, target)
			}
		}
		popular = append(popular, uint32(first))
		first += len(s.parent)
	}
	w.graph = compare.NewGraph(n, func(yield func(from, to uint32) bool) {
		for i := range from {
			if !yield(from[i], to[i]) {
				return
			}
		}
	})
	return w
}

// A site is a tree of pages; page 0 is the home page.
type site struct {
	parent, depth []int
	section       []int   // by page: its ancestor directly below the home page; 0 for home
	children      [][]int // by page
	members       [][]int // by section
}

func newSite(random *rand.Rand, size, fan int) *site {
	s := &site{
		parent: make([]int, size), depth: make([]int, size), section: make([]int, size),
		children: make([][]int, size), members: make([][]int, size),
	}
	open := []int{0} // pages without children so far
	for next := 1; len(open) > 0 && next < size; {
		at := 0
		if random.Float64() < .3 {
			at = random.IntN(len(open))
		}
		page := open[at]
		open = append(open[:at], open[at+1:]...)
		for range min(1+int(float64(fan)*math.Pow(random.Float64(), -1/1.3)/4), 200, size-next) {
			s.parent[next], s.depth[next], s.section[next] = page, s.depth[page]+1, s.section[page]
			if page == 0 {
				s.section[next] = next
			}
			s.children[page] = append(s.children[page], next)
			open = append(open, next)
			next++
		}
	}
	for page, section := range s.section {
		s.members[section] = append(s.members[section], page)
	}
	return s
}

// links returns the links of a page within its site.
func (s *site) links(random *rand.Rand, page, menu int) (to []int) {
	to = append(to, s.children[page]...)
	for above := page; above != 0; above = s.parent[above] {
		to = append(to, s.parent[above])
	}
	to = append(to, s.children[0][:min(menu, len(s.children[0]))]...)
	section := s.section[page]
	to = append(to, s.children[section][:min(menu, len(s.children[section]))]...)
	siblings := s.children[s.parent[page]]
	for range min(3, len(siblings)) {
		to = append(to, siblings[random.IntN(len(siblings))])
	}
	for range 3 {
		near := random.Float64()
		to = append(to, s.members[section][int(near*near*float64(len(s.members[section])))])
	}
	return to
}
