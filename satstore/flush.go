package satstore

import (
	"context"
	"errors"
	"math"
	"syscall"
	"time"

	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/manifest"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// Buffers are flushed in the background. The nearest slots keep up to a quarter of the memory,
// because every other visit may be to one of their records, which then never reach the disk. The
// rest is for data that is being written and new data. Each extent of about a megabyte frees its
// memory as soon as it is written, so a writer that finds no memory waits for one extent and not
// for the whole flush.

// writers is the number of extents that are written at the same time.
const writers = 3

// flush writes buffers until enough memory is free.
func (s *Store) flush() error {
	for {
		s.mu.Lock()
		if s.refusal() != nil || !s.pool.Full(5) {
			s.mu.Unlock()
			return nil
		}
		groups := s.takeFar()
		s.mu.Unlock()
		if len(groups) == 0 { // all of it is being written
			return nil
		}
		if err := s.write(groups); err != nil {
			return err
		}
	}
}

// takeFar takes the buffers of all buckets except the nearest ones, which may keep a quarter of the
// memory.
func (s *Store) takeFar() (groups []*extent.Group) {
	room := s.pool.Limit() / 4 / int64(s.o.test.page)
	for b := range s.buckets {
		if room -= int64(b.records.Buffered() + b.messages.Buffered()); room < 0 {
			room = 0 // even if the next one is small
			groups = s.take(b, groups)
		}
	}
	return groups
}

// take takes the buffers of a bucket.
func (s *Store) take(b *bucket, groups []*extent.Group) []*extent.Group {
	groups = b.records.Take(groups, b.id, extent.Records, s.generation)
	return b.messages.Take(groups, b.id, extent.Messages, s.generation)
}

// takeAll takes all buffers.
func (s *Store) takeAll() (groups []*extent.Group) {
	for b := range s.buckets {
		groups = s.take(b, groups)
	}
	return groups
}

// buckets yields all buckets, in the order of their slots, and those that are set aside.
func (s *state) buckets(yield func(*bucket) bool) {
	more := true
	visit := func(b *bucket) bool {
		more = more && yield(b)
		return more
	}
	for _, b := range s.due {
		visit(b)
	}
	if s.split != nil {
		visit(s.split.bucket)
	}
	s.calendar.All(func(b *bucket, _ int64) bool { return visit(b) })
	for _, b := range s.aside {
		visit(b)
	}
}

// write writes groups. Those that cannot be written stay in memory until a checkpoint tries again.
func (s *Store) write(groups []*extent.Group) error {
	err := s.file.Write(groups, s.written)
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range groups {
		if !g.Done() {
			s.unwritten = append(s.unwritten, g)
		}
	}
	s.changed.Broadcast()
	return err
}

// written records that a group is on disk.
func (s *Store) written(g *extent.Group, e extent.Extent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dropped := g.Adopt(s.pool, e); dropped.N > 0 {
		s.file.Release(dropped)
	}
	s.changed.Broadcast()
}

// moveSplit moves the records and messages of buckets that are being split, a block at a time.
func (s *Store) moveSplit() error {
	r := extent.NewReader(s.file, &s.mu, extent.NoMore)
	defer r.Close()
	for {
		s.mu.Lock()
		p, what := s.split, movesNothing
		if p != nil {
			what = p.phase()
		}
		s.mu.Unlock()
		if p == nil || s.stopping() {
			return nil
		}
		// Only this goroutine advances the split and takes entries out of its bucket.
		var next batch
		var lost uint64
		again := false
		err := s.readAgain(context.Background(), func(bool) (err error) {
			if again {
				r.Forget() // but not the first time: it holds the blocks that follow
			}
			again = true
			next, lost, err = p.read(r, what, math.MaxUint64)
			return err
		})
		if s.stopping() {
			return nil
		}
		if errors.Is(err, syscall.EIO) {
			// A disk that is gone cannot do this either. It also takes care of a sync that fails, of which the
			// system may speak only once.
			if gone := s.checkpoint(false); gone != nil {
				return gone
			}
		}
		s.mu.Lock()
		many := len(s.aside) >= manifest.MaxAside
		s.mu.Unlock()
		if err != nil && (lost == 0 || many || !errors.Is(err, ErrCorrupt)) {
			return err
		}
		if err := s.moveBatch(next, lost, err); err != nil {
			return err
		}
	}
}

// A disk that does not answer for a moment, since a cable was pulled or a path timed out, says the same
// of each sector as one that has lost it. Nothing is given up before it has been asked for a minute.
const (
	readTries = 7
	readPause = 10 * time.Second
)

// readAgain calls read again, after a pause, while the disk cannot read. With last, it will not be called
// again.
func (s *Store) readAgain(ctx context.Context, read func(last bool) error) error {
	for try := 1; ; try++ {
		err := read(try == readTries)
		if try == readTries || !errors.Is(err, syscall.EIO) {
			return err
		}
		select {
		case <-time.After(readPause):
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stop:
			return ErrClosed
		}
	}
}

// moveBatch moves a batch, or gives up entries that are damaged.
func (s *Store) moveBatch(next batch, lost uint64, damage error) error {
	n := uint64(len(next.records) + len(next.messages))
	return s.change(wal.MaxSize(0), func() (survives bool, err error) {
		defer s.changed.Broadcast()
		if lost > 0 {
			if survives, err = s.logChange(&wal.Change{Kind: wal.Skip, Count: lost}); err == nil {
				s.skipEntries(lost, damage)
			}
			return survives, err
		}
		if n == 0 && s.split.phase() != movesNothing { // a message has arrived since
			return true, nil
		}
		if survives, err = s.logChange(&wal.Change{Kind: wal.Split, Count: n}); err == nil {
			s.moveEntries(next)
			s.stats.Split += int64(len(next.records))
		}
		return survives, err
	})
}

func (s *Store) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}
