package stage

import (
	"errors"
	"hash/maphash"
	"sync"

	"github.com/spinneret-go/spinneret/satstore"
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

// Latest returns the item of a page with the depth that it has by now. It may have become nearer since it was
// handed out.
func (d *Depths) Latest(it Item) Item {
	if d == nil || it.Visit == nil || it.Sitemap != nil {
		return it
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if depth, far := d.of[maphash.String(d.seed, it.URL)]; far && int(depth) < it.Depth {
		it.Depth = int(depth)
		it.Visit.Is(it)
	}
	return it
}

// nearerForm begins a message that Nearer leaves for a record; see AppendRecord.
const nearerForm = 0x40

// Nearer leaves word that a page is fewer links away from a seed than was known. When it is due, it has that
// depth, and if it was visited before, its links are checked again.
func (p *Pages) Nearer(it Item) error {
	if err := p.add(); err != nil { // it may have been discovered just now
		return err
	}
	record := AppendRecord([]byte{nearerForm}, Item{URL: it.URL, Depth: it.Depth, Hops: it.Hops, Strange: it.Strange}, State{})
	err := p.store.Update(it.URL, record)
	if errors.Is(err, satstore.ErrUnknown) || errors.Is(err, satstore.ErrSize) { // no room for more words
		return nil
	}
	return err
}

// NearerAs returns a known page with the depth of a link to it, or false if it is not nearer.
func (it Item) NearerAs(link Item) (Item, bool) {
	if it.Sitemap != nil || it.Depth <= link.Depth {
		return it, false
	}
	it.Depth, it.Hops, it.Strange = link.Depth, link.Hops, link.Strange
	return it, true
}

// mergeNearer applies a message of Nearer to a record.
func mergeNearer(url string, data, message []byte) []byte {
	it, state, err := ReadRecord(url, data)
	link, _, e := ReadRecord(url, message[1:])
	near, nearer := it.NearerAs(link)
	if err != nil || e != nil || !nearer {
		return data
	}
	state.Relink = state.Visited()
	return AppendRecord(nil, near, state)
}
