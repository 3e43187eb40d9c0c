package satstore

import (
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// A Record is one that is due, in the caller's hands until it is given back by [Record.Reschedule]
// or [Record.Delete]. It is not safe for concurrent use. Several records can be used at once.
//
// Until it is given back it keeps the block in memory that it was read from, 128 KiB with a copy;
// see [Record.Detach].
type Record struct {
	ID   string
	Data []byte // may be changed in place, and is gone once the record is given back

	*block
	record   uint64 // number in its bucket
	seq      uint64
	at       uint32 // of the id and the data, as they are in the bucket, in raw
	idSize   uint32
	dataSize uint32
	returned bool
}

// A block is what a record was read from.
type block struct {
	store  *Store
	bucket *bucket
	raw    []byte // as it was read, for the diff that is logged
	chunk  *chunk // that it is in; nil if it is one record's own
}

// At returns the beginning of the unit in which the record was due.
func (r *Record) At() time.Time { return timeOf(r.bucket.start, r.store.o.Unit) }

// id returns the id as it is in the bucket.
func (r *Record) id() []byte { return r.raw[r.at:][:r.idSize] }

// data returns the data as they are in the bucket. Their length is between.
func (r *Record) data() []byte {
	return r.raw[r.at+r.idSize+uint32(disk.UvarintSize(uint64(r.dataSize))):][:r.dataSize]
}

// Reschedule gives the record back, with new data, which may be r.Data, to be due at a later
// time: in a later unit than the current one. After [ErrSize] the record is still the caller's;
// [ErrDone] says that it had been given back before.
func (r *Record) Reschedule(at time.Time, data []byte) error {
	// Refused before anything is noted: the record is still the caller's, who may try less.
	if len(data) > MaxData {
		return ErrSize
	}
	s, b := r.store, r.bucket
	if err := s.begin(wal.MaxSize(len(data))); err != nil {
		return err
	}
	if r.returned {
		s.mu.Unlock()
		return ErrDone
	}
	slot := max(slotOf(at, s.o.Unit), s.calendar.Now()+1)
	old := r.data()
	h := wal.Change{
		Kind: wal.Move, Bucket: b.id, Record: r.record, Slot: slot, Old: old, Data: data,
	}
	// Messages that came since it was handed out have to follow it, behind it in the log as in the
	// buffers: a replay then delivers them to the place where it has put the record.
	var later []message
	if len(b.mail) > 0 {
		later = b.mail[r.seq].later()
	}
	survives, err := s.noteMove(&h, r.seq, later)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	if len(b.mail) > 0 {
		delete(b.mail, r.seq)
	}
	s.move(b, r.record, entry{r.seq, slot, r.id(), data})
	for _, m := range later {
		s.deliver(r.seq, m)
	}
	r.leave()
	s.stats.Rescheduled++
	s.stats.UserBytes += int64(r.idSize) + int64(len(data))
	return s.end(survives)
}

// noteMove notes a move and the messages that follow it, all or none.
func (s *Store) noteMove(h *wal.Change, seq uint64, later []message) (bool, error) {
	if len(later) == 0 {
		return s.note(h)
	}
	move := *h // or every h would be on the heap
	changes := []*wal.Change{&move}
	for _, m := range later {
		kind := wal.Update
		if m.delete {
			kind = wal.Delete
		}
		changes = append(changes, &wal.Change{Kind: kind, Seq: seq, Data: m.payload})
	}
	return s.note(changes...)
}

// later returns the messages that came after the record was handed out.
func (m *mail) later() []message {
	if m == nil {
		return nil
	}
	return m.messages[m.taken:]
}

// Delete gives the record back for good. Its id is then unknown and may be added again.
func (r *Record) Delete() error {
	s, b := r.store, r.bucket
	s.adding.Lock()
	defer s.adding.Unlock()
	if r.returned { // by this goroutine, as no other may use it
		return r.refused()
	}
	// The index is asked before s.mu is locked, since that may take a read from the disk.
	key := idset.KeyOf(string(r.id()))
	seq, err := s.seqOf(key)
	if err != nil {
		return err
	}
	if err := s.begin(2 * wal.MaxSize(0)); err != nil {
		return err
	}
	changes := []*wal.Change{{Kind: wal.Drop, Bucket: b.id, Record: r.record}}
	known := seq == r.seq // it may have been deleted, and added again
	if known {
		changes = append(changes, &wal.Change{Kind: wal.Forget, Key: key})
	}
	survives, err := s.note(changes...)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	s.drop(b, r.record, r.seq)
	if known {
		s.ids.Delete(key)
	}
	r.leave()
	return s.end(survives)
}

// refused tells why a record that was returned cannot be.
func (r *Record) refused() error {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return err
	}
	return ErrDone
}

// leave says that the caller has the record no longer. It requires that s.mu is held.
func (r *Record) leave() {
	r.returned = true
	r.store.out--
	if r.chunk != nil {
		r.chunk.let(1)
	}
}

// Detach returns the record in memory of its own, to be given back in the place of r, which
// counts as given back. It is for records that stay out for long: one with 100 bytes and an id of
// 64 takes about 500 bytes then, and no longer keeps the block that it was read from.
func (r *Record) Detach() *Record {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.returned || r.chunk == nil {
		return r
	}
	own := &struct {
		Record
		block
	}{*r, *r.block}
	// With the data as they were, so that the log still gets only what changed.
	size := int(r.idSize) + disk.UvarintSize(uint64(r.dataSize)) + int(r.dataSize)
	raw := make([]byte, 0, size+len(r.Data))
	raw = append(append(raw, r.raw[r.at:][:size]...), r.Data...)
	own.block.raw, own.Record.Data = raw[:size:size], raw[size:]
	own.Record.ID, own.Record.at = strings.Clone(r.ID), 0
	own.Record.block, own.block.chunk = &own.block, nil
	r.returned = true
	r.chunk.let(1)
	return &own.Record
}
