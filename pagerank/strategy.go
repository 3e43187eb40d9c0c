package pagerank

// A Strategy decides in which order pages are fetched. [Frontier] is one; the others are there to
// compare with. Its methods are not safe for concurrent use.
type Strategy interface {
	// Discover tells of an id that no link led to: a seed.
	Discover(id uint32)
	// Fetched tells which links a page has.
	Fetched(id uint32, links []uint32)
	// Next takes the id to fetch next; ok is false if none is left.
	Next() (id uint32, ok bool)
}

var (
	_ Strategy = (*Frontier)(nil)
	_ Strategy = (*BreadthFirst)(nil)
	_ Strategy = (*BackLinks)(nil)
	_ Strategy = (*Batch)(nil)
	_ Strategy = (*OPIC)(nil)
)

// BreadthFirst takes ids in the order of discovery. The zero BreadthFirst is empty and ready to
// use, by one goroutine at a time.
type BreadthFirst struct {
	Host func(id uint32) uint32 // for the order of ties, see Options; may be nil

	reg   register
	queue []uint32
	next  int
}

// Discover queues id, once.
func (b *BreadthFirst) Discover(id uint32) {
	b.reg.limit, b.reg.host = maxIDs, b.Host
	if b.reg.beyond(id) {
		return
	}
	b.reg.cover(id)
	b.add(id)
}

func (b *BreadthFirst) add(id uint32) {
	if b.reg.know(id) {
		b.queue = append(b.queue, id)
	}
}

// Fetched queues the links that are new.
func (b *BreadthFirst) Fetched(id uint32, links []uint32) {
	b.reg.limit, b.reg.host = maxIDs, b.Host
	if b.reg.beyond(id) {
		return
	}
	b.reg.tidy(id, links)
	for _, to := range b.reg.clean {
		b.add(to)
	}
}

// Next takes the id that was discovered first.
func (b *BreadthFirst) Next() (id uint32, ok bool) {
	if b.next == len(b.queue) {
		return 0, false
	}
	b.next++
	return b.queue[b.next-1], true
}

// OPIC hands each seed 1 and lets a fetched page hand what it has to its links; the id that has
// most is next (Abiteboul, Preda and Cobena, 2003), each page being fetched once. The zero OPIC is
// empty and ready to use, by one goroutine at a time.
type OPIC struct {
	Host func(id uint32) uint32 // for the order of ties, see Options; may be nil

	cash *Frontier
}

func (o *OPIC) frontier() *Frontier {
	if o.cash == nil {
		o.cash = New(Options{Cutoff: DL1, Trusted: true, Host: o.Host})
	}
	return o.cash
}

// Discover queues id, and hands it 1 if it is new.
func (o *OPIC) Discover(id uint32) {
	f := o.frontier()
	if f.has(id) {
		f.Discover(id)
		return
	}
	f.Trust(id, 1)
}

// Fetched hands the page's cash on.
func (o *OPIC) Fetched(id uint32, links []uint32) { o.frontier().Fetched(id, links) }

// Next takes the id that has most.
func (o *OPIC) Next() (id uint32, ok bool) { return o.frontier().Next() }

// RankMass returns a frontier that takes the id with the highest lower bound on its PageRank for
// readers who start on trusted pages: those that Trust names (Cho and Schonfeld, 2007, with each
// page fetched once). Its Stats.Mass is their guarantee.
func RankMass(opts Options) *Frontier {
	opts.Cutoff, opts.Trusted = AR, true
	if opts.Damping == 0 {
		opts.Damping = DefaultDamping
	}
	return New(opts)
}
