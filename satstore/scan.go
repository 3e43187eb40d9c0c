package satstore

import (
	"iter"
	"slices"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// Scan returns an iterator over all records as they are when it begins, bucket by bucket in the
// order of their slots, with the messages merged that wait for them. Those that are out are as they
// were handed out. The Items are the caller's to keep. Writers are not held up, but what they free
// on disk meanwhile stays taken, and the messages of one bucket are in memory at a time. An error
// is yielded once, with a zero Item, and ends the walk.
func (s *Store) Scan() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		v, err := s.freeze(nil)
		if err != nil {
			yield(Item{}, err)
			return
		}
		defer v.thaw()
		for _, b := range v.buckets {
			more, err := v.walk(b, func(e entry) bool {
				return yield(Item{string(e.id), e.slot, e.data}, nil)
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

// Get returns the record of an id as Scan would. It reads the bucket up to the record, which takes
// milliseconds: it is for people who look into a store, not for crawlers.
func (s *Store) Get(id string) (Item, error) {
	if !s.o.indexed() {
		return Item{}, ErrNoIndex
	}
	s.idsMu.Lock()
	seq, err := s.seqOf(idset.KeyOf(id))
	s.idsMu.Unlock()
	if err != nil {
		return Item{}, err
	}
	v, err := s.freeze(func(b *bucket) bool { return b.number == s.places.get(seq) })
	if err != nil {
		return Item{}, err
	}
	defer v.thaw()
	item, err := Item{}, ErrUnknown
	for _, b := range v.buckets {
		if seq == idset.None {
			break
		}
		_, walked := v.walk(b, func(e entry) bool {
			if e.seq == seq {
				item, err = Item{id, e.slot, e.data}, nil
			}
			return e.seq != seq
		})
		if walked != nil {
			return Item{}, walked
		}
	}
	return item, err
}

// A view is what some buckets hold at one moment. Its extents are not written over until it thaws.
type view struct {
	s       *Store
	buckets []*bucket

	// These are about the bucket that was being split, if there is one.
	split     *bucket   // among buckets
	moved     uint64    // records of it that are elsewhere already
	forwarded uint64    // messages
	mail      mailTable // for records that are elsewhere, but not the messages
}

type mailTable map[uint64]*mail

// freeze copies those buckets that are wanted; nil means all.
func (s *Store) freeze(want func(*bucket) bool) (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	v := &view{s: s}
	s.eachBucket(func(b *bucket) {
		if want != nil && !want(b) && (s.split == nil || b != s.split.bucket) {
			return
		}
		c := &bucket{id: b.id, number: b.number, start: b.start, width: b.width, gone: b.gone}
		c.done = append(c.done, b.done...)
		c.records, c.messages = b.records.clone(), b.messages.clone()
		v.buckets = append(v.buckets, c)
		if s.split != nil && b == s.split.bucket {
			v.split, v.moved, v.forwarded = c, s.split.moved, s.split.forwarded
		}
	})
	// Extents are not copied: they are never changed, and as long as the pin is there they are not
	// written over either.
	s.space.pins++
	return v, nil
}

// clone copies a part, with what is in memory.
func (p *part) clone() part {
	return part{
		extents: slices.Clone(p.extents), disk: p.disk,
		frozen: p.frozen.clone(), buffer: p.buffer.clone(),
	}
}

func (v *view) thaw() {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.s.space.pins--
}

// walk visits the records of a bucket with their messages merged, until visit returns false.
func (v *view) walk(b *bucket, visit func(entry) bool) (more bool, err error) {
	table, err := v.s.mailOf(b, 0)
	if err != nil {
		return false, err
	}
	if v.mail == nil && v.split != nil {
		if v.mail, err = v.s.mailOf(v.split, v.forwarded); err != nil {
			return false, err
		}
	}
	moved := uint64(0)
	if b == v.split {
		moved, table = v.moved, nil // which v.mail is
	}
	// A record that a split has moved has its messages in two places.
	return v.s.eachRecord(b, moved, func(e entry) bool {
		// What was forwarded is older than what was not.
		kept := v.merge(&e, table[e.seq]) && v.merge(&e, v.mail[e.seq])
		return !kept || visit(e)
	})
}

// merge applies messages and reports whether the record is still there.
func (v *view) merge(e *entry, m *mail) bool {
	if m == nil {
		return true
	}
	for _, message := range m.messages {
		if message.kind == messageDelete {
			return false
		}
		e.data = v.s.o.Merge(e.id, e.data, message.payload)
	}
	return true
}

// mailOf returns the messages of a bucket, but for the first ones. It requires that s.mu is held,
// unless b is a copy.
func (s *Store) mailOf(b *bucket, skip uint64) (mailTable, error) {
	c, all := cursor{s: s, bucket: b}, bucket{}
	for at := skip; at < b.messages.count(); {
		found, err := c.next(&b.messages, at)
		if err != nil {
			return nil, err
		}
		d := disk.Decoder{B: slices.Clone(found.raw)}
		for at = found.first; at < found.first+uint64(found.count); at++ {
			seq, m := takeMessage(&d)
			if d.Bad {
				return nil, s.badEntry(b, &b.messages, at)
			}
			if at >= skip {
				all.post(seq, m)
			}
		}
	}
	return all.table, nil
}

// eachRecord visits the records of a bucket that are in it, until visit returns false. The entry is
// the visitor's to keep. It requires that s.mu is held, unless b is a copy.
func (s *Store) eachRecord(b *bucket, moved uint64, visit func(entry) bool) (more bool, err error) {
	c := cursor{s: s, bucket: b}
	for at := uint64(0); at < b.records.count(); {
		found, err := c.next(&b.records, at)
		if err != nil {
			return false, err
		}
		if found.count == 0 {
			break // the rest of it is gone
		}
		d := disk.Decoder{B: slices.Clone(found.raw)}
		for at = found.first; at < found.first+uint64(found.count); at++ {
			e := b.takeEntry(&d, s.o.indexed())
			if d.Bad {
				return false, s.badEntry(b, &b.records, at)
			}
			if at >= moved && !b.isDone(at) && !visit(e) {
				return false, nil
			}
		}
	}
	return true, nil
}
