package pagerank

import (
	"github.com/spinneret-go/spinneret/pagerank/internal/linklist"
)

// A Frontier ranks ids that are discovered and not yet fetched, by a PageRank that it updates with
// each fetched page. It is not safe for concurrent use.
type Frontier struct {
	opts  Options
	nodes []node // by id
	queue queue
	hosts hosts
	lots  map[uint32]*lot // the ids whose hosts are not ready, by host
	aside int             // how many these are

	// With the cutoffs that keep links:
	passed []float64 // by id: how much of the score was passed on
	places []place   // by id: where the links are
	links  linkStore

	fetched int     // pages
	step    float32 // current weight of a key, see age
	sums    sums

	newcomers []uint32 // discovered, and waiting for a place in the queue
	stretch   int      // number of pages between admissions of newcomers

	cleaner linklist.Cleaner
	targets []uint32 // scratch: links that were read back
	wave    []uint32 // pages about to pass on their residual
}

// New returns an empty Frontier.
func New(opts Options) *Frontier {
	opts = opts.normal()
	f := &Frontier{opts: opts, step: 1, stretch: 1, lots: map[uint32]*lot{}}
	f.sums.damping = opts.Damping
	f.cleaner.Limit = opts.Limit
	if opts.Host != nil {
		f.cleaner.Host = f.hostOf
	}
	if f.blends() {
		f.hosts.weights = []float32{0}
		f.hosts.fetched = []uint32{0}
	}
	return f
}

// Discover queues id with its current score, 0 for a seed. An id that was returned by Next and
// could not be fetched is queued again. A queued id, or one set aside, gets a new place if
// Options.Score is set. A fetched id is ignored.
func (f *Frontier) Discover(id uint32) {
	if f.beyond(id) {
		return
	}
	f.cover(uint64(id) + 1)
	if f.meet(id) && f.blends() {
		f.hosts.cash[id]++ // a seed's
	}
	n := &f.nodes[id]
	switch {
	case n.state&(queued|aside|fetched) == 0:
		f.queue.add(f.nodes, f.level(id), id)
		f.sweep() // it may have been dropped and discovered many times
	case n.state&queued != 0 && n.next != always && f.opts.Score != nil:
		if level := f.level(id); level+1 != n.next {
			f.queue.move(n, level, id)
			f.sweep()
		}
	case n.state&aside != 0 && f.opts.Score != nil:
		if level := f.level(id); level+1 != n.next {
			f.relocate(n, level, id)
		}
	}
}

// Next removes the id with the highest key from the queue; ok is false if the queue is empty. Ids
// that NextReady has set aside are not in the queue.
func (f *Frontier) Next() (id uint32, ok bool) {
	if id, ok = f.queue.pop(f.nodes); !ok && len(f.newcomers) > 0 {
		f.admit()
		return f.queue.pop(f.nodes)
	}
	return id, ok
}

// Fetched reports that a page was fetched, with the ids it links to. The page gets its 1, unless
// Options says otherwise, and passes on its score; new targets are discovered. Links to the page
// itself, repeated links, and ids from Options.Limit on do not count. A page without links passes
// on nothing.
//
// If the page was fetched before, the score that went over its old links is taken back, and all of
// its score goes over the new ones. If links are not kept, only new targets are discovered.
//
// The slice is neither kept nor changed.
func (f *Frontier) Fetched(id uint32, links []uint32) {
	if f.beyond(id) {
		return
	}
	clean, above := f.cleaner.Clean(id, links)
	f.cover(max(above, uint64(id)+1))
	f.meet(id)
	if f.nodes[id].state&fetched != 0 {
		f.again(id, clean)
		return
	}
	f.enter(id)
	if len(clean) == 0 {
		f.sums.dangling += f.nodes[id].score
		return
	}
	f.keep(id, clean)
	f.passOn(id, clean)
	f.settle()
}

// enter marks a node as fetched.
func (f *Frontier) enter(id uint32) {
	n := &f.nodes[id]
	waited := n.state&queued != 0
	f.withdraw(id)
	n.state |= fetched
	n.next = always
	put := 1.0
	if f.opts.Inherit {
		put = f.worth(id)
	}
	n.score += put
	f.sums.put += put
	f.sums.held += n.score
	f.fetched++
	if f.opts.Cutoff == Push {
		f.step = age(f.fetched)
		f.stretch = stretch(f.fetched)
	}
	if f.fetched%f.stretch == 0 { // always with AR, which may have read a file with newcomers
		f.admit()
	}
	f.hosts.enter(n.host)
	if waited { // it was fetched by another route, a redirect
		f.wake(n.host)
	}
}

// withdraw takes an id out of the queue and out of the lot of its host.
func (f *Frontier) withdraw(id uint32) {
	n := &f.nodes[id]
	if n.state&queued != 0 {
		n.state &^= queued
		f.queue.live--
	}
	if n.state&aside != 0 {
		f.unpark(n)
	}
}

// Score returns the score of an id, fetched or not; 0 if it is unknown. Scores grow with the crawl:
// to compare scores of different times, divide by Stats.Total. The score of a fetched page tells
// how much a revisit is worth.
func (f *Frontier) Score(id uint32) float64 {
	if uint64(id) >= uint64(len(f.nodes)) {
		return 0
	}
	return f.nodes[id].score
}
