package pagerank

import (
	"cmp"
	"math"
	"slices"
)

// hosts is what a frontier knows of hosts: how much of each is fetched, and which ids wait for it.
//
// A score counts each fetched page as one voice, and a host that makes pages without end has voices
// without end. So Push, where it knows hosts, takes two other things into the key: a discount for
// pages of a host of which much is fetched, and, with little weight, what share of those who
// follow links from the seeds would come to the page: the cash of OPIC, which no host can make.
type hosts struct {
	weights []float32 // by host: its discount; nil if hosts do not count
	fetched []uint32  // by host
	cash    []float32 // by id

	lots   map[uint32]*lot // hosts that were not ready
	chain  []pair          // by id, for those set aside
	parked int
}

// A lot is the ids of a host that were set aside. It is a small queue, for ids are found at any
// time: one that comes late may be better than those that wait.
type lot struct {
	shelves []shelf // by bucket, the highest last
	n       int     // ids
	busy    bool    // until Release
}

// A shelf is the ids of one bucket in a lot, in the order in which they came.
type shelf struct {
	first, last uint32
	bucket      uint16
}

// find returns where among its shelves a lot has, or would have, that of a bucket.
func (l *lot) find(bucket uint16) (at int, found bool) {
	return slices.BinarySearchFunc(l.shelves, bucket, func(s shelf, b uint16) int {
		return cmp.Compare(s.bucket, b)
	})
}

// A pair holds the neighbours of an id on its shelf.
type pair struct{ before, after uint32 }

// cover makes room for a host.
func (h *hosts) cover(host uint32) {
	if h.weights == nil {
		return
	}
	for len(h.weights) <= int(host) {
		h.weights = append(h.weights, 1)
		h.fetched = append(h.fetched, 0)
	}
}

// follow makes room for n ids.
func (h *hosts) follow(n int) {
	h.cash = lengthened(h.cash, n)
}

// enter counts a page of a host.
func (h *hosts) enter(host uint32) {
	if h.weights != nil && h.fetched[host] < mostDiscounted {
		h.fetched[host]++
		h.weights[host] = float32(1 / math.Sqrt(1+float64(h.fetched[host])))
	}
}

// endow hands a seed its cash.
func (h *hosts) endow(id uint32) {
	if h.weights != nil {
		h.cash[id]++
	}
}

// pay hands the cash of a page to its links.
func (h *hosts) pay(id uint32, links []uint32) {
	if h.weights == nil {
		return
	}
	share := h.cash[id] / float32(len(links))
	h.cash[id] = 0
	for _, to := range links {
		h.cash[to] += share
	}
}

// The constants of Push: README.md of examples/pageranklab says on which graphs they were chosen,
// and on which they were judged. A discount without end lets a large host's good pages wait
// for ever; more weight for cash than a sixteenth is better where there are traps and worse
// elsewhere; without patience, small crawls lose.
const (
	mostDiscounted = 100
	cashWeight     = 16
	patience       = 1000
)

// blend returns the key of an id: its score to the power of 15/16, times its cash to that of 1/16.
// The bits of a float32 are close to its logarithm, and the queue wants to know no more.
func (h *hosts) blend(score float32, host, id uint32) float32 {
	k := uint64(math.Float32bits(max(score*h.weights[host], 0)))
	c := uint64(math.Float32bits(h.cash[id]))
	return math.Float32frombits(uint32((k*(cashWeight-1) + c) / cashWeight))
}

// age is the weight of a key that is computed when so many pages are fetched: what was found early
// has shown its worth on few pages, and gets its turn before the many that came later.
func age(fetched int) float32 {
	return float32(1 / math.Sqrt(1+float64(fetched)/patience))
}

// NextReady is Next for a polite crawler: ready tells whether a host may be visited now. Ids on
// hosts that may not are set aside, each once unless its score rises, and ready is not asked again
// about their host until Release; so a busy host costs nothing while it is busy, however many of its
// ids are at the top.
// Options.Host says which host an id is on.
func (f *Frontier) NextReady(ready func(host uint32) bool) (id uint32, ok bool) {
	for {
		id, ok = f.pop()
		if !ok {
			return 0, false
		}
		host := f.nodes[id].host
		l := f.hosts.lots[host]
		// A lot that is not busy has ids that wait for a Release that has come for one of them only.
		if l == nil || !l.busy {
			if ready(host) {
				return id, true
			}
			l = f.hosts.close(host)
		}
		f.hosts.park(f.nodes, l, id)
	}
}

// Release says that a host may be visited again. The best of its ids that were set aside goes back
// to the queue, in its place by score; the others stay until the next Release of the host.
func (f *Frontier) Release(host uint32) {
	l := f.hosts.lots[host]
	if l == nil {
		return
	}
	l.busy = false
	if l.n == 0 {
		delete(f.hosts.lots, host)
		return
	}
	id := l.shelves[len(l.shelves)-1].first
	f.hosts.unpark(f.nodes, id)
	f.queue.add(f.nodes, f.level(id), id)
}

// close notes that a host is not ready.
func (h *hosts) close(host uint32) *lot {
	l := h.lots[host]
	if l == nil {
		if h.lots == nil {
			h.lots = map[uint32]*lot{}
		}
		l = &lot{}
		h.lots[host] = l
	}
	l.busy = true
	return l
}

// park sets an id aside.
func (h *hosts) park(nodes []node, l *lot, id uint32) {
	n := &nodes[id]
	n.state |= aside
	h.chain = lengthened(h.chain, len(nodes))
	bucket := n.bucket()
	if at, found := l.find(bucket); found {
		s := &l.shelves[at]
		h.chain[s.last].after, h.chain[id].before = id, s.last
		s.last = id
	} else {
		l.shelves = slices.Insert(l.shelves, at, shelf{first: id, last: id, bucket: bucket})
	}
	l.n++
	h.parked++
}

// unpark takes an id out of its lot. It requires that the bucket of its node is still that of then.
func (h *hosts) unpark(nodes []node, id uint32) {
	n := &nodes[id]
	n.state &^= aside
	l, c := h.lots[n.host], h.chain[id]
	at, _ := l.find(n.bucket())
	switch s := &l.shelves[at]; id {
	case s.first:
		if s.first = c.after; id == s.last {
			l.shelves = slices.Delete(l.shelves, at, at+1)
		}
	case s.last:
		s.last = c.before
	default:
		h.chain[c.before].after, h.chain[c.after].before = c.after, c.before
	}
	l.n--
	h.parked-- // a lot without ids stays until Release, for it says that the host is busy
}
