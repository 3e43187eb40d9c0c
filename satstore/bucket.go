package satstore

import (
	"encoding/binary"
	"slices"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// A bucket holds the records that are due in a range of slots, in the order of their arrival there,
// and the messages for them.
type bucket struct {
	id       uint64 // never used again
	number   uint16 // in the bucket index; reused once the bucket is dead
	start    int64  // first slot
	width    int64  // slots
	records  extent.Part
	messages extent.Part
	gone     uint64 // records that have left or were deleted
	dead     bool   // all of its records are gone, and its space is free
	holes    bool   // during Repair: some of its records could not be read

	// A bit per record that is elsewhere, in buckets that are due, or were split despite damage.
	done []uint64

	// These are used once the bucket is due.
	next   uint64  // record to read next
	mail   mailbox // for records that were not handed out since
	loaded bool    // mail holds the messages
}

// A message is left for a record by Update or Delete.
type message struct {
	delete  bool
	payload []byte
}

// mailSize is about what a message takes in memory besides its payload.
const mailSize = 160

// size returns about what a message takes in memory, in bytes.
func (m message) size() int64 { return mailSize + int64(len(m.payload)) }

// deletes reports whether one of the messages for a record deletes it.
func deletes(mail []message) bool {
	return slices.ContainsFunc(mail, func(m message) bool { return m.delete })
}

// A mailbox holds messages by the number of their record, in the order of their arrival.
type mailbox map[uint64][]message

// post adds a copy of a message.
func (m *mailbox) post(seq uint64, one message) {
	if *m == nil {
		*m = mailbox{}
	}
	one.payload = slices.Clone(one.payload)
	(*m)[seq] = append((*m)[seq], one)
}

// size returns about what the messages take in memory, in bytes.
func (m mailbox) size() (bytes int64) {
	for _, messages := range m {
		for _, one := range messages {
			bytes += one.size()
		}
	}
	return bytes
}

func (b *bucket) isDone(record uint64) bool {
	return record/64 < uint64(len(b.done)) && b.done[record/64]&(1<<(record%64)) != 0
}

func (b *bucket) setDone(record uint64) {
	for record/64 >= uint64(len(b.done)) {
		b.done = append(b.done, 0)
	}
	b.done[record/64] |= 1 << (record % 64)
}

// markDone marks the records before one as done, unless some are marked already.
func (b *bucket) markDone(end uint64) {
	if b.done != nil {
		return
	}
	b.done = make([]uint64, end/64+1)
	for i := range b.done {
		b.done[i] = ^uint64(0)
	}
	b.done[end/64] = 1<<(end%64) - 1
}

// allDone reports whether all records of a range are done.
func (b *bucket) allDone(from, to uint64) bool {
	for ; from < to; from++ {
		// A word at a time: a checkpoint asks this for every extent that is due.
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

// left returns how many records are in the bucket, including those that are out.
func (b *bucket) left() uint64 { return b.records.Count() - min(b.gone, b.records.Count()) }

// mailBytes returns how much memory the messages take when they are loaded.
func (b *bucket) mailBytes() int64 {
	return b.messages.Bytes() + mailSize*int64(b.messages.Count())
}

// unread reports whether there are records that were not handed out yet.
func (b *bucket) unread() bool { return b.next < b.records.Count() }

// An entry is a record as it is stored in a bucket.
type entry struct {
	seq      uint64
	slot     int64
	id, data []byte
}

// noRecord is the number of an entry that stands for a record that Repair could not read. It is never
// on the disk of a store.
const noRecord = 1<<64 - 1

// place appends a record. It may use scratch as memory, and returns it.
func (b *bucket) place(pool *extent.Pool, e entry, scratch []byte) []byte {
	size := durable.UvarintSize(e.seq) + durable.UvarintSize(uint64(len(e.id))) + len(e.id) +
		durable.UvarintSize(uint64(len(e.data))) + len(e.data)
	if b.width != 1 {
		size += durable.UvarintSize(uint64(e.slot - b.start))
	}
	return b.records.Append(pool, size, scratch, func(dst []byte) []byte {
		return b.appendEntry(dst, e)
	})
}

// appendEntry appends the form that entries have in bucket b.
func (b *bucket) appendEntry(dst []byte, e entry) []byte {
	dst = binary.AppendUvarint(dst, e.seq)
	// Nearly all records are in a bucket of one slot when they are read. There the slot takes no
	// bytes.
	if b.width != 1 {
		dst = binary.AppendUvarint(dst, uint64(e.slot-b.start))
	}
	return durable.AppendBytes(durable.AppendBytes(dst, e.id), e.data)
}

// takeEntry decodes what appendEntry wrote. The slices share the memory of d.
func (b *bucket) takeEntry(d *durable.Decoder) (e entry) {
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
	return durable.AppendBytes(append(dst, messageUpdate), m.payload)
}

func takeMessage(d *durable.Decoder) (seq uint64, m message) {
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
