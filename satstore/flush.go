package satstore

// Buffers are written behind the back of those who go on filling others. The memory is a quarter for
// slots so near that their records are best kept until they are due, as every other visit may be to
// one of them, and three eighths each for what is being written and for what comes meanwhile. Only a
// checkpoint makes everybody wait, and comes much more rarely.

// behind reports whether buffers are written in the background.
func (s *Store) behind() bool {
	return s.live && s.o.Flush == FlushAll && s.o.Mode != Naive
}

// wantsRelief reports whether it is time to call relieve.
func (s *Store) wantsRelief() bool {
	return s.pool.full() || s.flushing == nil && s.pool.used >= s.pool.limit*5/8 && s.behind()
}

// relieve empties buffers as Options.Flush says. It requires all locks but dueMu.
func (s *Store) relieve() error {
	switch {
	case !s.live:
		s.relieveReplay()
		return nil
	case s.logIsLong():
		return s.checkpoint()
	case s.behind():
		if err := s.finishFlush(); err != nil {
			return err
		}
		s.startFlush(s.far())
		return nil
	case s.o.Mode == Naive:
		return s.flushOne()
	}
	for _, pages := range []int{16, 4, 1} {
		used := s.pool.used
		err := s.flushSome(func(b *bucket) bool { return b.pages() > pages })
		if err != nil || s.pool.used < used {
			return err
		}
	}
	return s.flushOne()
}

// far wants all buckets but the nearest, as far as those have a quarter of the memory.
func (s *Store) far() (wanted func(*bucket) bool) {
	room := s.pool.limit / 4
	return func(b *bucket) bool {
		if room -= b.pages(); room < 0 {
			room = 0 // however little the others have
			return true
		}
		return room == 0
	}
}

// relieveReplay empties all buffers without a checkpoint, which cannot be in the midst of a log. If
// that fails, as on a full disk, the buffers grow: a log is not much longer than they are.
func (s *Store) relieveReplay() {
	if s.flushAll() != nil {
		s.pool.limit *= 2
	}
}

// unloggedFlushes is how many times the buffers are written before a store without a log writes a
// checkpoint.
const unloggedFlushes = 4

// logIsLong tells when a replay would take longer than the buffers are worth, or what a crash would
// cost a store without a log has become too much.
func (s *Store) logIsLong() bool {
	switch {
	case !s.live:
		return false
	case s.o.NoLog:
		return s.flushed > unloggedFlushes*s.o.Buffer
	}
	return s.log != nil && s.logEnd+int64(len(s.log.pending)) > max(s.o.Buffer, 1<<20)
}

// buckets yields all buckets, in the order of their slots.
func (s *Store) buckets(yield func(*bucket) bool) {
	for _, b := range s.due {
		if !yield(b) {
			return
		}
	}
	if s.split == nil || yield(s.split.bucket) {
		s.calendar.all(yield)
	}
}

// eachBucket visits all buckets, in the order of their slots.
func (s *Store) eachBucket(visit func(*bucket)) {
	for b := range s.buckets {
		visit(b)
	}
}

// pages returns how many pages a bucket has in memory.
func (b *bucket) pages() int { return len(b.records.buffer.pages) + len(b.messages.buffer.pages) }

// flushAll writes all buffers.
func (s *Store) flushAll() error { return s.flushSome(func(*bucket) bool { return true }) }

// flushOne writes one buffer, whichever comes first.
func (s *Store) flushOne() error {
	for b := range s.buckets {
		if b.pages() > 0 {
			return s.flushBucket(b)
		}
	}
	return s.finishFlush()
}

// fitPage flushes the buffer of a naive store's bucket before it would need a second page. If that
// fails, the buffer grows: the change that came here is in the log already, and the next one will
// be refused.
func (s *Store) fitPage(b *bucket, p *part, size int) {
	fits := len(p.buffer.pages) == 0 || p.buffer.bytes+size <= s.pool.size
	if s.o.Mode != Naive || !s.live || fits {
		return
	}
	if err := s.flushBucket(b); err != nil {
		s.failed = err
	}
}

// flushBucket writes the buffers of one bucket, after those that are being written.
func (s *Store) flushBucket(b *bucket) error {
	if err := s.finishFlush(); err != nil {
		return err
	}
	f := s.newFlush()
	f.take(b)
	f.start()
	return s.finishFlush()
}

// flushSome writes the buffers that are wanted, after those that are being written.
func (s *Store) flushSome(wanted func(*bucket) bool) error {
	if err := s.finishFlush(); err != nil {
		return err
	}
	s.startFlush(wanted)
	return s.finishFlush()
}

// trim releases the extents of a bucket that is due and whose records are all elsewhere. A record
// that somebody holds for days so keeps one extent, and not its whole bucket. What is behind an
// extent that is gone keeps its numbers.
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
