package satstore

import (
	"encoding/binary"

	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
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

// lostNumber stands for the bucket of records that were lost in a split. Their ids are still known,
// but nothing leads to them. It is on disk.
const lostNumber = manifest.NoNumber

// strayNumber stands for the bucket of records whose ids are known, but not where they are, as Open could
// not read a block that says so. Whoever reads such a record takes it for one of the bucket in which it
// is; until then, nothing leads to it. It is on disk.
const strayNumber = lostNumber - 1

type page struct {
	numbers *[pageNumbers]uint16 // nil if all are 0: none was used yet, or all records are gone
	used    int                  // numbers that are not 0
	changed bool                 // since it was last saved
	urgent  bool                 // the next checkpoint must save it, whatever the rotation
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
			at.numbers, at.changed, at.urgent = nil, false, false
		}
	}
}

func (p *places) get(seq uint64) uint16 {
	if seq/pageNumbers >= uint64(len(p.pages)) || p.pages[seq/pageNumbers].numbers == nil {
		return 0
	}
	return p.pages[seq/pageNumbers].numbers[seq%pageNumbers]
}

// lose replaces the numbers of a set by lostNumber.
func (p *page) lose(gone map[uint16]bool) {
	for i := 0; p.numbers != nil && i < pageNumbers; i++ {
		if n := p.numbers[i]; n != 0 && gone[n] {
			p.numbers[i], p.changed, p.urgent = lostNumber, true, true
		}
	}
}

// A pageImage is a page that a checkpoint saves.
type pageImage struct {
	index   int
	numbers *[pageNumbers]uint16
	urgent  bool
	saved   extent.Extent
}

// images returns copies of the urgent pages, and of other ones that have changed, in rotation, up to
// most in all. If most is negative, it returns all pages that have changed without a copy, and nothing
// may change until they are written.
func (p *places) images(most int) (images []*pageImage) {
	take := func(index int) {
		page := p.pages[index]
		image := &pageImage{index: index, numbers: page.numbers, urgent: page.urgent}
		if most >= 0 {
			copied := *page.numbers
			image.numbers = &copied
		}
		page.changed, page.urgent = false, false
		images = append(images, image)
	}
	for i, page := range p.pages {
		if page.urgent {
			take(i)
		}
	}
	for range p.pages {
		if most >= 0 && len(images) >= most {
			break
		}
		index := p.turn % len(p.pages)
		if p.turn = index + 1; p.pages[index].changed {
			take(index)
		}
	}
	return images
}

// keep undoes images after a checkpoint has failed.
func (p *places) keep(images []*pageImage) {
	for _, image := range images {
		if page := p.pages[image.index]; page.numbers != nil {
			page.changed, page.urgent = true, page.urgent || image.urgent
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
		if n != 0 && (n >= strayNumber || exists(n)) {
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
