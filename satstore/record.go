package satstore

import (
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
	"github.com/spinneret-go/spinneret/satstore/internal/wal"
)

// A Record is due. The caller returns it with [Record.Reschedule] or [Record.Delete]. A Record
// must not be copied, and is not safe for concurrent use. Different records may be used concurrently.
//
// Until it is returned, a record keeps two copies of the block that it was read from, 128 KiB in
// all. See [Record.Detach].
type Record struct {
	ID   string
	Data []byte // may be changed in place; invalid once the record is returned

	*block
	record   uint64 // number in its bucket
	seq      uint64
	at       uint32 // offset of the id and the data in raw
	idSize   uint32
	dataSize uint32
	returned bool
}

// A block is the block that records were read from.
type block struct {
	store  *Store
	bucket *bucket
	raw    []byte // unchanged, for the diff that is logged
	chunk  *chunk // nil if the record is detached
}

// At returns the beginning of the unit in which the record was due.
func (r *Record) At() time.Time { return timeOf(r.bucket.start, r.store.o.Unit) }

// id returns the id as stored.
func (r *Record) id() []byte { return r.raw[r.at:][:r.idSize] }

// data returns the data as stored. Its encoded length is between the id and the data.
func (r *Record) data() []byte {
	return r.raw[r.at+r.idSize+uint32(durable.UvarintSize(uint64(r.dataSize))):][:r.dataSize]
}

// Reschedule returns the record with new data, which may be r.Data. The record is due again at the
// given time, but not before the next unit. After [ErrSize] the caller still has the record.
// [ErrDone] means that the record was returned before. After another error the outcome is unknown:
// once a [Store.Sync] has succeeded, a second call returns the record, or ErrDone if the first one did.
func (r *Record) Reschedule(at time.Time, data []byte) error {
	if len(data) > MaxData {
		return ErrSize
	}
	s, b := r.store, r.bucket
	return s.change(wal.MaxSize(len(data)), func() (survives bool, err error) {
		if gone, err := r.gone(); gone {
			return true, err
		}
		// Messages that arrived since it was handed out follow the record, in the log as in the
		// buffers. A replay then finds the record at its new place.
		slot, later := max(slotOf(at, s.o.Unit), s.calendar.Now()+1), b.mail[r.seq]
		move := wal.Change{
			Kind: wal.Move, Bucket: b.id, Record: r.record, Slot: slot, Old: r.data(), Data: data,
		}
		if survives, err = s.logMove(&move, r.seq, later); err != nil {
			return false, err
		}
		s.dropMail(b, r.seq, len(later))
		s.move(b, r.record, entry{r.seq, slot, r.id(), data})
		for _, m := range later {
			s.addMessage(r.seq, m)
		}
		r.markReturned()
		return survives, nil
	})
}

// gone reports whether the record is not to be returned: it was, or Store.Delete has removed it. The bucket
// knows that even if r is a copy. It requires that s.mu is held.
func (r *Record) gone() (gone bool, err error) {
	if r.returned || r.bucket.isDone(r.record) {
		return true, ErrDone
	}
	if r.store.places.get(r.seq) != 0 {
		return false, nil
	}
	r.bucket.setDone(r.record) // so that its space is freed
	r.markReturned()
	return true, nil
}

// logMove logs a move and the messages that follow it, all or none.
func (s *Store) logMove(move *wal.Change, seq uint64, later []message) (bool, error) {
	if len(later) == 0 {
		return s.logChange(move)
	}
	first := *move // otherwise move would always escape to the heap
	changes := []*wal.Change{&first}
	for _, m := range later {
		changes = append(changes, &wal.Change{Kind: wal.Again, Seq: seq, Data: m.payload})
	}
	return s.logChange(changes...)
}

// Delete removes the record from the store. Its id may then be added again. Errors mean what they mean
// for [Record.Reschedule].
func (r *Record) Delete() error {
	s, b := r.store, r.bucket
	s.awaitCheckpoint()
	return s.change(wal.MaxSize(0), func() (survives bool, err error) {
		if gone, err := r.gone(); gone {
			return true, err
		}
		key := idset.KeyOf(string(r.id()))
		survives, err = s.logChange(
			&wal.Change{Kind: wal.Drop, Bucket: b.id, Record: r.record, Key: key})
		if err == nil {
			s.dropMail(b, r.seq, len(b.mail[r.seq]))
			s.drop(b, r.record, r.seq)
			s.ids.Delete(key)
			s.idChanges++
			r.markReturned()
		}
		return survives, err
	})
}

// markReturned ends the caller's use of the record. It requires that s.mu is held.
func (r *Record) markReturned() {
	r.returned = true
	r.store.out--
	if r.chunk != nil {
		r.chunk.release(1)
	}
}

// Detach returns a copy of the record that replaces r. Use it for records that stay out for long: a
// detached record with 100 bytes of data and an id of 64 takes about 500 bytes and does not keep
// the block that it was read from. Its data may be changed in place as before, and only the
// difference is logged.
func (r *Record) Detach() *Record {
	if r.returned || r.chunk == nil { // needs no lock: only this goroutine may use r
		return r
	}
	own := &struct {
		Record
		block
	}{*r, *r.block}
	// Copy the stored data too: the log then still gets only the difference.
	size := int(r.idSize) + durable.UvarintSize(uint64(r.dataSize)) + int(r.dataSize)
	raw := make([]byte, 0, size+len(r.Data))
	raw = append(append(raw, r.raw[r.at:][:size]...), r.Data...)
	own.block.raw, own.Record.Data = raw[:size:size], raw[size:]
	own.Record.ID, own.Record.at = strings.Clone(r.ID), 0
	own.Record.block, own.block.chunk = &own.block, nil
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.returned = true
	r.chunk.release(1)
	return &own.Record
}
