package compare

import (
	"cmp"
	"slices"

	"github.com/spinneret-go/spinneret/pagerank"
)

// Batch takes the id with the highest PageRank, which it recomputes at fixed intervals: one
// iteration over the links of all fetched pages, starting from the previous values (Cho,
// Garcia-Molina and Page, 1998, as Yamada et al. describe it). A page discovered since then has the
// value of a page without incoming links. The zero Batch is empty and ready to use, by one
// goroutine at a time.
type Batch struct {
	Every int                    // pages between iterations; 0 means 165,000, as in the paper
	Host  func(id uint32) uint32 // for the order of ties; may be nil

	list    // sorted by the last iteration, then pages discovered since, all of minimum value
	sources []source
	targets []uint32 // of all sources
	fetched int
}

// A source is a fetched page with links.
type source struct {
	id  uint32
	end int // of its links
}

// Discover queues id, once.
func (b *Batch) Discover(id uint32) {
	if b.add(id) {
		// With 1, the mean, new pages would overtake most of those already ranked, and the order
		// would get worse.
		b.pages[id].score = 1 - pagerank.DefaultDamping
	}
}

// Fetched keeps the links of a page, and iterates when an iteration is due. If a page is fetched
// again, its links count again.
func (b *Batch) Fetched(id uint32, links []uint32) {
	clean := b.links(b.Host, id, links)
	for _, to := range clean {
		b.Discover(to)
	}
	if len(clean) > 0 {
		b.targets = append(b.targets, clean...)
		b.sources = append(b.sources, source{id, len(b.targets)})
	}
	b.fetched++
	if b.fetched%cmp.Or(b.Every, 165_000) == 0 {
		b.iterate()
	}
}

// iterate computes new scores and sorts the queue by them.
func (b *Batch) iterate() {
	const damping = pagerank.DefaultDamping
	pages := b.pages
	scores := make([]float64, len(pages))
	start := 0
	for _, s := range b.sources {
		share := damping * pages[s.id].score / float64(s.end-start)
		for _, to := range b.targets[start:s.end] {
			scores[to] += share
		}
		start = s.end
	}
	for id, got := range scores {
		pages[id].score = 1 - damping + got
	}
	b.queue, b.next = b.queue[b.next:], 0
	slices.SortFunc(b.queue, func(x, y uint32) int {
		return cmp.Or(cmp.Compare(pages[y].score, pages[x].score), cmp.Compare(pages[x].found, pages[y].found))
	})
}
