package satstore

import (
	"cmp"
	"fmt"
	"sync"
)

// extentSize bounds the bytes of an extent, which is what is read at once.
const extentSize = 1 << 20

// relieve empties buffers as Options.Flush says. It requires all locks but dueMu.
func (s *Store) relieve() error {
	if !s.live {
		s.relieveReplay()
		return nil
	}
	all := s.o.Flush == FlushAll && s.o.Mode != Naive
	switch {
	case all, s.logIsLong():
		return s.checkpoint()
	case s.o.Mode == Naive:
		return s.flushOne()
	}
	for _, pages := range []int{16, 4, 1} {
		used := s.pool.used
		if err := s.flushMoreThan(pages); err != nil || s.pool.used < used {
			return err
		}
	}
	return s.flushOne()
}

// relieveReplay empties all buffers without a checkpoint, which cannot be in the midst of a log. If
// that fails, as on a full disk, the buffers grow: a log is not much longer than they are.
func (s *Store) relieveReplay() {
	if s.flushMoreThan(0) != nil {
		s.pool.limit *= 2
	}
}

// logIsLong tells when a replay would take longer than the buffers are worth.
func (s *Store) logIsLong() bool {
	return s.live && s.log != nil &&
		s.logEnd+int64(len(s.log.pending)) > max(s.o.Buffer, 1<<20)
}

// eachBucket visits all buckets, in the order of their slots.
func (s *Store) eachBucket(visit func(*bucket)) {
	for _, b := range s.due {
		visit(b)
	}
	if s.split != nil {
		visit(s.split.bucket)
	}
	s.calendar.all(visit)
}

// pages returns how many pages a bucket has in memory.
func (b *bucket) pages() int { return len(b.records.buffer.pages) + len(b.messages.buffer.pages) }

// flushMoreThan writes each buffer of more than so many pages, in the order of the slots.
func (s *Store) flushMoreThan(pages int) error {
	f := s.newFlush()
	s.eachBucket(func(b *bucket) {
		if b.pages() > pages {
			f.part(b, &b.records)
			f.part(b, &b.messages)
		}
	})
	return f.finish()
}

// flushOne writes one buffer, whichever comes first.
func (s *Store) flushOne() (err error) {
	done := false
	s.eachBucket(func(b *bucket) {
		if b.pages() > 0 && !done {
			done, err = true, s.flushBucket(b)
		}
	})
	return err
}

// fitPage flushes the buffer of a naive store's bucket before it would need a second page.
func (s *Store) fitPage(b *bucket, p *part, size int) error {
	fits := len(p.buffer.pages) == 0 || p.buffer.bytes+size <= s.pool.size
	if s.o.Mode != Naive || !s.live || fits {
		return nil
	}
	return s.flushBucket(b)
}

func (s *Store) flushBucket(b *bucket) error {
	f := s.newFlush()
	f.part(b, &b.records)
	f.part(b, &b.messages)
	return f.finish()
}

// A flush appends what is in some buffers to the data file. It prepares extents while others are
// being written. Unless all could be written, everything stays in memory.
type flush struct {
	s      *Store
	parts  []flushedPart
	images chan []byte // for extents: as many as may be written at once, and none that is
	errs   chan error  // the first
	wait   sync.WaitGroup
}

type flushedPart struct {
	part    *part
	extents []extent
}

// defaultWriters is how many extents are written at once.
const defaultWriters = 3

func (s *Store) newFlush() *flush {
	if s.images == nil {
		writers := cmp.Or(s.o.writers, defaultWriters)
		s.images = make(chan []byte, writers)
		for range writers {
			s.images <- nil
		}
	}
	return &flush{s: s, images: s.images, errs: make(chan error, 1)}
}

// part begins to write what is in memory of a bucket's part.
func (f *flush) part(b *bucket, p *part) {
	s, done, first := f.s, flushedPart{part: p}, p.disk
	for i := 0; i < len(p.buffer.cuts); {
		image := (<-f.images)[:0]
		e := extent{first: first, generation: s.generation + 1}
		for i < len(p.buffer.cuts) && (e.count == 0 || len(image)+blockSize < extentSize) {
			raw, count := p.buffer.block(s.pool, i, s.raw[:0])
			s.raw = raw
			image = s.codec.encode(image, block{
				magic: p.magic(b), bucket: b.id, first: first, count: uint32(count), raw: raw,
			})
			first += uint64(count)
			e.count += uint32(count)
			i++
		}
		e.size = uint32(len(image))
		n := grains(len(image))
		e.at = s.space.take(n)
		done.extents = append(done.extents, e)
		f.write(e, append(image, make([]byte, int(n)*grain-len(image))...))
	}
	if len(done.extents) > 0 {
		f.parts = append(f.parts, done)
	}
}

// write writes an extent, in a goroutine that ends before finish does.
func (f *flush) write(e extent, image []byte) {
	f.wait.Go(func() {
		if _, err := f.s.data.WriteAt(image, e.offset()); err != nil {
			select {
			case f.errs <- fmt.Errorf("satstore: write %s: %w", dataName, err):
			default:
			}
		}
		f.s.data.Start(e.offset(), int64(len(image)))
		f.images <- image
	})
}

// finish waits, and empties the buffers if all went well.
func (f *flush) finish() error {
	s := f.s
	f.wait.Wait()
	select {
	case err := <-f.errs:
		for _, done := range f.parts {
			for _, e := range done.extents {
				s.space.giveBack(e.span())
			}
		}
		return err
	default:
	}
	for _, done := range f.parts {
		p := done.part
		p.extents = append(p.extents, done.extents...)
		p.disk = p.count()
		p.buffer.clear(s.pool)
		s.stats.Flushes += int64(len(done.extents))
		for _, e := range done.extents {
			s.saved.written += int64(e.size)
		}
	}
	return nil
}

// trim releases the extents of a bucket that is due and whose records are all elsewhere. A record
// that somebody holds for days so keeps one extent, and not its whole bucket.
func (s *Store) trim(b *bucket) {
	kept := b.records.extents[:0]
	for _, e := range b.records.extents {
		if b.allDone(e.first, e.first+uint64(e.count)) {
			s.space.release(e.span())
		} else {
			kept = append(kept, e)
		}
	}
	b.records.extents = kept
}
