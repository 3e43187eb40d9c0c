// Package compare has the strategies that [pagerank.Frontier] is compared with, and the PageRank of
// a whole graph, which judges them.
//
//	for _, s := range []compare.Strategy{
//		pagerank.New(pagerank.Options{}), &compare.BreadthFirst{}, &compare.Batch{Every: 1000},
//	} {
//		s.Discover(seed)
//		for id, ok := s.Next(); ok; id, ok = s.Next() {
//			s.Fetched(id, graph.Links(id))
//		}
//	}
//
// They are for experiments: examples/pageranklab runs them all. [BreadthFirst], [BackLinks],
// [Batch], [PL] and [VR] are those of Yamada, Takahashi, Taura and Chikayama (2004); [OPIC] is
// that of Abiteboul et al. [Exact] computes the PageRank of a [Graph] by power iteration.
//
// All of them identify pages by dense ids from 0. Ids of equal worth come in the order of
// discovery. If Host is set, a page's links to other hosts count as discovered before those to its
// own. Memory grows with the highest id.
package compare
