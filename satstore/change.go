package satstore

import (
	"encoding/binary"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
	"github.com/spinneret-go/spinneret/satstore/internal/idset"
)

// These constants are on disk. Do not change them; add a version.
const (
	changeAdd     = 1 // a new record: slot, id, data
	changeDiff    = 2 // a record moves: bucket, record, slot, diff
	changeWhole   = 3 // a record moves: bucket, record, slot, data
	changeDrop    = 4 // a record goes: bucket, record
	changeMessage = 5 // a message: sequence number, kind, payload
	changeForget  = 6 // an id goes: fingerprint, sequence number
	changeAdvance = 7 // the next slot begins
)

// A change is what the log says. Replaying changes in order on the state of a checkpoint gives the
// same state as making them did, down to the place of each record in its bucket; so the log can
// name a record by its place.
type change struct {
	kind    byte
	bucket  uint64
	record  uint64
	slot    int64
	seq     uint64
	id      []byte
	data    []byte // for changeDiff, the diff
	message message
	key     idset.Key
}

// appendPlace names a record by its distance from the one before, mostly in two bytes.
func (c *coder) appendPlace(dst []byte, bucket, record uint64) []byte {
	dst = binary.AppendVarint(dst, int64(bucket-c.bucket))
	dst = binary.AppendVarint(dst, int64(record-c.record))
	c.bucket, c.record = bucket, record+1
	return dst
}

func (c *coder) takePlace(d *disk.Decoder) (bucket, record uint64) {
	bucket = c.bucket + uint64(d.Varint())
	record = c.record + uint64(d.Varint())
	c.bucket, c.record = bucket, record+1
	return bucket, record
}

// append appends a change. The data of a changeDiff are those that the diff leads to from old.
func (c *coder) append(dst []byte, h *change, now int64, old []byte) []byte {
	dst = append(dst, h.kind)
	switch h.kind {
	case changeAdd:
		dst = binary.AppendVarint(dst, h.slot-now)
		dst = disk.AppendBytes(disk.AppendBytes(dst, h.id), h.data)
	case changeDiff:
		dst = c.appendPlace(dst, h.bucket, h.record)
		dst = binary.AppendVarint(dst, h.slot-now)
		dst = appendDiff(dst, old, h.data)
	case changeWhole:
		dst = c.appendPlace(dst, h.bucket, h.record)
		dst = binary.AppendVarint(dst, h.slot-now)
		dst = disk.AppendBytes(dst, h.data)
	case changeDrop:
		dst = c.appendPlace(dst, h.bucket, h.record)
	case changeMessage:
		dst = appendMessage(dst, h.seq, h.message)
	case changeForget:
		dst = append(dst, h.key[:]...)
		dst = binary.AppendUvarint(dst, h.seq)
	}
	return dst
}

// take undoes append, but for a changeDiff, whose data are all that follows: only who has the old
// data can tell where the diff ends.
func (c *coder) take(d *disk.Decoder, now int64) (h change) {
	h.kind = d.Byte()
	switch h.kind {
	case changeAdd:
		h.slot = now + d.Varint()
		h.id = d.Bytes(MaxID)
		h.data = d.Bytes(MaxData)
	case changeDiff:
		h.bucket, h.record = c.takePlace(d)
		h.slot = now + d.Varint()
		h.data = d.B
	case changeWhole:
		h.bucket, h.record = c.takePlace(d)
		h.slot = now + d.Varint()
		h.data = d.Bytes(MaxData)
	case changeDrop:
		h.bucket, h.record = c.takePlace(d)
	case changeMessage:
		h.seq, h.message = takeMessage(d)
	case changeForget:
		copy(h.key[:], d.Take(idset.KeySize))
		h.seq = d.Uvarint()
	case changeAdvance:
	default:
		d.Bad = true
	}
	return h
}
