package satstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// These constants are on disk. Do not change them; add a version.
const (
	runMagic    = "SATRUN1\n"
	runHeader   = 8 + 8 + 8 + 4                    // magic, count, bytes of the filter, checksum
	runEntry    = fingerprintSize + 8              // sequence number with the mark of a deleted id
	runPerBlock = 682                              // entries in a block
	runBlock    = runPerBlock*runEntry + checkSize // 16 KiB less 12 bytes
	tailPiece   = 64 << 10                         // bytes of the tail that share a checksum
	checkSize   = 4
	deletedBit  = 1 << 63
)

// A run is a file of ids in order, with their sequence numbers. It is never changed.
type run struct {
	number uint64
	count  int64
	file   vfs.File
	firsts []uint64 // beginnings of the first fingerprint of each block
	filter filter

	block []byte // the one that was read last, as sorted look-ups come together
	at    int64  // its number, or -1
}

func runName(number uint64) string { return fmt.Sprintf("ids-%08d", number) }

func (r *run) name() string { return runName(r.number) }

func (r *run) blocks() int64 { return (r.count + runPerBlock - 1) / runPerBlock }

func (r *run) offset(block int64) int64 { return runHeader + block*runBlock }

// entries returns how many entries a block has.
func (r *run) entries(block int64) int { return int(min(runPerBlock, r.count-block*runPerBlock)) }

// tail returns where the firsts and the filter begin.
func (r *run) tail() int64 {
	n := r.blocks()
	if n == 0 {
		return runHeader
	}
	return r.offset(n-1) + int64(r.entries(n-1)*runEntry) + checkSize
}

// checksum includes which run and which piece of it this is, so that neither is taken for another.
func (r *run) checksum(at int64, b []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:8], r.number)
	binary.LittleEndian.PutUint64(place[8:], uint64(at))
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, b)
}

// seal appends the checksum of the bytes from start on, which are to be written at offset at.
func (r *run) seal(b []byte, start int, at int64) []byte {
	return binary.LittleEndian.AppendUint32(b, r.checksum(at, b[start:]))
}

// open checks and returns bytes that were sealed.
func (r *run) open(b []byte, at int64) ([]byte, error) {
	if err := readFull(r.file, r.name(), b, at); err != nil {
		return nil, err
	}
	n := len(b) - checkSize
	if r.checksum(at, b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, &CorruptError{r.name(), at, "wrong checksum"}
	}
	return b[:n], nil
}

// load reads a block unless it is the one that was read last.
func (r *run) load(block int64) error {
	if r.at == block && r.block != nil {
		return nil
	}
	size := r.entries(block)*runEntry + checkSize
	if cap(r.block) < size {
		r.block = make([]byte, runBlock)
	}
	b, err := r.open(r.block[:size], r.offset(block))
	if err != nil {
		r.at = -1
		return err
	}
	r.block, r.at = b, block
	return nil
}

// find returns the value of a fingerprint.
func (r *run) find(key fingerprint) (value uint64, found bool, err error) {
	if !r.filter.has(key) {
		return 0, false, nil
	}
	head := binary.BigEndian.Uint64(key[:])
	block := int64(sort.Search(len(r.firsts), func(i int) bool { return r.firsts[i] > head })) - 1
	// Two fingerprints may begin alike where one block ends and the next one begins.
	for ; block >= 0; block-- {
		if err := r.load(block); err != nil {
			return 0, false, err
		}
		n := len(r.block) / runEntry
		i := sort.Search(n, func(i int) bool {
			return bytes.Compare(r.block[i*runEntry:][:fingerprintSize], key[:]) >= 0
		})
		if i < n && bytes.Equal(r.block[i*runEntry:][:fingerprintSize], key[:]) {
			return binary.LittleEndian.Uint64(r.block[i*runEntry+fingerprintSize:]), true, nil
		}
		if r.firsts[block] != head {
			break
		}
	}
	return 0, false, nil
}

func (r *run) header() []byte {
	b := append(make([]byte, 0, runHeader), runMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.count))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(r.filter)))
	return r.seal(b, 0, 0)
}

// openRun opens a run and reads what is kept of it in memory.
func openRun(fs vfs.FS, number uint64) (*run, error) {
	r := &run{number: number, at: -1}
	var err error
	if r.file, err = fs.Open(r.name()); err != nil {
		return nil, fmt.Errorf("satstore: open ids: %w", err)
	}
	if err := r.readTail(); err != nil {
		_ = r.file.Close() // the first error says more
		return nil, err
	}
	return r, nil
}

func (r *run) readTail() error {
	head, err := r.open(make([]byte, runHeader), 0)
	if err != nil {
		return err
	}
	r.count = int64(binary.LittleEndian.Uint64(head[8:]))
	size := int64(binary.LittleEndian.Uint64(head[16:]))
	whole, err := r.file.Size()
	if err != nil {
		return fmt.Errorf("satstore: read ids: %w", err)
	}
	fits := r.count >= 0 && r.count <= whole/runEntry && size > 0 && size <= whole
	if string(head[:8]) != runMagic || !fits || size%filterLine != 0 {
		return &CorruptError{r.name(), 0, "no ids, or of another version"}
	}
	tail := make([]byte, 0, r.blocks()*8+size)
	piece := make([]byte, tailPiece+checkSize)
	for at := r.tail(); len(tail) < cap(tail); {
		n := min(tailPiece, cap(tail)-len(tail))
		b, err := r.open(piece[:n+checkSize], at)
		if err != nil {
			return err
		}
		tail = append(tail, b...)
		at += int64(n + checkSize)
	}
	for ; len(r.firsts) < int(r.blocks()); tail = tail[8:] {
		r.firsts = append(r.firsts, binary.LittleEndian.Uint64(tail))
	}
	r.filter = filter(tail)
	return nil
}

// A runWriter makes a run of entries that come in order.
type runWriter struct {
	*run
	buf   []byte
	start int // of the open block in buf
	left  int // entries that it has room for
	end   int64
	err   error
}

// createRun begins a run of at most so many entries.
func createRun(fs vfs.FS, number uint64, most int64) (*runWriter, error) {
	r := &run{number: number, at: -1, filter: newFilter(most)}
	var err error
	if r.file, err = fs.Create(r.name()); err != nil {
		return nil, fmt.Errorf("satstore: create ids: %w", err)
	}
	return &runWriter{run: r, end: runHeader}, nil
}

func (w *runWriter) add(key fingerprint, value uint64) {
	if w.left == 0 {
		w.closeBlock()
		w.firsts = append(w.firsts, binary.BigEndian.Uint64(key[:]))
		w.start, w.left = len(w.buf), runPerBlock
	}
	w.filter.add(key)
	w.buf = append(w.buf, key[:]...)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, value)
	w.left--
	w.count++
}

const runWrite = 256 << 10

func (w *runWriter) closeBlock() {
	if len(w.buf) > w.start {
		w.buf = w.seal(w.buf, w.start, w.end+int64(w.start))
		w.start = len(w.buf)
	}
	if len(w.buf) >= runWrite {
		w.flush()
	}
}

func (w *runWriter) flush() {
	if w.err == nil {
		_, w.err = w.file.WriteAt(w.buf, w.end)
	}
	w.end += int64(len(w.buf))
	w.buf, w.start = w.buf[:0], 0
}

// finish writes what is left. The run can be used afterwards, unless there is an error.
func (w *runWriter) finish(sync bool) error {
	w.closeBlock()
	w.flush()
	tail := make([]byte, 0, len(w.firsts)*8+len(w.filter))
	for _, first := range w.firsts {
		tail = binary.LittleEndian.AppendUint64(tail, first)
	}
	tail = append(tail, w.filter...)
	for len(tail) > 0 {
		n := min(tailPiece, len(tail))
		w.buf = w.seal(append(w.buf, tail[:n]...), 0, w.end)
		w.flush()
		tail = tail[n:]
	}
	if w.err == nil {
		_, w.err = w.file.WriteAt(w.header(), 0)
	}
	if w.err == nil && sync {
		w.err = w.file.Sync()
	}
	if w.err != nil {
		return fmt.Errorf("satstore: write ids: %w", w.err)
	}
	return nil
}
