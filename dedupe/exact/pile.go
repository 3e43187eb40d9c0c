package exact

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// pileNames are files that are never in use after a restart: only the process that wrote them knows
// their contents. One is of the merge that is under way, and one of what is deferred meanwhile.
var pileNames = [2]string{"deferred-0", "deferred-1"}

// A pile has the URLs of deferred sightings and their data, as consecutive items: the latest in
// memory, and the others in a file if there are too many. Most items are never read, as their URLs
// turn out to be known. The others are read once.
type pile struct {
	fs      vfs.FS
	name    string
	file    vfs.File // nil until it is needed
	spilled int64    // bytes in it
	latest  []byte   // items after those; the capacity is fixed
	written *int64   // counts bytes
}

// itemSize bounds the bytes of an item, and maxItem those of any item.
func itemSize(url string, data []byte) int64 {
	return int64(4 + maxUvarint + len(url) + len(data))
}

const maxItem = 4 + MaxEntry

// size returns the place of the next item.
func (p *pile) size() int64 { return p.spilled + int64(len(p.latest)) }

// add appends an item and returns its place. If that fails, the pile is unchanged.
func (p *pile) add(url string, data []byte) (place int64, err error) {
	if int64(len(p.latest))+itemSize(url, data) > int64(cap(p.latest)) {
		if err := p.spill(); err != nil {
			return 0, err
		}
	}
	place = p.size()
	p.latest = appendItem(p.latest, url, data)
	return place, nil
}

// spill moves the items in memory to the file.
func (p *pile) spill() error {
	if p.file == nil {
		f, err := p.fs.Create(p.name)
		if err != nil {
			return fmt.Errorf("exact: create file for deferred URLs: %w", err)
		}
		p.file = f
	}
	// If this fails halfway, the next spill writes to the same place again.
	if _, err := p.file.WriteAt(p.latest, p.spilled); err != nil {
		return fmt.Errorf("exact: write deferred URLs: %w", err)
	}
	*p.written += int64(len(p.latest))
	p.spilled += int64(len(p.latest))
	p.latest = p.latest[:0]
	return nil
}

// clear keeps the file, and the next spills overwrite it: a new file would have to be allocated on
// disk each time.
func (p *pile) clear() { p.spilled, p.latest = 0, p.latest[:0] }

// remove closes the file and removes it.
func (p *pile) remove() error {
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	return cmp.Or(err, p.fs.Remove(p.name))
}

// A pileReader reads items in the order of their places.
type pileReader struct {
	*pile
	window window // of the file
}

// newPileReader returns a reader for the given number of items. If they are close to each other, it
// reads the whole file, and otherwise single pages.
func newPileReader(p *pile, items int, bytes *int64) *pileReader {
	const page, close = 4 << 10, 16 << 10
	name := func() string { return p.name }
	r := &pileReader{p, window{file: p.file, name: name, end: p.spilled, ahead: page, count: bytes}}
	if int64(items)*close > p.spilled {
		r.window.ahead = durable.WriteSize
	}
	return r
}

// item returns the item at a place, valid until the next call.
func (r *pileReader) item(place int64) ([]byte, error) {
	head, err := r.bytesAt(place, 4)
	if err != nil {
		return nil, err
	}
	return r.bytesAt(place, 4+int64(binary.LittleEndian.Uint32(head)))
}

// bytesAt returns bytes of one item. Spills end where items end, so no item is partly in memory.
func (r *pileReader) bytesAt(place, n int64) ([]byte, error) {
	if place >= r.spilled {
		return r.latest[place-r.spilled:][:n], nil
	}
	if n > min(maxItem, r.spilled-place) {
		return nil, durable.Corrupt(r.name, place, "an item is too large")
	}
	return r.window.at(place, n)
}
