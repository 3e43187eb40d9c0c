package satstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/internal/vfs"
	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// The log is written in groups, as a system call for each change would cost more than the change.
// What no group has yet is in a file that is mapped to memory: it outlives the process like the
// log, at the price of a copy. The file has two halves, so that one takes changes while those of
// the other are being written.

// These constants are on disk. Do not change them; add a version.
const (
	pendingName   = "pending"
	pendingMagic  = "SATPND1\n"
	pendingHeader = 8 + 8 + 8 + 8 // magic, log, its length, length and checksum of the changes
	pendingWord   = pendingHeader - 8
)

// pendingSize is that of both halves: what comes within milliseconds.
const pendingSize = 4 << 20

// A half is one half of the file. The zero half keeps changes in memory only, which is what is left
// on systems that cannot map files.
type half struct {
	file      *vfs.Map
	at        int // where it begins
	size      int
	published int    // bytes of changes that a crash would leave
	sum       uint32 // of them, and of where they belong
	memory    []byte // for changes: empty, with all the room that there is
}

// halves divides a file.
func halves(m *vfs.Map) (h [2]half) {
	if m == nil {
		return h
	}
	size := len(m.Bytes) / 2 &^ 7 // the word has to be at a multiple of 8
	for i := range h {
		h[i] = half{file: m, at: i * size, size: size}
	}
	return h
}

// begin empties a half, for changes that belong behind so many bytes of a log, and returns the
// memory for them.
func (h *half) begin(number uint64, end int64) []byte {
	if h.file == nil {
		if h.memory == nil {
			h.memory = make([]byte, 0, pendingSize/2)
		}
		return h.memory
	}
	b := h.file.Bytes[h.at : h.at+h.size : h.at+h.size]
	h.file.Store(h.at+pendingWord, 0) // what was there must not be taken for new
	copy(b, pendingMagic)
	binary.LittleEndian.PutUint64(b[8:], number)
	binary.LittleEndian.PutUint64(b[16:], uint64(end))
	h.published, h.sum = 0, disk.Sum(b[8:pendingWord])
	h.memory = b[pendingHeader:pendingHeader]
	return h.memory
}

// publish lets changes outlive the process, all of them or, if it ends in the midst, those before.
func (h *half) publish(changes []byte) {
	if h.file == nil {
		return
	}
	h.sum = disk.SumOn(h.sum, changes[h.published:])
	h.published = len(changes)
	h.file.Store(h.at+pendingWord, uint64(h.sum)<<32|uint64(h.published))
}

// pendingAfter returns the changes in either half of a file that belong behind so many bytes of a
// log, or nil if there are none.
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
		n, sum := uint32(word), disk.Sum(b[8:pendingWord])
		if n == 0 || uint64(n) > uint64(size-pendingHeader) {
			continue
		}
		changes := b[pendingHeader : pendingHeader+int(n)]
		if disk.SumOn(sum, changes) == uint32(word>>32) {
			return changes
		}
	}
	return nil
}

// mapPending makes the file or opens the one that is there. Whatever is in it stays until a log
// begins.
func (s *Store) mapPending() error {
	if s.pending != nil {
		return nil
	}
	m, err := s.fs.Map(pendingName, s.o.pending)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("satstore: map %s: %w", pendingName, err)
	}
	s.pending = m
	return nil
}
