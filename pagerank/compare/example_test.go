package compare_test

import (
	"fmt"

	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// web is what pages link to: two of them to 5.
var web = [][]uint32{{1, 2, 3}, {4}, {5}, {5}, {0}, {0}}

func Example() {
	strategies := []compare.Strategy{
		&compare.BreadthFirst{}, &compare.BackLinks{}, &compare.Batch{Every: 2}, &compare.OPIC{},
	}
	for _, s := range strategies {
		s.Discover(0)
		var order []uint32
		for id, ok := s.Next(); ok; id, ok = s.Next() {
			order = append(order, id)
			s.Fetched(id, web[id])
		}
		fmt.Printf("%T %v\n", s, order)
	}
	// Output:
	// *compare.BreadthFirst [0 1 2 3 4 5]
	// *compare.BackLinks [0 1 2 3 5 4]
	// *compare.Batch [0 1 4 2 5 3]
	// *compare.OPIC [0 1 2 3 5 4]
}

func ExampleExact() {
	g := compare.NewGraph(len(web), func(yield func(from, to uint32) bool) {
		for from, links := range web {
			for _, to := range links {
				if !yield(uint32(from), to) {
					return
				}
			}
		}
	})
	for id, rank := range compare.Exact(g, compare.ExactOptions{}) {
		fmt.Printf("page %d: %.3f\n", id, rank)
	}
	// Output:
	// page 0: 0.315
	// page 1: 0.114
	// page 2: 0.114
	// page 3: 0.114
	// page 4: 0.122
	// page 5: 0.219
}
