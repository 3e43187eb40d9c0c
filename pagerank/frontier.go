package pagerank

import (
	"iter"
	"math"
)

// A Frontier ranks the ids that were discovered and not yet fetched by a PageRank that it keeps up
// to date as pages come in. It is not safe for concurrent use.
type Frontier struct {
	register
	opts  Options
	queue queue
	hosts hosts

	// Of the cutoffs that keep links:
	passed []float64 // by id: how much of the score was passed on
	places []place   // by id: where the links are
	links  linkStore

	fetched int     // pages
	thrifty bool    // AR and Push: gains are saved up until they are worth passing on
	step    float32 // weight of a key now, see age
	sums    sums

	newcomers []uint32 // found and not let in yet
	stretch   int      // pages between two times that they are

	targets []uint32  // scratch: links that were read back
	wave    []gain    // pages that are to pass on something
	before  []float64 // scratch of VR: what the targets had
}

// New returns an empty Frontier.
func New(opts Options) *Frontier {
	opts = opts.normal()
	f := &Frontier{opts: opts, step: 1, stretch: 1, register: register{limit: opts.Limit, host: opts.Host}}
	f.links.spill = opts.Spill
	f.thrifty = opts.Cutoff == AR || opts.Cutoff == Push
	if opts.Cutoff == Push && opts.Host != nil {
		f.hosts.weights = []float32{1}
		f.hosts.fetched = []uint32{0}
	}
	f.reserve(opts.Capacity)
	return f
}

// reserve makes room for n ids.
func (f *Frontier) reserve(n int) {
	n = min(n, f.limit)
	f.nodes = grown(f.nodes, n)
	if f.opts.KeepLinks {
		f.passed = grown(f.passed, n)
		f.places = grown(f.places, n)
	}
	if f.hosts.weights != nil {
		f.hosts.cash = grown(f.hosts.cash, n)
	}
}

// follow lets what is kept beside the nodes follow their number.
func (f *Frontier) follow() {
	if f.hosts.weights != nil {
		f.hosts.follow(len(f.nodes))
	}
	if f.opts.KeepLinks && len(f.passed) < len(f.nodes) {
		f.passed = lengthened(f.passed, len(f.nodes))
		f.places = lengthened(f.places, len(f.nodes))
	}
}

// meet makes id a node, if it is none, and tells whether it was none. Its caller sees to the queue.
func (f *Frontier) meet(id uint32) (added bool) {
	if added = f.know(id); added {
		f.sums.known++
		f.hosts.cover(f.nodes[id].host)
	}
	return added
}

// Discover queues id with the score that it has, which is 0 at first: a seed. An id that was handed
// out and could not be fetched comes back by Discover too. One that is fetched is left alone.
func (f *Frontier) Discover(id uint32) {
	if f.beyond(id) {
		return
	}
	f.cover(id)
	f.follow()
	if f.meet(id) {
		f.hosts.endow(id)
	}
	n := &f.nodes[id]
	if n.state&(queued|aside|fetched) == 0 {
		f.queue.add(f.nodes, f.level(id), id)
	}
}

// Trust discovers id and adds weight to its score: what a reader has who starts there. With a
// weight that is infinite, or not above 0, it does nothing.
func (f *Frontier) Trust(id uint32, weight float64) {
	if f.beyond(id) || !(weight > 0) || math.IsInf(weight, 1) {
		return
	}
	f.Discover(id)
	f.sums.put += weight
	f.sums.total -= weight // give will count it among the shares
	f.give([]uint32{id}, weight)
	f.settle()
}

// Next takes the id with the highest score out of the queue; ok is false if the queue is empty.
// Ids that NextReady has set aside are not in the queue.
func (f *Frontier) Next() (id uint32, ok bool) {
	return f.pop()
}

// Fetched says that a page was fetched and which ids its links lead to. The page gets its 1, unless
// scores start from Trust alone, and passes on its score; targets that are new are discovered.
// Links to the page itself, and all but the first of those with the same target, do not count, nor
// do ids beyond Options.Limit. A page without links passes on nothing.
//
// When a page is fetched again, what it passed on over its old links is taken back and all of its
// score goes over the new ones; without kept links, new targets are discovered and that is all. What
// is taken back is an equal split. Where VR has ignored shares, that moves a little between the
// targets, and Stats.Error says how much at most.
//
// The slice is neither kept nor changed.
func (f *Frontier) Fetched(id uint32, links []uint32) {
	if f.beyond(id) {
		return
	}
	f.tidy(id, links)
	f.follow()
	f.meet(id)
	if f.nodes[id].state&fetched != 0 {
		f.again(id) // what it has passed on has to be known before it passes on more
		return
	}
	f.enter(id)
	if len(f.clean) == 0 {
		f.sums.dangling += f.nodes[id].score
		return
	}
	f.keep(id)
	f.passOn(id)
	f.settle()
}

// enter makes a node one of the fetched.
func (f *Frontier) enter(id uint32) {
	n := &f.nodes[id]
	if n.state&queued != 0 {
		f.queue.live--
	}
	if n.state&aside != 0 {
		f.hosts.unpark(f.nodes, id)
	}
	n.state = n.state&^queued | fetched
	n.next = always
	if !f.opts.Trusted {
		n.score++
		f.sums.put++
	}
	f.sums.held += n.score
	f.fetched++
	if f.opts.Cutoff == Push {
		f.step = age(f.fetched)
		if f.stretch = stretch(f.fetched); f.fetched%f.stretch == 0 {
			f.letIn()
		}
		f.hosts.enter(n.host)
	}
}

// Score returns the score of an id, fetched or not; of one that is not known it is 0. Scores grow
// with the crawl: to compare those of different times, divide by Stats.Total. For a fetched page
// it says how much a revisit is worth.
func (f *Frontier) Score(id uint32) float64 {
	if uint64(id) >= uint64(len(f.nodes)) {
		return 0
	}
	return f.nodes[id].score
}

// All yields the known ids in order, with their scores. The frontier must not be changed meanwhile.
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

// Len returns how many ids are queued or set aside.
func (f *Frontier) Len() int { return f.queue.live + f.hosts.parked }
