package pagerank

import "slices"

// Batch takes the id with the highest PageRank, which it computes anew after every so many pages:
// one iteration over all links of fetched pages, starting from the values of the last time (Cho,
// Garcia-Molina and Page, 1998, as Yamada et al. have it). Pages found since are worth what a page
// without links to it is. The zero Batch is empty and ready to use, by one goroutine at a time.
type Batch struct {
	Every   int                    // pages between iterations; 0 means 165,000, as in the paper
	Damping float64                // 0 means DefaultDamping
	Host    func(id uint32) uint32 // for the order of ties, see Options; may be nil

	reg     register
	queue   queue
	links   linkStore
	places  []place   // of fetched pages, in order
	pages   []uint32  // fetched ones that have links, in order
	next    []float64 // scratch
	targets []uint32  // scratch
	fetched int
}

// damping returns what Damping stands for.
func (b *Batch) damping() float64 {
	if b.Damping > 0 && b.Damping <= 1 {
		return b.Damping
	}
	return DefaultDamping
}

// Discover queues id, once.
func (b *Batch) Discover(id uint32) {
	b.reg.limit, b.reg.host = maxIDs, b.Host
	if b.reg.beyond(id) {
		return
	}
	b.reg.cover(id)
	b.know(id)
}

func (b *Batch) know(id uint32) {
	if b.reg.know(id) {
		// With 1, the mean, new pages would push aside most of those that were ranked, and the order
		// would get worse.
		fresh := 1 - b.damping()
		b.reg.nodes[id].score = fresh
		b.queue.add(b.reg.nodes, levelOf(fresh), id)
	}
}

// Fetched keeps the links of a page, and when it is time for it, iterates. If a page is fetched
// again, its links count again.
func (b *Batch) Fetched(id uint32, links []uint32) {
	b.reg.limit, b.reg.host = maxIDs, b.Host
	if b.reg.beyond(id) {
		return
	}
	b.reg.tidy(id, links)
	for _, to := range b.reg.clean {
		b.know(to)
	}
	if len(b.reg.clean) > 0 {
		b.pages = append(b.pages, id)
		b.targets = append(b.targets[:0], b.reg.clean...)
		slices.Sort(b.targets)
		b.places = append(b.places, b.links.put(id, b.targets))
	}
	b.fetched++
	every := b.Every
	if every <= 0 {
		every = 165_000
	}
	if b.fetched%every == 0 {
		b.iterate()
	}
}

// iterate computes new scores, and a new queue from them.
func (b *Batch) iterate() {
	damping, nodes := b.damping(), b.reg.nodes
	b.next = append(b.next[:0], make([]float64, len(nodes))...)
	for i, at := range b.places {
		id := b.pages[i]
		b.targets = b.links.read(at, id, b.targets[:0])
		share := damping * nodes[id].score / float64(len(b.targets))
		for _, to := range b.targets {
			b.next[to] += share
		}
	}
	b.queue.reset()
	for id, got := range b.next {
		n := &nodes[id]
		n.score = 1 - damping + got
		if n.state&queued != 0 {
			b.queue.add(nodes, levelOf(n.score), uint32(id))
		}
	}
}

// Next takes the id with the highest score.
func (b *Batch) Next() (id uint32, ok bool) { return b.queue.pop(b.reg.nodes) }
