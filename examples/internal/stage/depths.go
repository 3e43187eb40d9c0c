package stage

import (
	"hash/maphash"
	"sync"
)

// Depths has the depths of the pages that only other sites link to, in about 40 bytes each. Strangers can
// link to any page from far away, and must not make it too deep for the links of its own site. Its methods
// are safe for concurrent use. A nil Depths has none.
type Depths struct {
	seed maphash.Seed
	mu   sync.Mutex
	of   map[uint64]int32 // by the hash of the URL
}

// NewDepths returns an empty Depths.
func NewDepths() *Depths { return &Depths{seed: maphash.MakeSeed(), of: map[uint64]int32{}} }

// Found adds a page that was known before this run, if only other sites link to it.
func (d *Depths) Found(it Item) {
	if d == nil || !it.Strange || it.Depth == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[maphash.String(d.seed, it.URL)] = int32(it.Depth)
}

// Nearer reports whether a link makes a page nearer than it was. The next call for the same link does not.
// A first link from another site adds the page.
func (d *Depths) Nearer(it Item) bool {
	if d == nil || it.Sitemap != nil {
		return false
	}
	hash := maphash.String(d.seed, it.URL)
	d.mu.Lock()
	defer d.mu.Unlock()
	was, far := d.of[hash]
	if far && it.Depth < int(was) || !far && it.Strange { // it may be new, and not added yet
		d.of[hash] = int32(it.Depth)
	}
	return far && it.Depth < int(was)
}

// Latest returns the item of a page with the depth that it has by now, and whether that is less than it had.
func (d *Depths) Latest(it Item) (Item, bool) {
	if d == nil || it.Visit == nil || it.Sitemap != nil {
		return it, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	depth, far := d.of[maphash.String(d.seed, it.URL)]
	if !far || int(depth) >= it.Depth {
		return it, false
	}
	it.Depth = int(depth)
	it.Visit.Is(it)
	return it, true
}
