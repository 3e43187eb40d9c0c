package pagerank

import "iter"

// All yields the known ids in ascending order with their scores. The frontier must not be changed
// during the iteration.
func (f *Frontier) All() iter.Seq2[uint32, float64] {
	return func(yield func(uint32, float64) bool) {
		for i := range f.nodes {
			n := &f.nodes[i]
			if n.state&known != 0 && !yield(uint32(i), n.score) {
				return
			}
		}
	}
}
