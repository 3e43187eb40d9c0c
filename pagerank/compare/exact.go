package compare

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/spinneret-go/spinneret/pagerank"
)

// ExactOptions sets which PageRank [Exact] computes. The zero ExactOptions is the usual one.
type ExactOptions struct {
	// Teleport is how likely a reader is to start on each page, up to a factor. nil means that all
	// pages are equally likely, as does a length other than the graph's.
	Teleport []float64

	// Workers is how many goroutines share the work. The result does not depend on it.
	// 0 means GOMAXPROCS.
	Workers int
}

// tolerance bounds the sum of the errors of all pages.
const tolerance = 1e-10

// Exact computes the PageRank of all pages by power iteration; it sums up to 1, and the errors of all
// pages to 1e-10 at most. A reader on a page without links starts again, as does one who stops following
// links. The zero ExactOptions takes about 120 iterations over all links, 40 bytes per page and 4 per
// link.
//
// The scores solve x = v + d Pᵀx and are scaled at the end. That is the same vector as if the links
// of pages without links were spread over v, and needs no second sum.
func Exact(g *Graph, opts ExactOptions) []float64 {
	if g.Len() == 0 {
		return nil
	}
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	n := g.Len()
	p := &power{
		out: g, in: g.reversed(), teleport: opts.Teleport, workers: opts.Workers,
		was: make([]float64, n), given: make([]float64, n),
		sums: make([]sum, (n+blockPages-1)/blockPages),
	}
	if len(p.teleport) != n {
		p.teleport = slices.Repeat([]float64{1}, n)
	}
	// From the first term of the series on, no score is ever too high.
	p.now = slices.Clone(p.teleport)
	for {
		total, off := p.step()
		if off > tolerance {
			continue
		}
		for i := range p.now {
			p.now[i] /= cmp.Or(total, 1)
		}
		return p.now
	}
}

// A power is the state of a power iteration. Each block of pages is computed by one worker from its
// incoming links, so no worker writes what another one reads.
type power struct {
	out, in  *Graph // in is reversed
	teleport []float64
	now, was []float64
	given    []float64 // what each link of a page passes on
	sums     []sum     // one for each block
	workers  int
}

type sum struct{ total, change float64 }

// blockPages is fixed, so that sums are formed in the same order with any number of workers.
const blockPages = 1 << 12

// step iterates once and returns the sum of scores, and a bound on the sum of errors relative to it.
// The effects of the last change form a geometric series.
func (p *power) step() (total, off float64) {
	const damping = pagerank.DefaultDamping
	p.now, p.was = p.was, p.now
	p.parallel(func(_, from, to int) {
		for i := from; i < to; i++ {
			p.given[i] = p.was[i] * damping / float64(len(p.out.Links(uint32(i)))) // unused without links
		}
	})
	p.parallel(p.pull)
	var all sum
	for _, s := range p.sums {
		all.total += s.total
		all.change += s.change
	}
	if all.total == 0 {
		return 0, 0
	}
	return all.total, 2 * all.change / all.total * damping / (1 - damping)
}

// pull computes a block from its incoming links.
func (p *power) pull(block, from, to int) {
	var s sum
	for i := from; i < to; i++ {
		x := p.teleport[i]
		for _, source := range p.in.Links(uint32(i)) {
			x += p.given[source]
		}
		s.change += math.Abs(x - p.was[i])
		s.total += x
		p.now[i] = x
	}
	p.sums[block] = s
}

// parallel assigns the blocks to the workers in turn: blocks differ in their number of links.
func (p *power) parallel(do func(block, from, to int)) {
	var group sync.WaitGroup
	for w := range p.workers {
		group.Go(func() {
			for b := w; b < len(p.sums); b += p.workers {
				do(b, b*blockPages, min((b+1)*blockPages, len(p.now)))
			}
		})
	}
	group.Wait()
}
