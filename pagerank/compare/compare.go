package compare

import (
	"math"

	"github.com/spinneret-go/spinneret/pagerank"
	"github.com/spinneret-go/spinneret/pagerank/internal/linklist"
)

// A Strategy decides in which order pages are fetched. Its methods are not safe for concurrent use.
type Strategy interface {
	// Discover adds a seed: an id that no link led to.
	Discover(id uint32)
	// Fetched reports the links of a page.
	Fetched(id uint32, links []uint32)
	// Next takes the id to fetch next; ok is false if none is left.
	Next() (id uint32, ok bool)
}

var (
	_ Strategy = (*pagerank.Frontier)(nil)
	_ Strategy = (*BreadthFirst)(nil)
	_ Strategy = (*BackLinks)(nil)
	_ Strategy = (*Batch)(nil)
	_ Strategy = (*PL)(nil)
	_ Strategy = (*VR)(nil)
	_ Strategy = (*OPIC)(nil)
)

// A table holds what strategies know about pages, by id.
type table struct {
	pages []page
	lists linklist.Cleaner
	found uint32 // pages so far
}

type page struct {
	score float64
	found uint32 // place in the order of discovery, from 1; 0 means not known
	place uint32 // in the heap, from 1; 0 means not in it
}

const maxIDs = math.MaxUint32 & math.MaxInt // an int has to hold them

// meet adds id and reports whether it is new.
func (t *table) meet(id uint32) (added bool) {
	if uint64(id) >= maxIDs {
		return false
	}
	t.cover(uint64(id) + 1)
	p := &t.pages[id]
	if p.found != 0 {
		return false
	}
	t.found++
	p.found = t.found
	return true
}

// cover makes room for n ids.
func (t *table) cover(n uint64) {
	if n > uint64(len(t.pages)) {
		t.pages = append(t.pages, make([]page, n-uint64(len(t.pages)))...)
	}
}

// links returns the links of a page, without those that do not count.
func (t *table) links(host func(uint32) uint32, id uint32, links []uint32) []uint32 {
	if uint64(id) >= maxIDs {
		return nil
	}
	t.lists.Limit, t.lists.Host = maxIDs, host
	clean, above := t.lists.Clean(id, links)
	t.cover(max(above, uint64(id)+1))
	return clean
}

// BreadthFirst takes ids in the order of discovery. The zero BreadthFirst is empty and ready to
// use, by one goroutine at a time.
type BreadthFirst struct {
	Host func(id uint32) uint32 // for the order of ties; may be nil

	table table
	queue []uint32
	next  int
}

// Discover queues id, once.
func (b *BreadthFirst) Discover(id uint32) {
	if b.table.meet(id) {
		b.queue = append(b.queue, id)
	}
}

// Fetched queues the links that are new.
func (b *BreadthFirst) Fetched(id uint32, links []uint32) {
	for _, to := range b.table.links(b.Host, id, links) {
		b.Discover(to)
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
