package satstore

import (
	"encoding/binary"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// A bucket holds the records that are due in a range of slots, in the order in which they came,
// and the messages for them.
type bucket struct {
	id       uint64 // never used again
	number   uint16 // in the bucket index; free again once the bucket is dead
	start    int64  // first slot
	width    int64  // slots
	records  extent.Part
	messages extent.Part
	dead     bool // it has been given up

	// What follows counts once the bucket is due.
	done   []uint64 // bit by record: it is elsewhere by now
	gone   int      // bits that are set
	next   uint64   // record to read next
	mail   mailbox
	loaded bool // mail has the messages
}

// A message is what an Update or a Delete left for a record.
type message struct {
	delete  bool
	payload []byte
}

// A mailbox has the messages for records, by sequence number.
type mailbox map[uint64]*mail

// mail is what waits for a record.
type mail struct {
	messages []message
	taken    int // so many were merged when the record was handed out
}

func (m *mailbox) post(seq uint64, one message) {
	if *m == nil {
		*m = mailbox{}
	}
	if (*m)[seq] == nil {
		(*m)[seq] = &mail{}
	}
	(*m)[seq].messages = append((*m)[seq].messages, one)
}

func (b *bucket) isDone(record uint64) bool {
	return record/64 < uint64(len(b.done)) && b.done[record/64]&(1<<(record%64)) != 0
}

func (b *bucket) setDone(record uint64) {
	for record/64 >= uint64(len(b.done)) {
		b.done = append(b.done, 0)
	}
	b.done[record/64] |= 1 << (record % 64)
	b.gone++
}

// allDone reports whether all records of a range are elsewhere.
func (b *bucket) allDone(from, to uint64) bool {
	for ; from < to; from++ {
		// A word at a time, as a checkpoint asks this of every extent that is due.
		if from%64 == 0 && to-from >= 64 && from/64 < uint64(len(b.done)) {
			if b.done[from/64] != ^uint64(0) {
				return false
			}
			from += 63
		} else if !b.isDone(from) {
			return false
		}
	}
	return true
}

// left returns how many records are in the bucket, those that are out included.
func (b *bucket) left() uint64 { return b.records.Count() - uint64(b.gone) }

// unread reports whether something was not handed out yet.
func (b *bucket) unread() bool { return b.next < b.records.Count() }

// An entry is a record as a bucket holds it.
type entry struct {
	seq      uint64
	slot     int64
	id, data []byte
}

// place appends a record to a bucket. scratch is memory for it, and is returned.
func (b *bucket) place(pool *extent.Pool, e entry, scratch []byte) []byte {
	size := disk.UvarintSize(e.seq) + disk.UvarintSize(uint64(len(e.id))) + len(e.id) +
		disk.UvarintSize(uint64(len(e.data))) + len(e.data)
	if b.width != 1 {
		size += disk.UvarintSize(uint64(e.slot - b.start))
	}
	return b.records.Append(pool, size, scratch, func(dst []byte) []byte {
		return b.appendEntry(dst, e)
	})
}

// appendEntry appends the form that entries have in bucket b.
func (b *bucket) appendEntry(dst []byte, e entry) []byte {
	dst = binary.AppendUvarint(dst, e.seq)
	// In a bucket of one slot, where nearly all records are when they are read, the slot costs
	// nothing.
	if b.width != 1 {
		dst = binary.AppendUvarint(dst, uint64(e.slot-b.start))
	}
	return disk.AppendBytes(disk.AppendBytes(dst, e.id), e.data)
}

// takeEntry undoes appendEntry; its slices are those of d.
func (b *bucket) takeEntry(d *disk.Decoder) (e entry) {
	e.seq = d.Uvarint()
	e.slot = b.start
	if b.width != 1 {
		e.slot += int64(d.Number(uint64(b.width - 1)))
	}
	e.id = d.Bytes(MaxID)
	e.data = d.Bytes(MaxData)
	return e
}

// These constants are on disk. Do not change them; add a version.
const (
	messageUpdate = 1
	messageDelete = 2
)

func appendMessage(dst []byte, seq uint64, m message) []byte {
	dst = binary.AppendUvarint(dst, seq)
	if m.delete {
		return append(dst, messageDelete)
	}
	return disk.AppendBytes(append(dst, messageUpdate), m.payload)
}

func takeMessage(d *disk.Decoder) (seq uint64, m message) {
	seq = d.Uvarint()
	switch d.Byte() {
	case messageDelete:
		m.delete = true
	case messageUpdate:
		m.payload = d.Bytes(MaxData)
	default:
		d.Bad = true
	}
	return seq, m
}

// eachRecord visits the records of the block that has a record, or the next one that is there,
// from that record on, until visit returns false. Entries share the memory of the block.
func eachRecord(r *extent.Reader, b *bucket, from uint64, visit func(at uint64, e entry) bool) error {
	r.Open(&b.records, b.id, extent.Records)
	return eachEntry(r, from, func(at uint64, d *disk.Decoder) bool {
		e := b.takeEntry(d)
		return d.Bad || at < from || visit(at, e)
	})
}

// eachMessage is eachRecord for messages.
func eachMessage(
	r *extent.Reader, b *bucket, from uint64, visit func(at, seq uint64, m message) bool,
) error {
	r.Open(&b.messages, b.id, extent.Messages)
	return eachEntry(r, from, func(at uint64, d *disk.Decoder) bool {
		seq, m := takeMessage(d)
		return d.Bad || at < from || visit(at, seq, m)
	})
}

func eachEntry(
	r *extent.Reader, from uint64, take func(at uint64, d *disk.Decoder) bool,
) error {
	found, err := r.Next(from)
	if err != nil {
		return err
	}
	d := disk.Decoder{B: found.Raw}
	for at := found.First; at < found.First+uint64(found.Count); at++ {
		more := take(at, &d)
		if d.Bad {
			return r.Misfit(at)
		}
		if !more {
			break
		}
	}
	return nil
}
