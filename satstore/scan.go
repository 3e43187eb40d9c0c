package satstore

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/spinneret-go/spinneret/satstore/internal/extent"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// Scan returns an iterator over a snapshot of all records, taken when it begins, in the order of
// their buckets, with messages merged. Within a bucket they come in the order of arrival. Records that
// are out come as they were handed out. The caller may keep the Items. Scan does not block other calls,
// but space that they free on disk is not reused until it ends. It yields an error once, with a zero
// Item, and ends: damage ends it, also that of records that are set aside, which come last.
//
// Scan, Check and Repair read a bucket once, unless its messages need more memory than a quarter
// of [Options].Buffer. Then they read its records a few times, and its messages once for each quarter.
func (s *Store) Scan() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		v, err := s.view(func(*bucket) bool { return true })
		if err != nil {
			yield(Item{}, err)
			return
		}
		defer v.release()
		for _, b := range v.buckets {
			more, err := v.each(b, func(e entry, m []message) bool {
				return deletes(m) || yield(s.item(e, m), nil)
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

// item returns a copy of a record, with messages merged.
func (s *Store) item(e entry, m []message) Item {
	item := Item{string(e.id), timeOf(e.slot, s.o.Unit), slices.Clone(e.data)}
	for _, message := range m {
		item.Data = s.o.Merge(item.ID, item.Data, message.payload)
	}
	return item
}

// Get returns the record with an id as Scan would, or [ErrUnknown]. It reads the bucket up to the
// record. That takes a tenth of a second in a bucket of a million records, which is common for
// times that are days away. If damage hides the record, the error is also a [CorruptError]. Get is for
// debugging.
func (s *Store) Get(id string) (Item, error) {
	seq, err := s.seqOf(idset.KeyOf(id))
	if err != nil {
		return Item{}, err
	}
	found := ErrUnknown
	v, err := s.view(func(b *bucket) bool {
		return b.number == s.places.get(seq)
	})
	if err != nil {
		return Item{}, err
	}
	defer v.release()
	var damage error
	v.damaged = func(_ uint64, err error) error { // the record may be beside it
		if !errors.Is(err, ErrCorrupt) {
			return err
		}
		damage = cmp.Or(damage, err)
		return nil
	}
	item := Item{}
	for _, b := range v.buckets {
		mail, err := v.mail(b, nil, func(n uint64) bool { return n == seq })
		if err != nil {
			return Item{}, err
		}
		r := extent.NewReader(s.file, nil, nil)
		if _, err := v.records(r, b, v.moved(b), b.records.Count(), func(e entry) bool {
			if e.seq == seq && !deletes(mail[seq]) {
				item, found = s.item(e, mail[seq]), nil
			}
			return e.seq != seq
		}); err != nil {
			return Item{}, err
		}
	}
	if found != nil && damage != nil {
		found = fmt.Errorf("%w: %w", found, damage)
	}
	return item, found
}

// A view is the content of some buckets at one moment. Its extents are not overwritten until it is
// released.
type view struct {
	s       *Store
	buckets []*bucket
	split   *split   // a copy of the one in progress, if its records may be in the buckets
	pin     uint64   // of its extents
	damaged lostFunc // nil means that the first damage ends a walk
}

// A lostFunc is called with the number of records that cannot be read, and the reason. It returns nil to
// continue with the records after them.
type lostFunc func(records uint64, err error) error

// count returns a damageFunc that counts the records of b which had not been returned.
func (f lostFunc) count(b *bucket) damageFunc {
	if f == nil {
		return nil
	}
	return func(from, to uint64, err error) error {
		n := to - from
		for at := from; at < min(to, 64*uint64(len(b.done))); at++ {
			if b.isDone(at) {
				n--
			}
		}
		return f(n, err)
	}
}

// view copies the buckets for which want returns true.
func (s *Store) view(want func(*bucket) bool) (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	v := &view{s: s}
	for b := range s.buckets {
		if want(b) {
			v.buckets = append(v.buckets, b.view())
		}
	}
	if p := s.split; p != nil {
		v.split = &split{bucket: p.bucket.view(), moved: p.moved, forwarded: p.forwarded}
	}
	v.pin = s.file.Pin()
	return v, nil
}

// view returns a copy of a bucket for readers. They must release it.
func (b *bucket) view() *bucket {
	return &bucket{
		id: b.id, number: b.number, start: b.start, width: b.width, gone: b.gone,
		done: slices.Clone(b.done), records: b.records.View(), messages: b.messages.View(),
	}
}

func (b *bucket) release() {
	b.records.Release()
	b.messages.Release()
}

func (v *view) release() {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	for _, b := range v.buckets {
		b.release()
	}
	if v.split != nil {
		v.split.bucket.release()
	}
	v.s.file.Unpin(v.pin)
}

// each visits the records of a bucket with their messages, until visit returns false. If all messages
// do not fit in a quarter of the buffers, it reads them again for each part of the records.
func (v *view) each(b *bucket, visit func(e entry, m []message) bool) (more bool, err error) {
	from, end, damaged := v.moved(b), b.records.Count(), v.damaged
	r := extent.NewReader(v.s.file, nil, extent.NoMore) // one for all parts, which may share an extent
	defer r.Close()
	for parts := uint64(v.mailBytes(b)/(v.s.o.Buffer/4)) + 1; parts > 0; parts-- {
		to := from + (end-from)/parts
		want := func(uint64) bool { return true }
		if to-from < b.records.Count() {
			if want, err = v.numbers(r, b, from, to); err != nil {
				return false, err
			}
		}
		mail, err := v.mail(b, damaged, want)
		if err != nil {
			return false, err
		}
		more, err := v.records(r, b, from, to, func(e entry) bool { return visit(e, mail[e.seq]) })
		if err != nil || !more {
			return false, err
		}
		if from = to; damaged != nil { // it is known now
			damaged = func(uint64, error) error { return nil }
		}
	}
	return true, nil
}

// moved returns the number of the first record of a bucket that may not have moved.
func (v *view) moved(b *bucket) uint64 {
	if v.isSplit(b) && b.done == nil {
		return v.split.moved
	}
	return 0
}

// records visits some records of a bucket, until visit returns false.
func (v *view) records(
	r *extent.Reader, b *bucket, from, to uint64, visit func(e entry) bool,
) (more bool, err error) {
	return walkRecords(r, b, from, to, v.damaged.count(b), func(at uint64, e entry) bool {
		return b.isDone(at) || visit(e)
	})
}

// numbers returns a function that reports whether a record is one of a part of a bucket.
func (v *view) numbers(
	r *extent.Reader, b *bucket, from, to uint64,
) (among func(seq uint64) bool, err error) {
	quiet := view{s: v.s}
	if v.damaged != nil {
		quiet.damaged = func(uint64, error) error { return nil } // it is reported with the records
	}
	var seqs []uint64
	_, err = quiet.records(r, b, from, to, func(e entry) bool {
		seqs = append(seqs, e.seq)
		return true
	})
	slices.Sort(seqs)
	return func(seq uint64) bool {
		_, found := slices.BinarySearch(seqs, seq)
		return found
	}, err
}

func (v *view) isSplit(b *bucket) bool { return v.split != nil && v.split.bucket.id == b.id }

// mailBytes returns how much memory the messages for the records of a bucket take.
func (v *view) mailBytes(b *bucket) int64 {
	n := b.mailBytes()
	if !v.isSplit(b) && v.split.leadsTo(b) {
		n += v.split.bucket.mailBytes()
	}
	return n
}

// mail returns the messages for records of a bucket. A record that a split has moved may have
// messages in two places. Those that have moved as well are older.
func (v *view) mail(b *bucket, damaged lostFunc, want func(seq uint64) bool) (mailbox, error) {
	var mail mailbox
	var skip damageFunc
	if damaged != nil {
		skip = func(_, _ uint64, err error) error { return damaged(0, err) }
	}
	r := extent.NewReader(v.s.file, nil, nil)
	keep := func(_, seq uint64, m message) bool {
		if want(seq) {
			mail.post(seq, m)
		}
		return true
	}
	from := uint64(0)
	if v.isSplit(b) && b.done == nil { // otherwise some are for records that could not be moved
		from = v.split.forwarded
	}
	_, err := walkMessages(r, b, from, b.messages.Count(), skip, keep)
	if err == nil && !v.isSplit(b) && v.split.leadsTo(b) {
		if skip != nil { // it is known from the bucket that is being split
			skip = func(_, _ uint64, _ error) error { return nil }
		}
		from := v.split.bucket
		_, err = walkMessages(r, from, v.split.forwarded, from.messages.Count(), skip, keep)
	}
	return mail, err
}
