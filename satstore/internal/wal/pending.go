package wal

import (
	"encoding/binary"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

// The log is written in groups, because a system call per change would cost more than the change.
// Changes that are in no group yet are in a memory-mapped file, which survives the process at the
// price of a copy. One half of the file takes changes while those of the other are being written.

// These constants are on disk. Do not change them; add a version.
const (
	PendingName   = "pending"
	pendingMagic  = "SATPND1\n"
	pendingHeader = 8 + 8 + 8 + 8 // magic, log, its length, length and checksum of the changes
	pendingWord   = pendingHeader - 8
)

// PendingSize is the size of the file: both halves.
const PendingSize = 4 << 20

// A half holds changes in memory and, where files can be mapped, in one half of the file.
type half struct {
	file      *vfs.Map // nil on systems that cannot map files
	at        int      // where it begins
	room      int      // for changes
	changes   []byte   // that are not in a group yet
	published int      // of these, the bytes that survive the process
	sum       uint32   // of the published bytes and the header
}

// halves divides a file, or memory if there is none.
func halves(m *vfs.Map, size int) (h [2]half) {
	if m != nil {
		size = len(m.Bytes)
	}
	size = size / 2 &^ 7 // the offset of the word must be a multiple of 8
	for i := range h {
		h[i] = half{file: m, at: i * size, room: size - pendingHeader}
		h[i].changes = make([]byte, 0, h[i].room)
	}
	return h
}

// begin empties a half, for changes that follow the given number of bytes of a log.
func (h *half) begin(number uint64, end int64) error {
	var head [pendingWord]byte
	copy(head[:], pendingMagic)
	binary.LittleEndian.PutUint64(head[8:], number)
	binary.LittleEndian.PutUint64(head[16:], uint64(end))
	if h.changes = h.changes[:0]; cap(h.changes) > h.room {
		h.changes = make([]byte, 0, h.room) // there may never be so many again
	}
	h.published, h.sum = 0, durable.Sum(head[8:])
	if h.file == nil {
		return nil
	}
	err := h.file.Store(h.at+pendingWord, 0) // so that old changes are not mistaken for new ones
	if err == nil {
		err = h.file.Write(h.at, head[:])
	}
	if err != nil {
		return fmt.Errorf("satstore: write %s: %w", PendingName, err)
	}
	return nil
}

// publish makes the changes survive the process. If it dies during the call, those published
// earlier survive. The changes must fit.
func (h *half) publish() error {
	if h.file == nil {
		return nil
	}
	fresh := h.changes[h.published:]
	sum := durable.SumOn(h.sum, fresh)
	err := h.file.Publish(h.at+pendingHeader+h.published, fresh,
		h.at+pendingWord, uint64(sum)<<32|uint64(len(h.changes)))
	if err != nil {
		return fmt.Errorf("satstore: write %s: %w", PendingName, err)
	}
	h.sum, h.published = sum, len(h.changes)
	return nil
}

// pendingAfter returns the changes in either half of a file that follow the given number of bytes
// of a log, or nil.
func pendingAfter(file []byte, number uint64, end int64) []byte {
	size := len(file) / 2 &^ 7
	for at := 0; at < 2*size; at += size {
		b := file[at : at+size]
		if size < pendingHeader || string(b[:8]) != pendingMagic ||
			binary.LittleEndian.Uint64(b[8:]) != number ||
			binary.LittleEndian.Uint64(b[16:]) != uint64(end) {
			continue
		}
		word := binary.LittleEndian.Uint64(b[pendingWord:])
		n, sum := uint32(word), durable.Sum(b[8:pendingWord])
		if n == 0 || uint64(n) > uint64(size-pendingHeader) {
			continue
		}
		changes := b[pendingHeader : pendingHeader+int(n)]
		if durable.SumOn(sum, changes) == uint32(word>>32) {
			return changes
		}
	}
	return nil
}
