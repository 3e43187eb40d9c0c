package exact

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"
)

// A fingerprint stands for a URL. Narrow ones leave the second word 0.
type fingerprint [2]uint64

func (f fingerprint) compare(g fingerprint) int {
	if c := cmp.Compare(f[0], g[0]); c != 0 {
		return c
	}
	return cmp.Compare(f[1], g[1])
}

// less is compare below zero, in little code that can be inlined.
func (f fingerprint) less(g fingerprint) bool {
	return f[0] < g[0] || f[0] == g[0] && f[1] < g[1]
}

// These constants are on disk. Do not change them; add a version.
const (
	runMagic      = "SPNXRUN1"
	runHeader     = 8 + 4 + 8 + 4 // magic, width, count, checksum
	blockSize     = 16 << 10      // bytes of fingerprints in a block
	blockChecksum = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A run is a file of fingerprints in ascending order.
type run struct {
	number uint64
	count  int64
	width  int // bytes of a fingerprint on disk, 8 or 16
	file   file
	firsts []fingerprint // of each block, to leave out those in which nothing is looked for
}

func runName(number uint64) string { return fmt.Sprintf("run-%08d", number) }

func (r *run) name() string { return runName(r.number) }

func (r *run) perBlock() int64 { return int64(blockSize / r.width) }

func (r *run) blocks() int64 { return (r.count + r.perBlock() - 1) / r.perBlock() }

// offset returns where a block begins.
func (r *run) offset(block int64) int64 { return runHeader + block*(blockSize+blockChecksum) }

// blockBytes returns the length of a block without its checksum.
func (r *run) blockBytes(block int64) int {
	return int(min(r.perBlock(), r.count-block*r.perBlock())) * r.width
}

func (r *run) header() []byte {
	b := append(make([]byte, 0, runHeader), runMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(r.width))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.count))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// checksum includes which run and which block it is, so that neither can be taken for another.
func (r *run) checksum(block int64, b []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:8], r.number)
	binary.LittleEndian.PutUint64(place[8:], uint64(block))
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, b)
}

// decode reads the i-th fingerprint of a block. They are big endian, so that dumps are sorted.
func (r *run) decode(b []byte, i int) (f fingerprint) {
	b = b[i*r.width:]
	f[0] = binary.BigEndian.Uint64(b)
	if r.width == 16 {
		f[1] = binary.BigEndian.Uint64(b[8:])
	}
	return f
}

// A runReader reads the blocks of a run, each at most once and in order.
type runReader struct {
	*run
	ahead   int64 // blocks to read at once
	buf     []byte
	start   int64  // first block in buf
	loaded  int64  // blocks in buf
	current int64  // block that was asked for last, or -1
	data    []byte // of current
	bytes   *int64
}

// maxAhead makes reads of 256 KiB.
const maxAhead = 16

func newRunReader(r *run, ahead int64, bytes *int64) *runReader {
	return &runReader{run: r, ahead: min(max(ahead, 1), maxAhead), current: -1, bytes: bytes}
}

// block returns the bytes of a block, valid until the next call.
func (r *runReader) block(n int64) ([]byte, error) {
	if n == r.current {
		return r.data, nil
	}
	if n < r.start || n >= r.start+r.loaded {
		if err := r.load(n); err != nil {
			return nil, err
		}
	}
	at := r.offset(n) - r.offset(r.start)
	size := int64(r.blockBytes(n))
	b, sum := r.buf[at:at+size], binary.LittleEndian.Uint32(r.buf[at+size:])
	if r.checksum(n, b) != sum {
		return nil, &CorruptError{r.name(), r.offset(n), "wrong checksum"}
	}
	r.current, r.data = n, b
	return b, nil
}

// load reads a block and those behind it, as many as are to be read at once.
func (r *runReader) load(n int64) error {
	last := min(n+r.ahead, r.blocks()) - 1
	size := r.offset(last) + int64(r.blockBytes(last)) + blockChecksum - r.offset(n)
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, size)
	}
	r.buf = r.buf[:size]
	r.start, r.loaded = n, last-n+1
	*r.bytes += size
	return readFull(r.file, r.name(), r.buf, r.offset(n))
}

// openRun opens a run, reads all of it, and gives each fingerprint to visit.
func openRun(d disk, number uint64, width int, visit func(fingerprint)) (*run, error) {
	r := &run{number: number, width: width}
	var err error
	if r.file, err = d.open(r.name()); err != nil {
		return nil, fmt.Errorf("exact: open run: %w", err)
	}
	if err := r.readAll(visit); err != nil {
		_ = r.file.Close() // the first error says more
		return nil, err
	}
	return r, nil
}

// readAll checks all there is to a run, and not only its checksums: a run that was forged, or written
// by a program with an error, must not make merges lose URLs.
func (r *run) readAll(visit func(fingerprint)) error {
	head := make([]byte, runHeader)
	if err := readFull(r.file, r.name(), head, 0); err != nil {
		return err
	}
	r.count = int64(binary.LittleEndian.Uint64(head[12:]))
	size, err := r.file.size()
	if err != nil {
		return fmt.Errorf("exact: read %s: %w", r.name(), err)
	}
	switch {
	case !slices.Equal(head, r.header()):
		return &CorruptError{r.name(), 0, "wrong header"}
	case r.count < 0 || r.count > size || size != r.fileSize():
		return &CorruptError{r.name(), size, "wrong size of the file"}
	}
	var bytes int64
	reader := newRunReader(r, maxAhead, &bytes)
	last := fingerprint{}
	for n := range r.blocks() {
		b, err := reader.block(n)
		if err != nil {
			return err
		}
		for i := range len(b) / r.width {
			f := r.decode(b, i)
			if f.compare(last) <= 0 && (n > 0 || i > 0) {
				return &CorruptError{r.name(), r.offset(n), "fingerprints out of order"}
			}
			if i == 0 {
				r.firsts = append(r.firsts, f)
			}
			visit(f)
			last = f
		}
	}
	return nil
}

func (r *run) fileSize() int64 {
	if r.count == 0 {
		return runHeader
	}
	last := r.blocks() - 1
	return r.offset(last) + int64(r.blockBytes(last)) + blockChecksum
}

// A runWriter writes a run whose count is known from the start.
type runWriter struct {
	*run
	to      *writer
	block   []byte
	written int64
}

// createRun makes room for nothing yet: a disk that is too full for the run is found by finish.
func createRun(d disk, number uint64, width int, count int64) (*runWriter, error) {
	r := &run{number: number, width: width, count: count}
	var err error
	if r.file, err = d.create(r.name()); err != nil {
		return nil, fmt.Errorf("exact: create run: %w", err)
	}
	w := &runWriter{run: r, to: newWriter(r.file, 0), block: make([]byte, 0, blockSize)}
	w.to.write(r.header())
	return w, nil
}

// add takes fingerprints in ascending order.
func (w *runWriter) add(f fingerprint) {
	if len(w.block) == 0 {
		w.firsts = append(w.firsts, f)
	}
	w.block = binary.BigEndian.AppendUint64(w.block, f[0])
	if w.width == 16 {
		w.block = binary.BigEndian.AppendUint64(w.block, f[1])
	}
	if len(w.block) == blockSize {
		w.endBlock()
	}
}

func (w *runWriter) endBlock() {
	sum := w.checksum(w.written, w.block)
	w.to.write(w.block)
	w.to.write(binary.LittleEndian.AppendUint32(nil, sum))
	w.block = w.block[:0]
	w.written++
}

func (w *runWriter) finish() error {
	if len(w.block) > 0 {
		w.endBlock()
	}
	if err := w.to.finish(); err != nil {
		return fmt.Errorf("exact: write %s: %w", w.name(), err)
	}
	return nil
}

// dropKnown returns the sightings that are not in the run. Those that are new for sure are not
// looked for. It requires that they are sorted by fingerprint, and moves them within all.
func (r *run) dropKnown(all []sighting, bytes *int64) (unknown []sighting, err error) {
	uncertain := int64(0)
	for i := range all {
		if !all[i].isNew() {
			uncertain++
		}
	}
	// Blocks are read ahead if most of them will be needed.
	reader := newRunReader(r, 2*uncertain*maxAhead/(r.blocks()+1), bytes)
	unknown = all[:0]
	var b []byte // what is left of the block
	block, end := int64(-1), fingerprint{}
	for _, s := range all {
		if s.isNew() {
			unknown = append(unknown, s)
			continue
		}
		print := s.print()
		if block < 0 || !print.less(end) {
			block, end = r.find(print, block)
			if b, err = reader.block(block); err != nil {
				return nil, err
			}
		}
		b = r.skip(b, print)
		if len(b) == 0 || r.decode(b, 0) != print {
			unknown = append(unknown, s)
		}
	}
	return unknown, nil
}

// find returns the block in which f must be, if it is in the run, and where the next one begins. It
// looks from a block on that does not lie behind it.
func (r *run) find(f fingerprint, from int64) (block int64, end fingerprint) {
	last := int64(len(r.firsts)) - 1
	for block = max(from, 0); block < last; block++ {
		if end = r.firsts[block+1]; f.less(end) {
			return block, end
		}
	}
	return last, fingerprint{math.MaxUint64, math.MaxUint64}
}

// skip drops the fingerprints below f from the start of a block. There are some ten of them if a
// batch is as large as it should be, so that nothing is won by searching. Counting how many of a few
// are below f takes no decisions, which the processor could only guess.
func (r *run) skip(b []byte, f fingerprint) []byte {
	const few = 8
	for leap := few * r.width; len(b) >= leap; {
		below := uint64(0)
		for at := 0; at < leap; at += r.width {
			_, borrow := bits.Sub64(binary.BigEndian.Uint64(b[at:]), f[0], 0)
			below += borrow
		}
		b = b[int(below)*r.width:]
		if below < few {
			break
		}
	}
	for len(b) > 0 && r.decode(b, 0).less(f) {
		b = b[r.width:]
	}
	return b
}

// A cursor walks through a run.
type cursor struct {
	from  *runReader
	block int64 // that comes next
	data  []byte
	print fingerprint
	done  bool
}

// next moves to the next fingerprint, if there is one.
func (c *cursor) next() (err error) {
	if len(c.data) == 0 {
		if c.block == c.from.blocks() {
			c.done = true
			return nil
		}
		if c.data, err = c.from.block(c.block); err != nil {
			return err
		}
		c.block++
	}
	c.print = c.from.decode(c.data, 0)
	c.data = c.data[c.from.width:]
	return nil
}

// mergeRuns writes the fingerprints of the runs and of the sightings, all of which differ.
func (w *runWriter) mergeRuns(runs []*run, news []sighting, bytes *int64) error {
	cursors := make([]*cursor, 0, len(runs))
	for _, r := range runs {
		c := &cursor{from: newRunReader(r, maxAhead, bytes)}
		if err := c.next(); err != nil {
			return err
		}
		cursors = append(cursors, c)
	}
	for {
		var least *cursor
		for _, c := range cursors {
			if !c.done && (least == nil || c.print.less(least.print)) {
				least = c
			}
		}
		switch {
		case least == nil && len(news) == 0:
			return nil
		case least == nil || len(news) > 0 && news[0].print().less(least.print):
			w.add(news[0].print())
			news = news[1:]
		default:
			w.add(least.print)
			if err := least.next(); err != nil {
				return err
			}
		}
	}
}
