package extent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// A Reader reads the blocks of parts, an extent at a time. It is not safe for concurrent use.
type Reader struct {
	file  *File
	lock  sync.Locker     // of the parts; nil if the caller holds it
	ahead func() []Extent // returns the extents to read after the part; lock is held

	part   *Part
	bucket uint64
	magic  uint32
	memory []byte // for blocks that are in buffers

	extent Extent // that data holds; its Size is 0 if none
	data   []byte
	unread error  // why some of data are zeros; nil if none
	at     int    // of the next block in data
	first  uint64 // of the entries in that block

	following []Extent // the next extents to read ahead
	fetches   []*fetch // in order
	free      [][]byte // memory to reuse
}

// A fetch is an extent that is being read.
type fetch struct {
	extent Extent
	data   []byte
	err    error
	done   chan struct{} // closed once data or err is set
}

// readAhead and aheadBytes bound how many extents are read at the same time.
const (
	readAhead  = 4
	aheadBytes = 2 * extentSize
)

// NewReader returns a reader that takes the lock of the parts. If lock is nil, the caller must hold
// it. If ahead is not nil, the reader reads ahead in goroutines, and the caller must close it.
// After the end of a part it reads what ahead returns.
func NewReader(file *File, lock sync.Locker, ahead func() []Extent) *Reader {
	return &Reader{file: file, lock: lock, ahead: ahead}
}

// Forget makes the reader read again what it holds.
func (r *Reader) Forget() {
	r.Close()
	r.extent = Extent{}
}

// NoMore is an ahead function for readers that stop at the end of their part.
func NoMore() []Extent { return nil }

// Open continues with a part of a bucket.
func (r *Reader) Open(part *Part, bucket uint64, magic uint32) {
	if r.part != part {
		r.part, r.bucket, r.magic, r.extent = part, bucket, magic, Extent{}
	}
}

// Next returns the block that holds an entry. If the entry is gone, it returns the next block. The
// block is valid until the next call. At the end of the part, its Count is 0 and First is how many
// entries the part had. After an error, First
// and Count say which entries cannot be read, so that the caller can continue after them.
func (r *Reader) Next(entry uint64) (Block, error) {
	e, found := r.locate(entry)
	for again := true; e.Size > 0; {
		read, err := r.read(e, entry)
		if err == nil || !again {
			return read, err
		}
		// The extent may have been released during the read, and overwritten after a checkpoint. If it was
		// read ahead, another one may have been there. Otherwise, a bit may have flipped on the way from
		// the disk, and whoever moves records gives up those that are damaged.
		was := e
		e, found = r.locate(entry)
		again = e != was
		r.Forget()
	}
	return found, nil
}

// Misfit returns an error for an invalid entry of the last block, whose checksum is valid.
func (r *Reader) Misfit(entry uint64) error {
	reason := fmt.Sprintf("entry %d of bucket %d is invalid", entry, r.bucket)
	return durable.Corrupt(Name, r.extent.Offset(), reason)
}

// locate returns the extent that holds an entry, or else the block in memory. It sets r.following.
func (r *Reader) locate(entry uint64) (e Extent, found Block) {
	if r.lock != nil {
		r.lock.Lock()
		defer r.lock.Unlock()
	}
	p := r.part
	if entry < p.disk {
		if i := p.find(entry); i < len(p.extents) {
			r.follow(p.extents[i+1:])
			return p.extents[i], found
		}
	}
	found, ok := p.inMemory(max(entry, p.disk), r.memory[:0])
	if !ok {
		return e, Block{First: p.Count()}
	}
	r.memory = found.Raw
	found.Magic, found.Bucket = r.magic, r.bucket
	return e, found
}

func (r *Reader) follow(rest []Extent) {
	if r.ahead == nil {
		return
	}
	r.following = append(r.following[:0], rest[:min(readAhead-1, len(rest))]...)
	if n := readAhead - 1 - len(r.following); n > 0 {
		rest = r.ahead()
		r.following = append(r.following, rest[:min(n, len(rest))]...)
	}
}

// read returns the block of an extent that holds an entry, or the next one.
func (r *Reader) read(e Extent, entry uint64) (Block, error) {
	if e != r.extent {
		if err := r.fetch(e); err != nil {
			return Block{First: e.First, Count: e.Count}, err
		}
	} else if entry < r.first {
		r.at, r.first = 0, e.First
	}
	for {
		found, size, reason := r.open(r.at)
		if reason == "" && found.First != r.first {
			reason = "a misplaced block"
		}
		if reason == "" {
			r.at += size
			r.first += uint64(found.Count)
		} else {
			first, offset := r.first, e.Offset()+int64(r.at)
			r.skip()
			found = Block{First: first, Count: uint32(r.first - first)}
			if entry < r.first {
				return found, r.corrupt(offset, reason)
			}
		}
		if entry < r.first {
			return found, nil
		}
	}
}

// corrupt returns the error of a damaged block. If that is because the disk did not answer, it wraps EIO,
// too: then the block may be there later.
func (r *Reader) corrupt(offset int64, reason string) error {
	if r.unread != nil {
		return fmt.Errorf("%w: %w", durable.Corrupt(Name, offset, "the disk cannot read this"), r.unread)
	}
	return durable.Corrupt(Name, offset, reason)
}

// open returns the block of the part that begins at an offset in r.data.
func (r *Reader) open(at int) (found Block, size int, reason string) {
	found, size, reason = Open(r.data[at:])
	end := r.extent.First + uint64(r.extent.Count)
	if reason == "" && (found.Bucket != r.bucket || found.Magic != r.magic || found.Count == 0 ||
		found.First < r.first || found.First+uint64(found.Count) > end) {
		reason = "a misplaced block"
	}
	return found, size, reason
}

// skip moves from a damaged block to the next one that is sound, or to the end of the extent.
// Entries may contain anything, so it compares the bucket before it computes a checksum.
func (r *Reader) skip() {
	const before = 4 // bytes of a block before its magic
	mark := binary.LittleEndian.AppendUint32(nil, r.magic)
	for at := r.at + 1; at+before < len(r.data); at++ {
		n := bytes.Index(r.data[at+before:], mark)
		if n < 0 {
			break
		}
		at += n
		if len(r.data)-at < Header || binary.LittleEndian.Uint64(r.data[at+16:]) != r.bucket {
			continue
		}
		if found, _, reason := r.open(at); reason == "" && found.First > r.first {
			r.at, r.first = at, found.First
			return
		}
	}
	r.at, r.first = len(r.data), r.extent.First+uint64(r.extent.Count)
}

// fetch sets r.data to an extent, and begins to read the following ones.
func (r *Reader) fetch(e Extent) error {
	if r.data != nil {
		r.free = append(r.free, r.data)
	}
	r.extent, r.data = Extent{}, nil
	for len(r.fetches) > 0 && r.fetches[0].extent != e {
		r.drop() // it is no longer needed
	}
	if len(r.fetches) == 0 {
		r.begin(e)
	}
	r.readOn()
	f := r.fetches[0]
	r.fetches = r.fetches[1:]
	if <-f.done; f.err != nil && !errors.Is(f.err, syscall.EIO) {
		return f.err
	}
	r.data, r.unread, r.extent, r.at, r.first = f.data, f.err, e, 0, e.First
	return nil
}

// readOn begins to read the following extents.
func (r *Reader) readOn() {
	size := 0
	for _, f := range r.fetches {
		size += int(f.extent.Size)
	}
	for _, e := range r.following {
		if size >= aheadBytes {
			return
		}
		if !slices.ContainsFunc(r.fetches, func(f *fetch) bool { return f.extent == e }) {
			r.begin(e)
			size += int(e.Size)
		}
	}
}

// begin begins to read an extent.
func (r *Reader) begin(e Extent) {
	f := &fetch{extent: e, done: make(chan struct{})}
	if n := len(r.free); n > 0 {
		f.data, r.free = r.free[n-1], r.free[:n-1]
	}
	r.fetches = append(r.fetches, f)
	read := func() {
		f.data = sized(f.data, int(e.Size))
		f.err = r.file.Read(f.data, e)
		close(f.done)
	}
	if r.ahead == nil {
		read()
	} else {
		go read()
	}
}

// sized returns memory of the given size, which is b if that is large enough.
func sized(b []byte, size int) []byte {
	if cap(b) < size {
		// Rounded up, since the next one may be a little larger. Small buckets get little memory,
		// because there are many.
		room := BlockSize
		for room/2 >= size && room > grain {
			room /= 2
		}
		b = make([]byte, (size+room-1)&^(room-1))
	}
	return b[:size]
}

// drop waits for the first fetch and discards it.
func (r *Reader) drop() {
	f := r.fetches[0]
	r.fetches = r.fetches[1:]
	if <-f.done; f.data != nil {
		r.free = append(r.free, f.data)
	}
}

// Close waits for all reads to end.
func (r *Reader) Close() {
	for len(r.fetches) > 0 {
		r.drop()
	}
}
