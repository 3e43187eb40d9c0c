package pagerank

import "math"

// hosts holds what Push considers besides scores.
//
// In a score each fetched page has one vote, so a host that generates endless pages has endless
// votes. If hosts are known, a key therefore has two more factors. One is a discount for hosts with
// many fetched pages. The other, with a small weight, is the cash of OPIC: the share of all readers
// following links from the seeds who would arrive at the page. No host can create cash.
type hosts struct {
	weights []float32 // by host: its discount, 0 if it was not met; nil if hosts do not matter
	fetched []uint32  // by host: pages, up to mostDiscounted
	cash    []float32 // by id
}

// blends reports whether keys consider hosts.
func (f *Frontier) blends() bool { return f.opts.Cutoff == Push && f.opts.Host != nil }

// meet makes a host known.
func (h *hosts) meet(host uint32) {
	if h.weights == nil {
		return
	}
	if uint64(host) >= uint64(len(h.weights)) {
		n := int(host) + 1
		h.weights, h.fetched = lengthened(h.weights, n), lengthened(h.fetched, n)
	}
	if h.weights[host] == 0 {
		h.weights[host] = 1
	}
}

// enter counts a page of a host.
func (h *hosts) enter(host uint32) {
	if h.weights != nil && h.fetched[host] < mostDiscounted {
		h.fetched[host]++
		// A large host's next page is worth less than the first of another one.
		h.weights[host] = float32(1 / math.Sqrt(1+float64(h.fetched[host])))
	}
}

// recount counts the pages of all hosts again, after ids have moved to another host.
func (f *Frontier) recount() {
	h := &f.hosts
	if h.weights == nil {
		return
	}
	h.weights, h.fetched = make([]float32, 0, len(h.weights)), nil
	for i := range f.nodes {
		n := &f.nodes[i]
		if n.state&known != 0 {
			h.meet(n.host)
		}
		if n.state&fetched != 0 {
			h.enter(n.host)
		}
	}
}

// pay passes the cash of a page on to its links.
func (h *hosts) pay(id uint32, links []uint32) {
	if h.cash == nil {
		return
	}
	share := h.cash[id] / float32(len(links))
	h.cash[id] = 0
	for _, to := range links {
		h.cash[to] += share
	}
}

// The constants of Push. README.md of examples/pageranklab says on which graphs they were chosen
// and on which they were judged. Without a limit, the discount would make a large host's good pages
// wait forever. A higher weight of cash helps against traps and hurts elsewhere. With a longer
// patience, small crawls lose.
const (
	mostDiscounted = 100  // pages per host
	cashWeight     = 16   // denominator of the exponent
	patience       = 1000 // pages
)

// blend returns the key of an id: its score to the power of 15/16, times its cash to the power of
// 1/16. The bits of a float32 are nearly its logarithm, and the queue needs no more precision.
func (h *hosts) blend(score float32, host, id uint32) float32 {
	k := uint64(math.Float32bits(max(score*h.weights[host], 0)))
	c := uint64(math.Float32bits(h.cash[id]))
	return math.Float32frombits(uint32((k*(cashWeight-1) + c) / cashWeight))
}

// age returns the weight of keys computed after so many fetched pages. A score reached early comes
// from few pages and means more than the same score later.
func age(fetched int) float32 {
	return float32(1 / math.Sqrt(1+float64(fetched)/patience))
}

// worth returns the value of Options.Score, or 1.
func (f *Frontier) worth(id uint32) float64 {
	if f.opts.Score == nil {
		return 1
	}
	w := f.opts.Score(id)
	if !(w > 0) {
		return 0
	}
	return min(w, math.MaxFloat32)
}

// level returns the level of the key of an id that is not fetched.
func (f *Frontier) level(id uint32) uint16 {
	n := &f.nodes[id]
	key := n.score * float64(f.step) * f.worth(id)
	if f.hosts.weights != nil {
		key = float64(f.hosts.blend(float32(key), n.host, id))
	}
	return levelOf(key)
}
