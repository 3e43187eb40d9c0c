package exact

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// pileName is a file that never counts: it is empty, or the process that knows what is in it lives.
const pileName = "waiting"

// A pile holds the URLs of the sightings that wait, and their data, one after the other in items:
// the latest in memory, and if there are more than that holds, the others in a file. Most of them
// are never looked at again, as their URLs turn out to be known. Other items are read once.
//
// An item is the beginning of an entry as it is stored in a segment: all but the checksum.
type pile struct {
	disk    disk
	file    file   // nil as long as it was not needed
	spilled int64  // bytes in it
	latest  []byte // items behind those; the capacity is fixed
	written *int64 // counts bytes
}

// itemSize bounds the bytes of an item, and maxItem those of any.
func itemSize(url string, data []byte) int64 {
	return int64(4 + maxUvarint + len(url) + len(data))
}

const maxItem = 4 + MaxEntry

// size returns where the next item begins.
func (p *pile) size() int64 { return p.spilled + int64(len(p.latest)) }

// add puts an item on the pile and returns its place. If that fails, the pile is as it was.
func (p *pile) add(url string, data []byte) (place int64, err error) {
	if int64(len(p.latest))+itemSize(url, data) > int64(cap(p.latest)) {
		if err := p.spill(); err != nil {
			return 0, err
		}
	}
	place = p.size()
	start := len(p.latest)
	p.latest = append(p.latest, 0, 0, 0, 0)
	p.latest = appendContents(p.latest, url, data)
	binary.LittleEndian.PutUint32(p.latest[start:], uint32(len(p.latest)-start-4))
	return place, nil
}

// spill makes room in memory.
func (p *pile) spill() (err error) {
	if p.file == nil {
		if p.file, err = p.disk.create(pileName); err != nil {
			p.file = nil // an interface with a nil pointer in it would pass for a file
			return fmt.Errorf("exact: create file for what waits: %w", err)
		}
	}
	// If that fails halfway, the next spill writes to the same place again.
	if _, err := p.file.WriteAt(p.latest, p.spilled); err != nil {
		return fmt.Errorf("exact: write what waits: %w", err)
	}
	*p.written += int64(len(p.latest))
	p.spilled += int64(len(p.latest))
	p.latest = p.latest[:0]
	return nil
}

// clear keeps the file, and the next spills write over what is in it: a file that is made anew for
// each batch would have to be laid out on disk each time.
func (p *pile) clear() { p.spilled, p.latest = 0, p.latest[:0] }

// remove closes the file and removes it.
func (p *pile) remove() error {
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	return cmp.Or(err, p.disk.remove(pileName))
}

// A pileReader reads items in the order of their places.
type pileReader struct {
	*pile
	window []byte // of the file
	start  int64  // of it
	ahead  int64  // bytes to read at once
	bytes  *int64
}

// newPileReader is told how many items will be read, in order to read all of the file if they lie
// close to each other, and pages of it otherwise.
func newPileReader(p *pile, items int, bytes *int64) *pileReader {
	const page, close = 4 << 10, 16 << 10
	r := &pileReader{pile: p, ahead: page, bytes: bytes}
	if int64(items)*close > p.spilled {
		r.ahead = writeSize
	}
	return r
}

// item returns what add has put at a place, valid until the next call.
func (r *pileReader) item(place int64) ([]byte, error) {
	head, err := r.bytesAt(place, 4)
	if err != nil {
		return nil, err
	}
	return r.bytesAt(place, 4+int64(binary.LittleEndian.Uint32(head)))
}

// bytesAt returns bytes of one item. As spills end where items end, none lies partly in memory.
func (r *pileReader) bytesAt(place, n int64) ([]byte, error) {
	if place >= r.spilled {
		return r.latest[place-r.spilled:][:n], nil
	}
	if n > min(maxItem, r.spilled-place) {
		return nil, &CorruptError{pileName, place, "an item is too large"}
	}
	if place < r.start || place+n > r.start+int64(len(r.window)) {
		size := min(max(r.ahead, n), r.spilled-place)
		r.window = slices.Grow(r.window[:0], int(size))[:size]
		r.start = place
		*r.bytes += size
		if err := readFull(r.file, pileName, r.window, place); err != nil {
			return nil, err
		}
	}
	return r.window[place-r.start:][:n], nil
}
