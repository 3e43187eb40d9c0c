package satstore

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
)

// extentSize is about how large an extent is, which is what is read at once. One large record may
// make it maxExtent.
const (
	extentSize = 1 << 20
	maxExtent  = extentSize + blockHeader + maxRaw
)

// A flush appends what some buffers held to the data file. Until it is finished, all of it stays in
// memory and is read from there. There is one at a time.
type flush struct {
	s    *Store
	all  []frozenPart
	done chan struct{} // closed when all has been written, or tried to

	images chan []byte // for extents: as many as may be written at once, and none that is
	writes sync.WaitGroup
	mu     sync.Mutex
	err    error // the first one
}

// A frozenPart is what a flush has of one part of a bucket, and what it made of it.
type frozenPart struct {
	bucket  *bucket
	part    *part
	buffer  buffer
	first   uint64 // entries of the part before those in the buffer
	magic   uint32
	extents []extent
}

// defaultWriters is how many extents are written at once.
const defaultWriters = 3

// startFlush takes the buffers of those buckets that are wanted and have any, in the order of their
// slots, and begins to write them. It requires that s.mu is held and no other flush is under way.
func (s *Store) startFlush(wanted func(*bucket) bool) {
	f := s.newFlush()
	for b := range s.buckets {
		if b.pages() > 0 && wanted(b) {
			f.take(b)
		}
	}
	f.start()
}

func (s *Store) newFlush() *flush {
	if s.images == nil {
		writers := cmp.Or(s.o.writers, defaultWriters)
		s.images = make(chan []byte, writers)
		for range writers {
			s.images <- nil
		}
	}
	return &flush{s: s, done: make(chan struct{}), images: s.images}
}

// take freezes what is in memory of a bucket.
func (f *flush) take(b *bucket) {
	for _, p := range []*part{&b.records, &b.messages} {
		if p.buffer.count > 0 {
			p.frozen, p.buffer = p.buffer, buffer{}
			f.all = append(f.all, frozenPart{
				bucket: b, part: p, buffer: p.frozen, first: p.disk, magic: p.magic(b),
			})
		}
	}
}

// start begins to write what was taken, unless that is nothing.
func (f *flush) start() {
	if len(f.all) == 0 {
		return
	}
	f.s.flushing = f
	generation := f.s.generation + 1
	if f.s.o.inline {
		f.run(generation)
	} else {
		go f.run(generation)
	}
}

// run writes everything. It uses nothing of the store that changes meanwhile.
func (f *flush) run(generation uint32) {
	c := &f.s.sealer
	for i := range f.all {
		f.write(&f.all[i], c, generation)
	}
	f.writes.Wait()
	close(f.done)
}

// write writes a part. It prepares extents while others are being written.
func (f *flush) write(p *frozenPart, c *codec, generation uint32) {
	first, cuts := p.first, p.buffer.cuts
	for i := 0; i < len(cuts); {
		image := (<-f.images)[:0]
		e := extent{first: first, generation: generation}
		for i < len(cuts) && (e.count == 0 || len(image)+blockSize < extentSize) {
			start, count := len(image), 0
			image = append(image, make([]byte, blockHeader)...)
			image, count = p.buffer.block(f.s.pool, i, image)
			image = c.seal(image, start, block{
				magic: p.magic, bucket: p.bucket.id, first: first, count: uint32(count),
			})
			first += uint64(count)
			e.count += uint32(count)
			i++
		}
		e.size = uint32(len(image))
		n := grains(len(image))
		at, fits := f.s.space.take(n)
		if !fits {
			f.images <- image
			f.fail(errFull)
			return
		}
		e.at = at
		p.extents = append(p.extents, e)
		image = append(image, make([]byte, int(n)*grain-len(image))...)
		f.writes.Go(func() { f.writeExtent(e, image) })
	}
}

func (f *flush) writeExtent(e extent, image []byte) {
	_, err := f.s.data.WriteAt(image, e.offset())
	f.s.data.Start(e.offset(), int64(len(image)))
	f.images <- image
	if err != nil {
		f.fail(err)
	}
}

func (f *flush) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = fmt.Errorf("satstore: write %s: %w", dataName, err)
	}
}

// errFull says that the places of extents, of 32 bits each, are used up.
var errFull = errors.New("the file has 16 TiB, which is as large as it can be")

// finishFlush waits for the flush that is under way, if there is one, and frees its memory. If it
// failed, it is tried again, as there may be room by now; if that fails too, everything stays in
// memory. It requires that s.mu is held.
func (s *Store) finishFlush() error {
	f := s.flushing
	if f == nil {
		return nil
	}
	<-f.done
	if f.err != nil {
		f.reset()
		f.run(s.generation + 1)
	}
	if f.err != nil {
		return f.err
	}
	s.flushing = nil
	for i := range f.all {
		s.adoptPart(&f.all[i])
	}
	return nil
}

// reset gives the room back that a flush has taken, so that it can be tried again.
func (f *flush) reset() {
	f.done, f.err = make(chan struct{}), nil
	for i := range f.all {
		for _, e := range f.all[i].extents {
			f.s.space.giveBack(e.span())
		}
		f.all[i].extents = nil
	}
}

// adoptPart lets a part be on disk that was written.
func (s *Store) adoptPart(f *frozenPart) {
	f.buffer.clear(s.pool)
	for _, e := range f.extents {
		s.stats.Flushes++
		s.saved.written += int64(e.size)
		s.flushed += int64(e.size)
		if f.bucket.dead {
			s.space.release(e.span())
		}
	}
	if f.bucket.dead {
		return
	}
	// Entries keep their numbers: those that were frozen come right behind what was on disk, as no two
	// flushes are under way at once.
	p := f.part
	p.extents = append(p.extents, f.extents...)
	p.disk += uint64(p.frozen.count)
	p.frozen = buffer{}
}
