package extent

import (
	"fmt"
	"slices"
	"sync"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// A Reader goes through the blocks of parts, an extent at a time. It is not safe for concurrent
// use.
type Reader struct {
	file  *File
	lock  sync.Locker     // of the parts; nil if whoever reads holds it
	ahead func() []Extent // which extents come after those of the part; lock is held

	part   *Part
	bucket uint64
	magic  uint32
	memory []byte // for blocks that are in buffers

	extent Extent // that data holds; its Size is 0 if none
	data   []byte
	at     int    // of the next block in data
	first  uint64 // of the entries in that block

	following []Extent // those that come next, as many as are worth reading ahead
	fetches   []*fetch // in their order
	free      [][]byte // memory for others
}

// A fetch is an extent on its way from the disk.
type fetch struct {
	extent Extent
	data   []byte
	err    error
	done   chan struct{} // closed when there is one or the other
}

// readAhead is how many extents are read at once, and aheadBytes when they are enough.
const (
	readAhead  = 4
	aheadBytes = 2 * extentSize
)

// NewReader returns a reader that locks the parts' lock, unless it is nil, in which case whoever
// uses the reader has to hold it. If ahead is not nil, the reader reads ahead in goroutines, also
// what ahead returns, and has to be closed.
func NewReader(file *File, lock sync.Locker, ahead func() []Extent) *Reader {
	return &Reader{file: file, lock: lock, ahead: ahead}
}

// NoMore is for a reader that reads ahead, and not beyond its part.
func NoMore() []Extent { return nil }

// Open goes on with a part of a bucket.
func (r *Reader) Open(part *Part, bucket uint64, magic uint32) {
	if r.part != part {
		r.part, r.bucket, r.magic, r.extent = part, bucket, magic, Extent{}
	}
}

// Next returns the block that holds an entry, or the one after if that entry is gone together with
// others. It is valid until the next call; its Count is 0 at the end of the part.
func (r *Reader) Next(entry uint64) (Block, error) {
	e, found := r.locate(entry)
	for e.Size > 0 {
		read, err := r.read(e, entry)
		if err == nil || r.lock == nil {
			return read, err
		}
		// Others went on meanwhile. After a checkpoint the room of the extent is free, and what
		// was read there may be something else.
		was := e
		if e, found = r.locate(entry); e == was {
			return Block{}, err
		}
	}
	return found, nil
}

// Misfit says that the last block was whole, but one of its entries makes no sense.
func (r *Reader) Misfit(entry uint64) error {
	reason := fmt.Sprintf("entry %d of bucket %d makes no sense", entry, r.bucket)
	return disk.Corrupt(Name, r.extent.Offset(), reason)
}

// locate returns the extent that holds an entry, or else the block in memory. It notes which
// extents follow.
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
	if ok {
		r.memory = found.Raw
		found.Magic, found.Bucket = r.magic, r.bucket
	}
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

// read returns the block of an extent that holds an entry, or the one after.
func (r *Reader) read(e Extent, entry uint64) (Block, error) {
	if e != r.extent {
		if err := r.fetch(e); err != nil {
			return Block{}, err
		}
	} else if entry < r.first {
		r.at, r.first = 0, e.First
	}
	for {
		found, size, reason := Open(r.data[r.at:])
		if reason == "" && (found.Bucket != r.bucket || found.First != r.first ||
			found.Magic != r.magic || found.Count == 0) {
			reason = "a block of another place"
		}
		if reason != "" {
			r.extent = Extent{} // whoever tries again reads it again
			return Block{}, disk.Corrupt(Name, e.Offset()+int64(r.at), reason)
		}
		r.at += size
		r.first += uint64(found.Count)
		if entry < r.first {
			return found, nil
		}
	}
}

// fetch makes data those of an extent, and begins to read those that follow.
func (r *Reader) fetch(e Extent) error {
	if r.data != nil {
		r.free = append(r.free, r.data)
	}
	r.extent, r.data = Extent{}, nil
	for len(r.fetches) > 0 && r.fetches[0].extent != e {
		r.drop() // it has gone meanwhile
	}
	if len(r.fetches) == 0 {
		r.begin(e)
	}
	r.readOn()
	f := r.fetches[0]
	r.fetches = r.fetches[1:]
	if <-f.done; f.err != nil {
		return f.err
	}
	r.data, r.extent, r.at, r.first = f.data, e, 0, e.First
	return nil
}

// readOn begins to read what follows.
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

// sized returns memory of a size, b if that is large enough.
func sized(b []byte, size int) []byte {
	if cap(b) < size {
		// The next one may be larger, up to what is kept of a small bucket, of which there are
		// many.
		room := BlockSize
		for room/2 >= size && room > grain {
			room /= 2
		}
		b = make([]byte, (size+room-1)&^(room-1))
	}
	return b[:size]
}

// drop waits for the first of those that are being read, and forgets it.
func (r *Reader) drop() {
	f := r.fetches[0]
	r.fetches = r.fetches[1:]
	if <-f.done; f.data != nil {
		r.free = append(r.free, f.data)
	}
}

// Close waits for what is being read ahead.
func (r *Reader) Close() {
	for len(r.fetches) > 0 {
		r.drop()
	}
}
