package stage

import (
	"hash/maphash"
	"sync"
)

// Depths has the depths of the pages that only other sites link to, and from far away, in about 40 bytes
// each. Strangers can link to any page, and must not make it too deep for the links of its own site. Pages
// in the nearer half of what may be visited keep their depths: to check their links again would cost much
// and change little. Its methods are safe for concurrent use. A nil Depths has none.
type Depths struct {
	near int // depths up to it do not matter
	seed maphash.Seed
	mu   sync.Mutex
	of   map[uint64]int32 // by the hash of the URL
}

// NewDepths returns an empty Depths for pages up to a depth.
func NewDepths(most int) *Depths {
	return &Depths{near: most / 2, seed: maphash.MakeSeed(), of: map[uint64]int32{}}
}

// Found adds a page that was known before this run, if only other sites link to it.
func (d *Depths) Found(it Item) {
	if d == nil || !it.Strange || it.Depth <= d.near {
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
	isFar := it.Strange && it.Depth > d.near
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.of) == 0 && !isFar { // as in most crawls
		return false
	}
	hash := maphash.String(d.seed, it.URL)
	was, far := d.of[hash]
	if far && it.Depth < int(was) || !far && isFar { // it may be new, and not added yet
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
