package lsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

// run is a file of sorted pairs. Its methods are safe for concurrent use.
type run struct {
	number   uint64
	name     string
	file     vfs.File
	size     int64
	count    int64
	prefixes int64
	end      int64 // of the blocks, where top begins
	top      block
	keys     map[uint64]block // the key blocks by offset; nil if they are too large
	filter   filter
	refs     atomic.Int64
	stale    atomic.Bool // remove the file with the last reference
}

func (r *run) corrupt(offset int64, reason string) error {
	return &CorruptError{r.name, offset, reason}
}

// openRun reads the footer, the key blocks and the filter.
func openRun(fs vfs.FS, number uint64, name string) (r *run, err error) {
	file, err := fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("lsm: open run: %w", err)
	}
	r = &run{number: number, name: name, file: file}
	r.refs.Store(1)
	if err := r.load(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return r, nil
}

func (r *run) load() (err error) {
	if r.size, err = r.file.Size(); err != nil {
		return fmt.Errorf("lsm: open run: %w", err)
	}
	start := r.size - footerSize
	footer, err := r.read(start, footerSize)
	if err != nil {
		return err
	}
	sum := binary.LittleEndian.Uint32(footer[footerSize-4:])
	if string(footer[:8]) != runMagic || crc32.Checksum(footer[:footerSize-4], castagnoli) != sum {
		return r.corrupt(start, "the footer is missing or damaged")
	}
	var n [5]int64
	for i := range n {
		n[i] = int64(binary.LittleEndian.Uint64(footer[8*(i+1):]))
	}
	r.count, r.prefixes, r.end = n[0], n[1], n[2]
	filterStart, filterEnd := n[3], n[4]
	if r.end < 0 || filterStart < r.end || filterEnd < filterStart ||
		filterEnd != start-4 || (filterEnd-filterStart)%filterBlock != 0 ||
		filterEnd-filterStart > maxFilter {
		return r.corrupt(start, "inconsistent footer")
	}
	data, err := r.read(r.end, filterStart-r.end)
	if err != nil {
		return err
	}
	var fault string
	if r.top, fault = parseBlock(data); fault != "" {
		return r.corrupt(r.end, fault)
	}
	if err := r.loadKeys(); err != nil {
		return err
	}
	if data, err = r.read(filterStart, filterEnd-filterStart+4); err != nil {
		return err
	}
	if f := filter(data[:len(data)-4]); len(f) > 0 {
		r.filter = f
	}
	if !bytes.Equal(r.filter.sum(), data[len(data)-4:]) {
		return r.corrupt(filterStart, "filter checksum mismatch")
	}
	return nil
}

// maxKeys bounds the bytes of key blocks that a run has in memory, which saves a read per lookup.
// They are a hundredth of the run. Those of a longer one stay in the file.
const maxKeys = 16 << 20

// loadKeys reads the key blocks.
func (r *run) loadKeys() error {
	size := uint64(0)
	var blocks [][2]uint64
	for e := (entries{block: r.top}); ; {
		if !e.step() {
			break
		}
		offset, length, ok := address(e.value)
		if size += length; !ok || size > maxKeys {
			return nil // the lookup that needs an invalid one reports it
		}
		blocks = append(blocks, [2]uint64{offset, length})
	}
	r.keys = make(map[uint64]block, len(blocks))
	for _, at := range blocks {
		data, err := r.read(int64(at[0]), int64(at[1]))
		if err != nil {
			return err
		}
		b, fault := parseBlock(data)
		if fault != "" {
			return r.corrupt(int64(at[0]), fault)
		}
		r.keys[at[0]] = b
	}
	return nil
}

func (r *run) read(offset, length int64) ([]byte, error) {
	data := make([]byte, max(length, 0))
	return data, r.readInto(data, offset)
}

func (r *run) readInto(data []byte, offset int64) error {
	if offset < 0 || offset+int64(len(data)) > r.size {
		return r.corrupt(max(offset, 0), "the file is too short")
	}
	if _, err := r.file.ReadAt(data, offset); err != nil && err != io.EOF {
		return fmt.Errorf("lsm: read %s: %w", r.name, err)
	}
	return nil
}

// release drops a reference. The last one closes the file, and removes it if it is stale.
func (r *run) release(fs vfs.FS) error {
	if r.refs.Add(-1) > 0 {
		return nil
	}
	err := r.file.Close()
	if r.stale.Load() {
		_ = fs.Remove(r.name) // if it stays, the next Open removes it
	}
	return err
}

// probe is the memory of a lookup, for reuse.
type probe struct {
	data    []byte
	entries entries
	at      int64 // of the block with the entries
	last    Pair
}

var probes = sync.Pool{New: func() any { return new(probe) }}

// open reads a block, whose address is in the block at from.
func (p *probe) open(r *run, from int64, offset, length uint64) error {
	if length > maxBlock || offset > uint64(r.end) {
		return r.corrupt(from, "a key block has an address beyond the file")
	}
	p.at = int64(offset)
	if uint64(cap(p.data)) < length {
		p.data = make([]byte, length)
	}
	p.data = p.data[:length]
	if err := r.readInto(p.data, int64(offset)); err != nil {
		return err
	}
	b, fault := parseBlock(p.data)
	if fault != "" {
		return r.corrupt(int64(offset), fault)
	}
	p.entries = entries{block: b, key: p.entries.key[:0]}
	return nil
}

// descend finds the last entry of the key block at a position that is below key, or else the first
// one, and opens the block at its address. It returns the end of that block.
func (p *probe) descend(r *run, at int64, from block, key []byte) (end uint64, err error) {
	p.entries = entries{block: from, key: p.entries.key[:0]}
	p.last.clear()
	if found := p.entries.seek(key, &p.last); found && len(p.last.Key) == 0 {
		p.last.set(p.entries.key, p.entries.value)
	}
	if p.entries.bad {
		return 0, r.corrupt(at, "a key block is invalid")
	}
	offset, length, ok := address(p.last.Value)
	if !ok {
		return 0, r.corrupt(at, "a key block has no addresses")
	}
	if b, ok := r.keys[offset]; ok {
		p.at = int64(offset)
		p.entries = entries{block: b, key: p.entries.key[:0]}
		return offset + length, nil
	}
	return offset + length, p.open(r, at, offset, length)
}

// address parses a value of a key block.
func address(value []byte) (offset, length uint64, ok bool) {
	offset, n := binary.Uvarint(value)
	if n <= 0 {
		return 0, 0, false
	}
	length, m := binary.Uvarint(value[n:])
	return offset, length, m > 0
}

// around updates the neighbors of a key.
func (r *run) around(n *Neighbors) error {
	if !r.filter.has(n.hash) {
		return nil
	}
	p := probes.Get().(*probe)
	defer probes.Put(p)
	if _, err := p.descend(r, r.end, r.top, n.key); err != nil {
		return err
	}
	end, err := p.descend(r, p.at, p.entries.block, n.key)
	if err != nil {
		return err
	}
	p.last.clear()
	found := p.entries.seek(n.key, &p.last)
	if p.entries.bad {
		return r.corrupt(int64(end), "the block before is invalid")
	}
	n.below(&p.last)
	for !found && end < uint64(r.end) {
		if found, end, err = p.first(r, end); err != nil {
			return err
		}
	}
	if found {
		n.next(&Pair{p.entries.key, p.entries.value})
	}
	return nil
}

// first opens the block at offset, which has its own length, and moves to the first entry. It skips
// a key block.
func (p *probe) first(r *run, offset uint64) (found bool, end uint64, err error) {
	p.data = append(p.data[:0], make([]byte, blockHeader)...)
	if err := r.readInto(p.data, int64(offset)); err != nil {
		return false, 0, err
	}
	head := binary.LittleEndian.Uint32(p.data)
	length := uint64(head&^keysBit) + blockHeader
	if head&keysBit != 0 {
		return false, offset + length, nil
	}
	if err := p.open(r, int64(offset), offset, length); err != nil {
		return false, 0, err
	}
	return p.entries.step(), offset + length, nil
}

// runScan iterates over a run, with large reads.
type runScan struct {
	run     *run
	entries entries
	window  []byte // of the file
	start   int64  // of window
	ahead   int64  // length of the last window
	at      int64  // of the next block
	pair    Pair
	valid   bool // pair is the current one
}

// A scan starts with a read of a few blocks, as many scans are short. Its reads then grow.
const (
	firstWindow = 16 << 10
	scanWindow  = 256 << 10
)

// newRunScan starts at the first key that is not below low.
func newRunScan(r *run, low []byte) (*runScan, error) {
	s := &runScan{run: r}
	if len(low) > 0 {
		p := probes.Get().(*probe)
		defer probes.Put(p)
		if _, err := p.descend(r, r.end, r.top, low); err != nil {
			return nil, err
		}
		if _, err := p.descend(r, p.at, p.entries.block, low); err != nil {
			return nil, err
		}
		offset, _, _ := address(p.last.Value)
		s.at = int64(offset)
	}
	for {
		if err := s.advance(); err != nil {
			return nil, err
		}
		if !s.valid || bytes.Compare(s.pair.Key, low) >= 0 {
			return s, nil
		}
	}
}

func (s *runScan) current() *Pair {
	if !s.valid {
		return nil
	}
	return &s.pair
}

func (s *runScan) advance() error {
	for !s.entries.step() {
		if s.entries.bad {
			return s.run.corrupt(s.at, "the block before is invalid")
		}
		s.valid = false
		if s.at >= s.run.end {
			return nil
		}
		if err := s.nextBlock(); err != nil {
			return err
		}
	}
	s.pair, s.valid = Pair{s.entries.key, s.entries.value}, true
	return nil
}

// nextBlock parses the block at s.at.
func (s *runScan) nextBlock() error {
	head, err := s.bytes(blockHeader)
	if err != nil {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(head)&^keysBit) + blockHeader
	if length > maxBlock || s.at+length > s.run.end {
		return s.run.corrupt(s.at, "the block is too long")
	}
	if binary.LittleEndian.Uint32(head)&keysBit != 0 {
		s.at += length
		return nil
	}
	data, err := s.bytes(length)
	if err != nil {
		return err
	}
	b, fault := parseBlock(data)
	if fault != "" {
		return s.run.corrupt(s.at, fault)
	}
	s.entries = entries{block: b, key: s.entries.key[:0]}
	s.at += length
	return nil
}

// bytes returns the next n bytes of the file.
func (s *runScan) bytes(n int64) ([]byte, error) {
	if s.at < s.start || s.at+n > s.start+int64(len(s.window)) {
		s.ahead = min(max(4*s.ahead, firstWindow), scanWindow)
		size := max(n, min(s.ahead, s.run.end-s.at))
		if int64(cap(s.window)) < size {
			s.window = make([]byte, size)
		}
		s.window, s.start = s.window[:size], s.at
		if err := s.run.readInto(s.window, s.at); err != nil {
			s.window = s.window[:0]
			return nil, err
		}
	}
	return s.window[s.at-s.start:][:n], nil
}
