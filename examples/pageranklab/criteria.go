package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/spinneret-go/spinneret/pagerank/compare"
)

// A truth is the PageRank of a whole web.
type truth struct {
	rank  []float64 // by id
	order []uint32  // by id: its rank
}

func newTruth(g *compare.Graph, workers int) *truth {
	t := &truth{rank: compare.Exact(g, compare.ExactOptions{Workers: workers})}
	ids := make([]uint32, g.Len())
	for i := range ids {
		ids[i] = uint32(i)
	}
	slices.SortFunc(ids, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(t.rank[b], t.rank[a]), cmp.Compare(a, b))
	})
	t.order = make([]uint32, len(ids))
	for i, id := range ids {
		t.order[id] = uint32(i)
	}
	return t
}

// tops are the shares of pages for criterion A.
var tops = [...]float64{0.001, 0.01, 0.1}

const (
	curvePoints = 200
	nTops       = len(tops)
)

// A score rates an order of pages by the paper's criteria, section 4.3.
type score struct {
	top    [nTops]float64                  // A, as areas under the curves
	sum    float64                         // B, as area under the curve
	error  float64                         // C; the only one where less is better
	curves [nTops + 1][curvePoints]float64 // A and B after each part of the crawl
}

// rate scores a crawl that fetched pages in the given order.
func (t *truth) rate(crawled []uint32) *score {
	n := len(t.rank)
	s := &score{}
	var counts [nTops]int
	limits := [nTops]int{}
	for k, share := range tops {
		limits[k] = max(1, int(share*float64(n)))
	}
	var got [nTops + 1]float64
	for i, id := range crawled {
		left := 1 - float64(i)/float64(n)
		for k, limit := range limits {
			if int(t.order[id]) < limit {
				counts[k]++
				s.top[k] += left / float64(limit)
				got[k] = float64(counts[k]) / float64(limit)
			}
		}
		got[nTops] += t.rank[id]
		s.sum += left * t.rank[id]
		for p := i * curvePoints / n; p < (i+1)*curvePoints/n; p++ {
			for k := range got {
				s.curves[k][p] = got[k]
			}
		}
	}
	s.error = t.orderError(crawled)
	return s
}

// all is the figure for choosing constants: the mean of A, plus B, minus C.
func (s *score) all() (sum float64) {
	for _, area := range s.top {
		sum += area / float64(nTops)
	}
	return sum + s.sum - s.error
}

// orderError is criterion C: the distance of pages from their true ranks, early ones weighing more,
// relative to that of the reverse order.
func (t *truth) orderError(crawled []uint32) float64 {
	n := len(t.rank)
	c := float64(n) / 1000
	weigh := func(place, right int) float64 {
		return math.Abs(float64(place-right)) / math.Sqrt(float64(place)+c)
	}
	seen, worst := 0.0, 0.0
	for i, id := range crawled {
		seen += weigh(i, int(t.order[id]))
	}
	for i := range n {
		worst += weigh(i, n-1-i)
	}
	if worst == 0 {
		return 0
	}
	return seen / worst
}

// add and divide compute means over several crawls.
func (s *score) add(o *score) {
	for k := range s.top {
		s.top[k] += o.top[k]
	}
	s.sum += o.sum
	s.error += o.error
	for k := range s.curves {
		for p := range s.curves[k] {
			s.curves[k][p] += o.curves[k][p]
		}
	}
}

func (s *score) divide(n float64) {
	for k := range s.top {
		s.top[k] /= n
	}
	s.sum /= n
	s.error /= n
	for k := range s.curves {
		for p := range s.curves[k] {
			s.curves[k][p] /= n
		}
	}
}
