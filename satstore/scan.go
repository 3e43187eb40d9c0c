package satstore

import (
	"iter"
	"slices"

	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// Scan returns an iterator over a snapshot of all records, taken when it begins, in the order of
// their buckets, with messages merged. Records that are out come as they were handed out. The
// caller may keep the Items. Scan does not block other calls, but space that they free on disk is
// not reused until it ends. It holds the messages of one bucket in memory at a time. It yields an
// error once, with a zero Item, and ends.
func (s *Store) Scan() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		v, err := s.view(func(*bucket) bool { return true })
		if err != nil {
			yield(Item{}, err)
			return
		}
		defer v.release()
		for _, b := range v.buckets {
			more, err := v.walk(b, func(e entry) bool {
				return yield(s.item(e), nil)
			})
			if err != nil {
				yield(Item{}, err)
			}
			if err != nil || !more {
				return
			}
		}
	}
}

func (s *Store) item(e entry) Item {
	return Item{string(e.id), timeOf(e.slot, s.o.Unit), slices.Clone(e.data)}
}

// Get returns the record with an id as Scan would, or [ErrUnknown]. It reads the bucket up to the
// record. That takes a tenth of a second in a bucket of a million records, which is common for
// times that are days away. Get is for debugging.
func (s *Store) Get(id string) (Item, error) {
	seq, err := s.seqOf(idset.KeyOf(id))
	if err != nil {
		return Item{}, err
	}
	v, err := s.view(func(b *bucket) bool {
		return seq != idset.None && b.number == s.places.get(seq)
	})
	if err != nil {
		return Item{}, err
	}
	defer v.release()
	item, err := Item{}, ErrUnknown
	for _, b := range v.buckets {
		if seq == idset.None {
			break
		}
		_, walked := v.walk(b, func(e entry) bool {
			if e.seq == seq {
				item, err = s.item(e), nil
			}
			return e.seq != seq
		})
		if walked != nil {
			return Item{}, walked
		}
	}
	return item, err
}

// A view is the content of some buckets at one moment. Its extents are not overwritten until it is
// released.
type view struct {
	s       *Store
	buckets []*bucket

	// The bucket being split, if any.
	split     *bucket // among buckets
	moved     uint64  // its records that have moved
	forwarded uint64  // its messages that have moved
	mail      mailbox // messages that have not followed their records yet
}

// view copies the buckets for which want returns true, and the one being split.
func (s *Store) view(want func(*bucket) bool) (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	v := &view{s: s}
	for b := range s.buckets {
		if split := s.split != nil && s.split.bucket == b; !split && !want(b) {
			continue
		}
		c := &bucket{
			id: b.id, number: b.number, start: b.start, width: b.width, done: slices.Clone(b.done),
			gone: b.gone, records: b.records.View(), messages: b.messages.View(),
		}
		v.buckets = append(v.buckets, c)
		if s.split != nil && s.split.bucket == b {
			v.split, v.moved, v.forwarded = c, s.split.moved, s.split.forwarded
		}
	}
	s.file.Pin()
	return v, nil
}

func (v *view) release() {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	for _, b := range v.buckets {
		b.records.Release()
		b.messages.Release()
	}
	v.s.file.Unpin()
}

// walk visits the records of a bucket with their messages merged, until visit returns false.
func (v *view) walk(b *bucket, visit func(entry) bool) (more bool, err error) {
	mail, err := v.mailOf(b, 0)
	if err != nil {
		return false, err
	}
	if v.mail == nil && v.split != nil {
		if v.mail, err = v.mailOf(v.split, v.forwarded); err != nil {
			return false, err
		}
	}
	moved := uint64(0)
	if b == v.split {
		moved, mail = v.moved, nil // they are in v.mail
	}
	// A record that a split has moved may have messages in two places. Those that have already
	// moved are older.
	r := extent.NewReader(v.s.file, nil, extent.NoMore)
	defer r.Close()
	return walkRecords(r, b, moved, func(_ uint64, e entry) bool {
		kept := v.merge(&e, mail[e.seq]) && v.merge(&e, v.mail[e.seq])
		return !kept || visit(e)
	})
}

// merge applies messages and reports whether the record is still there.
func (v *view) merge(e *entry, m *mail) bool {
	if m == nil {
		return true
	}
	for _, message := range m.messages {
		if message.delete {
			return false
		}
		e.data = v.s.o.Merge(string(e.id), slices.Clone(e.data), message.payload)
	}
	return true
}

// mailOf returns the messages of a bucket after the first skip ones.
func (v *view) mailOf(b *bucket, skip uint64) (mail mailbox, err error) {
	r := extent.NewReader(v.s.file, nil, nil)
	for at := skip; at < b.messages.Count() && err == nil; {
		err = eachMessage(r, b, at, func(n, seq uint64, m message) bool {
			m.payload = slices.Clone(m.payload)
			mail.post(seq, m)
			at = n + 1
			return true
		})
	}
	return mail, err
}

// walkRecords visits the records that are in a bucket, starting at one, until visit returns false.
// The bucket must not change during the walk: s.mu is held, or b is part of a view.
func walkRecords(
	r *extent.Reader, b *bucket, from uint64, visit func(at uint64, e entry) bool,
) (more bool, err error) {
	more = true
	for more && from < b.records.Count() {
		was := from
		err := eachRecord(r, b, from, func(at uint64, e entry) bool {
			from = at + 1
			more = b.isDone(at) || visit(at, e)
			return more
		})
		if err != nil {
			return false, err
		}
		if from == was {
			break // the rest is gone
		}
	}
	return more, nil
}
