package satstore

import (
	"slices"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// A Record is one that is due, in the caller's hands until it is given back by [Record.Reschedule]
// or [Record.Delete]. It is not safe for concurrent use. Several records can be used at once.
//
// Until it is given back it keeps the block in memory that it was read from, 128 KiB with a copy;
// see [Record.Detach].
type Record struct {
	// ID and Data may be changed in place, and are gone once the record is given back.
	ID, Data []byte

	// Slot is when the record was due. If over 64 slots are being worked off at once, it may be an
	// earlier one.
	Slot int64

	chunk    *chunk
	record   uint64
	seq      uint64
	at       uint32 // of the id, in the chunk
	idSize   uint32
	dataSize uint32
	detached bool // in a chunk of its own, with the id only
	returned bool
}

// id returns the id as it is in the bucket.
func (r *Record) id() []byte { return r.chunk.raw[r.at:][:r.idSize] }

// dataAt returns where the data begin in the chunk, behind the id and their length.
func (r *Record) dataAt() uint32 {
	return r.at + r.idSize + uint32(disk.UvarintSize(uint64(r.dataSize)))
}

// data returns the data as they are in the bucket.
func (r *Record) data() []byte { return r.chunk.raw[r.dataAt():][:r.dataSize] }

// Reschedule gives the record back, with new data, which may be r.Data, to be due in a later slot.
// A slot that is not later than the current one means the next one. After [ErrSize] the record is
// still the caller's; [ErrDone] says that it had been given back before.
func (r *Record) Reschedule(slot int64, data []byte) error {
	// Refused before anything is noted: the record is still the caller's, who may try less.
	if len(data) > MaxData {
		return ErrSize
	}
	s := r.chunk.store
	if err := s.begin(false, 2*len(data)); err != nil {
		return err
	}
	return s.end(false, r.reschedule(slot, data))
}

// reschedule requires that s.mu is held.
func (r *Record) reschedule(slot int64, data []byte) error {
	if r.returned {
		return ErrDone
	}
	s, b := r.chunk.store, r.chunk.bucket
	slot = min(max(slot, s.calendar.now+1), maxSlot)
	h := change{kind: changeWhole, bucket: b.id, record: r.record, slot: slot, data: data}
	var old []byte
	if !r.detached {
		h.kind, old = changeDiff, r.data()
	}
	// The messages that came since it was handed out have to follow it, behind it in the log as in
	// the buffers: a replay then delivers them to the place where it has put the record.
	later := b.takeLater(r.seq)
	s.note(&h, old)
	s.move(b, r.record, entry{r.seq, slot, r.id(), data})
	r.leave()
	s.stats.Rescheduled++
	s.stats.UserBytes += int64(r.idSize) + int64(len(data))
	s.forward(r.seq, later)
	return nil
}

// Delete gives the record back for good. Its id is then unknown and may be added again.
func (r *Record) Delete() error {
	s, b := r.chunk.store, r.chunk.bucket
	s.idsMu.Lock()
	defer s.idsMu.Unlock()
	var key idset.Key
	// The index is asked before s.mu is locked, since that may take a read from the disk.
	known := false
	if s.o.indexed() && !r.returned {
		key = idset.KeyOf(string(r.id()))
		seq, err := s.seqOf(key)
		if err != nil {
			return err
		}
		known = seq == r.seq // it may have been deleted, and added again
	}
	if err := s.begin(true, 0); err != nil {
		return err
	}
	if r.returned {
		return s.end(true, ErrDone)
	}
	if known {
		s.forget(key, r.seq)
	}
	s.note(&change{kind: changeDrop, bucket: b.id, record: r.record}, nil)
	s.drop(b, r.record, r.seq)
	r.leave()
	return s.end(true, nil)
}

// leave says that the caller has the record no longer.
func (r *Record) leave() {
	r.returned = true
	s := r.chunk.store
	s.out--
	if !r.detached {
		r.chunk.let(1)
	}
}

// Detach copies ID and Data, so that the record no longer keeps the block in memory. It is for
// those that stay out for long. The log then gets all of the data, not only what changed.
func (r *Record) Detach() {
	s := r.chunk.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.returned || r.detached {
		return
	}
	// The chunk of its own has the id and no data: so a diff cannot be made, and Reschedule logs
	// all of the data.
	old := r.chunk
	r.chunk = &chunk{store: s, bucket: old.bucket, raw: slices.Clone(r.id())}
	r.at, r.detached = 0, true
	r.ID, r.Data = slices.Clone(r.ID), slices.Clone(r.Data)
	old.let(1)
}

// takeLater removes and returns the messages that came after the record was handed out.
func (b *bucket) takeLater(seq uint64) []message {
	m := b.table[seq]
	if m == nil {
		return nil
	}
	delete(b.table, seq)
	return m.messages[m.taken:]
}

// forward sends messages after a record that has moved.
func (s *Store) forward(seq uint64, later []message) {
	for _, m := range later {
		s.note(&change{kind: changeMessage, seq: seq, message: m}, nil)
		s.deliver(seq, m)
	}
}
