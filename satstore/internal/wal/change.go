// Package wal is the write-ahead log: the changes since the last checkpoint.
//
// A change is encoded into memory and copied to a memory-mapped file, which survives the process.
// Every few milliseconds a group of changes is written to the log file and synced. A checkpoint
// begins a new log file. The old one ends with a mark, and is removed once the checkpoint is on
// disk. So a crash leaves a prefix of all changes.
//
// Read change.go first, then log.go for the life of a change, and replay.go for what happens after
// a crash.
package wal

import (
	"encoding/binary"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// A Kind is the kind of a change. It is not 0.
type Kind byte

// These constants are on disk. Do not change them; add a version.
const (
	Add     Kind = 1 // a new record: Slot, ID, Data
	Move    Kind = 2 // a record moves to another slot: Bucket, Record, Slot, Data
	Drop    Kind = 3 // a record that is due goes, and its id: Bucket, Record, Key
	Update  Kind = 4 // a message for a record: Seq, Data
	Delete  Kind = 5 // a record goes, and its id: Seq, Key
	Skip    Kind = 6 // entries of the bucket that is being split are damaged: Count
	Advance Kind = 7 // a later slot begins: Slot, Count of the buckets over which it is spread
	Split   Kind = 8 // entries of the bucket that is being split move: Count
	rotate  Kind = 9 // the log ends, and the next one continues it

	Spread Kind = 10 // a bucket that is due is spread over one or more: Bucket, Count of those
	Again  Kind = 11 // an Update that was logged before, and follows the Move of its record: Seq, Data
)

// MaxID and MaxData bound the ID and the Data of a change, in bytes.
const (
	MaxID   = 64 << 10
	MaxData = 1 << 20
)

// KeySize is the size of a Change's Key.
const KeySize = 16

// A Change is an entry of the log. Repeating changes in order from a checkpoint produces the same
// state, including the position of each record in its bucket. So that position can identify a
// record.
type Change struct {
	Kind   Kind
	Bucket uint64
	Record uint64
	Slot   int64
	Seq    uint64
	Count  uint64
	Key    [KeySize]byte
	ID     string
	Data   []byte // a decoded Move has a diff here: see ApplyDiff
	Old    []byte // the data that a Move replaces; not in the log, and nil after Replay has read it

	// Of a decoded change: the log that it is in, and the offset after its group.
	Log uint64
	End int64
}

// MaxSize returns the maximum size of a change with the given bytes of ID and Data.
func MaxSize(bytes int) int { return bytes + 64 }

// A coder encodes changes relative to earlier ones. Each log has a new coder.
type coder struct {
	base   int64 // slots are counted from here
	bucket uint64
	record uint64
}

// appendPlace encodes the position of a record relative to the previous one, mostly in two bytes.
func (c *coder) appendPlace(dst []byte, h *Change) []byte {
	dst = binary.AppendVarint(dst, int64(h.Bucket-c.bucket))
	dst = binary.AppendVarint(dst, int64(h.Record-c.record))
	c.bucket, c.record = h.Bucket, h.Record+1
	return dst
}

func (c *coder) takePlace(d *durable.Decoder, h *Change) {
	h.Bucket = c.bucket + uint64(d.Varint())
	h.Record = c.record + uint64(d.Varint())
	c.bucket, c.record = h.Bucket, h.Record+1
}

// append appends a change.
func (c *coder) append(dst []byte, h *Change) []byte {
	dst = append(dst, byte(h.Kind))
	switch h.Kind {
	case Add:
		dst = binary.AppendVarint(dst, h.Slot-c.base)
		dst = durable.AppendBytes(durable.AppendBytes(dst, h.ID), h.Data)
	case Move:
		dst = c.appendPlace(dst, h)
		dst = binary.AppendVarint(dst, h.Slot-c.base)
		dst = appendSized(dst, h.Old, h.Data)
	case Drop:
		dst = append(c.appendPlace(dst, h), h.Key[:]...)
	case Update, Again:
		dst = binary.AppendUvarint(dst, h.Seq)
		dst = durable.AppendBytes(dst, h.Data)
	case Delete:
		dst = append(binary.AppendUvarint(dst, h.Seq), h.Key[:]...)
	case Advance:
		dst = binary.AppendVarint(dst, h.Slot-c.base)
		dst = binary.AppendUvarint(dst, h.Count)
		c.base = h.Slot
	case Split, Skip:
		dst = binary.AppendUvarint(dst, h.Count)
	case Spread:
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, h.Bucket), h.Count)
	}
	return dst
}

// take undoes append, except for the diff of a Move.
func (c *coder) take(d *durable.Decoder) (h Change) {
	switch h.Kind = Kind(d.Byte()); h.Kind {
	case Add:
		h.Slot = c.base + d.Varint()
		h.ID = string(d.Bytes(MaxID))
		h.Data = d.Bytes(MaxData)
	case Move:
		c.takePlace(d, &h)
		h.Slot = c.base + d.Varint()
		h.Data = d.Bytes(2 * MaxData)
	case Drop:
		c.takePlace(d, &h)
		copy(h.Key[:], d.Take(KeySize))
	case Update, Again:
		h.Seq = d.Uvarint()
		h.Data = d.Bytes(MaxData)
	case Delete:
		h.Seq = d.Uvarint()
		copy(h.Key[:], d.Take(KeySize))
	case Advance:
		h.Slot = c.base + d.Varint()
		h.Count = d.Uvarint()
		c.base = h.Slot
	case Split, Skip:
		h.Count = d.Uvarint()
	case Spread:
		h.Bucket, h.Count = d.Uvarint(), d.Uvarint()
	case rotate:
	default:
		d.Bad = true
	}
	return h
}
