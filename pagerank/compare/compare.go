package compare

import (
	"math"

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

// meet adds id and reports whether it is new.
func (t *table) meet(id uint32) (added bool) {
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
	t.lists.Limit, t.lists.Host = math.MaxInt, host
	clean, above := t.lists.Clean(id, links)
	t.cover(max(above, uint64(id)+1))
	return clean
}

// A list has ids in the order in which they are taken.
type list struct {
	table
	queue []uint32
	next  int // place in queue
}

// add queues id if it is new, and reports whether it is.
func (l *list) add(id uint32) (added bool) {
	if added = l.meet(id); added {
		l.queue = append(l.queue, id)
	}
	return added
}

// Next takes the next id.
func (l *list) Next() (id uint32, ok bool) {
	if l.next == len(l.queue) {
		return 0, false
	}
	l.next++
	return l.queue[l.next-1], true
}

// BreadthFirst takes ids in the order of discovery. The zero BreadthFirst is empty and ready to
// use, by one goroutine at a time.
type BreadthFirst struct {
	Host func(id uint32) uint32 // for the order of ties; may be nil

	list
}

// Discover queues id, once.
func (b *BreadthFirst) Discover(id uint32) { b.add(id) }

// Fetched queues the links that are new.
func (b *BreadthFirst) Fetched(id uint32, links []uint32) {
	for _, to := range b.links(b.Host, id, links) {
		b.add(to)
	}
}
