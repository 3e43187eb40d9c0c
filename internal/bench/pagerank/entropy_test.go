package pagerank

import (
	"math"
	"math/bits"
	"slices"
)

// An entropy computes the size of lists of links with an optimal coder of gaps that only knows the
// frequency of each order of magnitude of a gap. The arena of package pagerank is such a coder with
// whole bytes; better packing could save the difference.
type entropy struct {
	lengths, sizes map[int]float64 // of lists, and of gaps: bits
	lists, links   float64
	plain          float64 // bits of gaps besides their size class
	list           []uint32
}

// add counts the links of a page.
func (e *entropy) add(page uint32, links []uint32) {
	if e.sizes == nil {
		e.lengths, e.sizes = map[int]float64{}, map[int]float64{}
	}
	e.list = append(e.list[:0], links...)
	slices.Sort(e.list)
	e.list = slices.DeleteFunc(slices.Compact(e.list), func(to uint32) bool { return to == page })
	for i, to := range e.list {
		gap := int64(to) - int64(page)
		if gap = gap<<1 ^ gap>>63; i > 0 {
			gap = int64(to - e.list[i-1] - 1)
		}
		size := bits.Len64(uint64(gap)+1) - 1
		e.sizes[size]++
		e.plain += float64(size)
	}
	e.links += float64(len(e.list))
	e.lists++
	e.lengths[len(e.list)]++
}

// bytes returns the bytes per link.
func (e *entropy) bytes() float64 {
	return (e.plain + information(e.sizes) + information(e.lengths)) / e.links / 8
}

// information returns the total entropy of the counts, in bits.
func information(counts map[int]float64) (sum float64) {
	all := 0.0
	for _, c := range counts {
		all += c
	}
	for _, c := range counts {
		sum -= c * math.Log2(c/all)
	}
	return sum
}

// randomBytes returns the minimum bytes per link, for any coder, if a page links to k random ids
// below n: the logarithm of the number of such lists.
func randomBytes(n, k float64) float64 {
	lgamma := func(x float64) float64 { v, _ := math.Lgamma(x + 1); return v }
	return (lgamma(n) - lgamma(k) - lgamma(n-k)) / math.Ln2 / k / 8
}
