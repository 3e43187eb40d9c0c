package satstore

import (
	"encoding/binary"

	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// places is the bucket index: for each sequence number, the 16-bit number of the bucket that holds
// the record, or 0. It grows by pages and is never copied as a whole.
//
// Each checkpoint saves a few pages, in rotation. The changes since a page was saved are in extents
// of later generations, so Open reads only those.
type places struct {
	pages []*page
	turn  int // the page to save next
}

const pageNumbers = 64 << 10

type page struct {
	numbers *[pageNumbers]uint16 // nil if all are 0: none was used yet, or all records are gone
	used    int                  // numbers that are not 0
	changed bool                 // since it was last saved
	saved   extent.Extent        // if its Size is 0, the page was empty at the checkpoint Generation
}

func (p *places) set(seq uint64, number uint16) {
	for seq/pageNumbers >= uint64(len(p.pages)) {
		p.pages = append(p.pages, &page{})
	}
	at := p.pages[seq/pageNumbers]
	if at.numbers == nil {
		if number == 0 {
			return
		}
		at.numbers = new([pageNumbers]uint16)
	}
	was := &at.numbers[seq%pageNumbers]
	if *was == 0 {
		at.used++
	}
	*was, at.changed = number, true
	if number == 0 {
		if at.used--; at.used == 0 {
			at.numbers, at.changed = nil, false
		}
	}
}

func (p *places) get(seq uint64) uint16 {
	if seq/pageNumbers >= uint64(len(p.pages)) || p.pages[seq/pageNumbers].numbers == nil {
		return 0
	}
	return p.pages[seq/pageNumbers].numbers[seq%pageNumbers]
}

// A pageImage is a page that a checkpoint saves.
type pageImage struct {
	index   int
	numbers *[pageNumbers]uint16
	saved   extent.Extent
}

// images returns copies of some pages that have changed, in rotation. If most is negative, it returns
// all of them without a copy, and nothing may change until they are written.
func (p *places) images(most int) (images []*pageImage) {
	for range p.pages {
		if most >= 0 && len(images) >= most {
			break
		}
		index := p.turn % len(p.pages)
		p.turn = index + 1
		page := p.pages[index]
		if !page.changed {
			continue
		}
		image := &pageImage{index: index, numbers: page.numbers}
		if most >= 0 {
			copied := *page.numbers
			image.numbers = &copied
		}
		page.changed = false
		images = append(images, image)
	}
	return images
}

// keep undoes images after a checkpoint has failed.
func (p *places) keep(images []*pageImage) {
	for _, image := range images {
		if page := p.pages[image.index]; page.numbers != nil {
			page.changed = true
		}
	}
}

// encode returns the numbers in their form on disk.
func (p *pageImage) encode() []byte {
	b := make([]byte, 0, 2*pageNumbers)
	for _, n := range p.numbers {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	return b
}

// decode undoes encode, except for the numbers of buckets that are gone. They are those of deleted
// records, and another bucket may get them. It reports whether b has the right size.
func (p *page) decode(b []byte, exists func(number uint16) bool) bool {
	if len(b) != 2*pageNumbers {
		return false
	}
	p.numbers = new([pageNumbers]uint16)
	for i := range p.numbers {
		n := binary.LittleEndian.Uint16(b[2*i:])
		if n != 0 && exists(n) {
			p.numbers[i] = n
			p.used++
		}
	}
	if p.used == 0 {
		p.numbers = nil
	}
	return true
}

// extents returns the extents of the saved pages, and calls release for those of pages that have
// become empty. A page that has not changed since its save is as good as one saved now, so it gets
// the generation of this checkpoint. A new page was empty at the checkpoint before this one: while
// a store grows, most pages have never been saved.
func (p *places) extents(generation uint32, release func(extent.Span)) []extent.Extent {
	all := make([]extent.Extent, len(p.pages))
	for i, page := range p.pages {
		switch {
		case page.numbers == nil:
			if page.saved.Size > 0 {
				release(page.saved.Span())
			}
			page.saved = extent.Extent{Generation: generation}
		case page.saved == (extent.Extent{}):
			page.saved.Generation = generation - 1
		}
		all[i] = page.saved
		if !page.changed {
			all[i].Generation = generation
		}
	}
	return all
}
