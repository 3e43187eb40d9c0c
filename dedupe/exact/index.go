package exact

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// A fingerprint stands for a URL. Zero is that of none.
type fingerprint uint64

// These constants are on disk. Do not change them; add a version.
const (
	indexMagic   = "SPNXIDX2"
	indexHeader  = 8 + 4 + 8 + 4 // magic, width, count, checksum; zeros up to the first page
	printSize    = 8             // of a fingerprint, the width
	pageSize     = 4 << 10
	pageChecksum = 4
	perPage      = (pageSize - pageChecksum) / printSize
)

// An index is a file of fingerprints in ascending order, and never changes. Its pages begin at
// multiples of their size. The first fingerprint of each page is in memory, so that a fingerprint
// is found, or found missing, by reading one page.
//
// It is not a table of internal/table, whose runs would take a read each. A sweep copies all that is
// between two new fingerprints at once, in a third of the time that a merge takes there.
type index struct {
	number uint64
	count  int64
	file   vfs.File // nil if the index is empty and has no file
	firsts []fingerprint
}

func indexName(number uint64) string { return fmt.Sprintf("index-%08d", number) }

func (x *index) name() string { return indexName(x.number) }

func (x *index) pages() int64 { return (x.count + perPage - 1) / perPage }

// offset returns where a page begins. The header takes the place of a page.
func (x *index) offset(page int64) int64 { return (1 + page) * pageSize }

func (x *index) fileSize() int64 { return x.offset(x.pages()) }

// used returns how many bytes of a page are fingerprints.
func (x *index) used(page int64) int {
	return int(min(perPage, x.count-page*perPage)) * printSize
}

func (x *index) header() []byte {
	b := append(make([]byte, 0, pageSize), indexMagic...)
	b = binary.LittleEndian.AppendUint32(b, printSize)
	b = binary.LittleEndian.AppendUint64(b, uint64(x.count))
	b = binary.LittleEndian.AppendUint32(b, durable.Sum(b))
	return b[:pageSize]
}

func (x *index) checksum(page int64, b []byte) uint32 { return durable.SumAt(x.number, page, b) }

// check verifies the checksum of a page and returns its fingerprints.
func (x *index) check(page int64, b []byte) ([]byte, error) {
	body, sum := b[:pageSize-pageChecksum], binary.LittleEndian.Uint32(b[pageSize-pageChecksum:])
	if x.checksum(page, body) != sum {
		return nil, durable.Corrupt(x.name(), x.offset(page), "wrong checksum")
	}
	return body[:x.used(page)], nil
}

// decode reads the i-th fingerprint of a page. They are big endian, so that dumps are sorted.
func decode(b []byte, i int) fingerprint {
	return fingerprint(binary.BigEndian.Uint64(b[i*printSize:]))
}

var pageBuffers = sync.Pool{New: func() any { return new([pageSize]byte) }}

// has reports whether the index has a fingerprint. It reads at most one page.
func (x *index) has(f fingerprint) (bool, error) {
	page := x.find(f)
	if page < 0 {
		return false, nil
	}
	b := pageBuffers.Get().(*[pageSize]byte)
	defer pageBuffers.Put(b)
	if err := readFull(x.file, x.name, b[:], x.offset(page)); err != nil {
		return false, err
	}
	prints, err := x.check(page, b[:])
	if err != nil {
		return false, err
	}
	_, found := sort.Find(len(prints)/printSize, func(i int) int { return cmp.Compare(f, decode(prints, i)) })
	return found, nil
}

// find returns the only page that can have f, or -1 if none can. Fingerprints are distributed
// evenly, so the page is close to the guess, whatever the size of the index.
func (x *index) find(f fingerprint) (page int64) {
	pages := len(x.firsts)
	guess, _ := bits.Mul64(uint64(f), uint64(pages))
	// Pages below low start at or below f, and pages from high on start above it.
	low, high := int(guess), int(guess)
	for step := 4; low > 0 && f < x.firsts[low-1]; step *= 2 {
		low, high = max(low-step, 0), low-1
	}
	for step := 4; high < pages && f >= x.firsts[high]; step *= 2 {
		low, high = high+1, min(high+step, pages)
	}
	low += sort.Search(high-low, func(i int) bool { return f < x.firsts[low+i] })
	return int64(low) - 1
}

// An indexReader reads pages in order, each at most once.
type indexReader struct {
	*index
	window window
}

// newIndexReader returns a reader that reads some pages at once, and counts the bytes.
func newIndexReader(x *index, pages int64, bytes *int64) indexReader {
	return indexReader{x, window{
		file: x.file, name: x.name, end: x.fileSize(), ahead: pages * pageSize, count: bytes,
	}}
}

// maxAhead is the number of pages in the largest read.
const maxAhead = durable.WriteSize / pageSize

// page returns the fingerprints of a page, valid until the next call.
func (r *indexReader) page(n int64) ([]byte, error) {
	b, err := r.window.at(r.offset(n), pageSize)
	if err != nil {
		return nil, err
	}
	prints, err := r.check(n, b)
	if err != nil {
		r.window.forget()
	}
	return prints, err
}

// openIndex opens an index, reads all of it, and passes each fingerprint to visit. It checks the
// order as well as the checksums: an index that was forged, or written by a program with a bug,
// must not lose URLs.
func openIndex(fs vfs.FS, number uint64, visit func(fingerprint)) (*index, error) {
	x := &index{number: number}
	var err error
	if x.file, err = fs.Open(x.name()); err != nil {
		return nil, fmt.Errorf("exact: open index: %w", durable.Required(x.name(), err))
	}
	if err := x.readAll(visit); err != nil {
		_ = x.file.Close() // the first error says more
		return nil, err
	}
	x.file.Random()
	return x, nil
}

func (x *index) readAll(visit func(fingerprint)) error {
	head := make([]byte, pageSize)
	if err := readFull(x.file, x.name, head, 0); err != nil {
		return err
	}
	x.count = int64(binary.LittleEndian.Uint64(head[12:]))
	size, err := x.file.Size()
	if err != nil {
		return fmt.Errorf("exact: read %s: %w", x.name(), err)
	}
	switch {
	case !slices.Equal(head, x.header()):
		return durable.Corrupt(x.name(), 0, "wrong header")
	case x.count < 0 || x.count > size || size != x.fileSize():
		return durable.Corrupt(x.name(), size, "wrong file size")
	}
	reader, last := newIndexReader(x, maxAhead, nil), fingerprint(0)
	for n := range x.pages() {
		b, err := reader.page(n)
		if err != nil {
			return err
		}
		for i := range len(b) / printSize {
			f := decode(b, i)
			if f <= last {
				return durable.Corrupt(x.name(), x.offset(n), "fingerprints out of order")
			}
			if i == 0 {
				x.firsts = append(x.firsts, f)
			}
			visit(f)
			last = f
		}
	}
	return nil
}

// A join looks up fingerprints in ascending order, and reads each page at most once.
type join struct {
	indexReader
	rest []byte      // of the current page
	end  fingerprint // the first of the next page
}

// expect says how many look-ups there will be, beginning at any page. Pages are read ahead if most
// of them will be needed.
func (j *join) expect(lookups int64) {
	j.window.ahead = pageSize * min(max(2*lookups*maxAhead/(j.pages()+1), 1), maxAhead)
}

// has reports whether the index has a fingerprint.
func (j *join) has(f fingerprint) (bool, error) {
	if f >= j.end {
		page := j.find(f)
		j.rest, j.end = nil, 0 // if the page cannot be read
		if page >= 0 {
			b, err := j.page(page)
			if err != nil {
				return false, err
			}
			j.rest = b
		}
		j.end = j.begin(page + 1)
	}
	j.rest = skip(j.rest, f)
	return len(j.rest) > 0 && decode(j.rest, 0) == f, nil
}

// begin returns the first fingerprint of a page, or the greatest possible one after the last page.
func (x *index) begin(page int64) fingerprint {
	if page < int64(len(x.firsts)) {
		return x.firsts[page]
	}
	return math.MaxUint64
}

// skip drops the fingerprints below f from the start of a page. There are few of them if batches
// are large. Counting how many of eight are below f needs no branches, which would be
// unpredictable.
func skip(b []byte, f fingerprint) []byte {
	const few = 8
	for leap := few * printSize; len(b) >= leap; {
		below := uint64(0)
		for at := 0; at < leap; at += printSize {
			_, borrow := bits.Sub64(binary.BigEndian.Uint64(b[at:]), uint64(f), 0)
			below += borrow
		}
		b = b[int(below)*printSize:]
		if below < few {
			break
		}
	}
	for len(b) > 0 && decode(b, 0) < f {
		b = b[printSize:]
	}
	return b
}
