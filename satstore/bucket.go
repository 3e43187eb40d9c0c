package satstore

import (
	"encoding/binary"
	"math/bits"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// A bucket holds the records that are due in a range of slots, in the order in which they came,
// and the messages for them.
type bucket struct {
	id       uint64 // never used again
	number   uint16 // in the bucket index; free again once the bucket is dead
	start    int64  // first slot
	width    int64  // slots; 0 for all from start on
	records  part
	messages part

	// What follows counts once the bucket is due, or is split.
	done   []uint64 // bit by record: it is elsewhere by now
	gone   int      // bits that are set
	dead   bool     // it has been given up
	table  map[uint64]*mail
	loaded bool   // table holds the messages of this pass
	passes uint64 // over the records; more than one if the messages do not fit into memory
	pass   uint64
	fresh  uint64          // sequence numbers from here on came after the first pass began
	late   map[uint64]bool // so did these, from other buckets, if there are several passes
	next   uint64          // record to read next, in this pass
}

// A part is a sequence of entries: the oldest ones in the data file, then those that are being
// written there, the newest ones in a buffer. An entry keeps its number from the moment it comes,
// wherever it lies: the log, and the bits of those that are done, go by it.
type part struct {
	extents []extent
	disk    uint64 // entries in extents
	frozen  buffer // the flush that is under way has it
	buffer  buffer
}

func (p *part) count() uint64 {
	return p.disk + uint64(p.frozen.count) + uint64(p.buffer.count)
}

// inMemory returns the buffer that holds an entry, or would, and the entries before it.
func (p *part) inMemory(entry uint64) (b *buffer, first uint64) {
	if second := p.disk + uint64(p.frozen.count); entry >= second {
		return &p.buffer, second
	}
	return &p.frozen, p.disk
}

// An extent is some blocks of one part, next to each other in the data file.
type extent struct {
	at         uint32 // in grains
	size       uint32 // in bytes
	first      uint64 // entries of the part before it
	count      uint32
	generation uint32 // of the checkpoint that is the first to know it
}

func (e extent) span() span { return span{e.at, grains(int(e.size))} }

func (e extent) offset() int64 { return int64(e.at) * grain }

// A message is what an Update or a Delete left for a record.
type message struct {
	kind    byte
	payload []byte
}

// mail is what waits for a record of a bucket that is due.
type mail struct {
	messages []message
	taken    int // so many were merged when the record was handed out
}

// post adds a message to the table.
func (b *bucket) post(seq uint64, m message) {
	if b.table == nil {
		b.table = map[uint64]*mail{}
	}
	if b.table[seq] == nil {
		b.table[seq] = &mail{}
	}
	b.table[seq].messages = append(b.table[seq].messages, m)
}

// passOf returns the pass in which a record is handed out.
func (b *bucket) passOf(seq uint64) uint64 {
	if seq >= b.fresh || b.late[seq] {
		return b.passes - 1
	}
	return seq % b.passes
}

// expect lets a record that comes while the bucket is read be handed out in the last pass.
func (b *bucket) expect(seq uint64) {
	if b.late == nil {
		b.late = map[uint64]bool{}
	}
	b.late[seq] = true
}

// These constants are on disk. Do not change them; add a version.
const (
	messageUpdate = 1
	messageDelete = 2
)

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
func (b *bucket) left() uint64 { return b.records.count() - uint64(b.gone) }

// setAllDone takes over a bit field.
func (b *bucket) setAllDone(done []uint64) {
	b.done, b.gone = done, 0
	for _, word := range done {
		b.gone += bits.OnesCount64(word)
	}
}

// An entry is a record as a bucket holds it.
type entry struct {
	seq      uint64 // 0 in a basic store
	slot     int64
	id, data []byte
}

// appendEntry appends the form that entries have in bucket b.
func (b *bucket) appendEntry(dst []byte, e entry, indexed bool) []byte {
	if indexed {
		dst = binary.AppendUvarint(dst, e.seq)
	}
	// In a bucket of one slot, where nearly all records are when they are read, the slot costs
	// nothing.
	if b.width != 1 {
		dst = binary.AppendUvarint(dst, uint64(e.slot-b.start))
	}
	dst = binary.AppendUvarint(dst, uint64(len(e.id)))
	dst = append(dst, e.id...)
	dst = binary.AppendUvarint(dst, uint64(len(e.data)))
	return append(dst, e.data...)
}

// entrySize returns how many bytes appendEntry appends.
func (b *bucket) entrySize(e entry, indexed bool) int {
	size := disk.UvarintSize(uint64(len(e.id))) + len(e.id) + disk.UvarintSize(uint64(len(e.data))) + len(e.data)
	if indexed {
		size += disk.UvarintSize(e.seq)
	}
	if b.width != 1 {
		size += disk.UvarintSize(uint64(e.slot - b.start))
	}
	return size
}

// takeEntry undoes appendEntry; its slices are those of d.
func (b *bucket) takeEntry(d *disk.Decoder, indexed bool) (e entry) {
	if indexed {
		e.seq = d.Uvarint()
	}
	e.slot = b.start
	if b.width != 1 {
		e.slot += int64(d.Uvarint())
	}
	e.id = d.Bytes(MaxID)
	e.data = d.Bytes(MaxData)
	return e
}

func appendMessage(dst []byte, seq uint64, m message) []byte {
	dst = binary.AppendUvarint(dst, seq)
	dst = append(dst, m.kind)
	dst = binary.AppendUvarint(dst, uint64(len(m.payload)))
	return append(dst, m.payload...)
}

func takeMessage(d *disk.Decoder) (seq uint64, m message) {
	seq = d.Uvarint()
	m.kind = d.Byte()
	m.payload = d.Bytes(MaxData)
	return seq, m
}
