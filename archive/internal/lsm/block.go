package lsm

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A block is a sorted list of keys with their values. It consists of the length of the rest (4
// bytes), its CRC-32C (4 bytes), the entries, the restarts (4 bytes each), and their number (4
// bytes). A restart is the offset of an entry with a full key. The highest bit of the length marks
// a key block, whose values are addresses of blocks. Numbers are little endian. An entry consists
// of the length of the prefix shared with the key before, the lengths of the rest of the key and of
// the value, and these two.
const (
	blockHeader   = 8
	blockSize     = 4 << 10 // of the entries of a full block
	restartEvery  = 16      // entries
	maxBlock      = 1 << 24
	perBlockTail  = 4
	perBlockStart = 4
	keysBit       = 1 << 31
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockWriter collects entries. The zero blockWriter is empty and ready to use, by one goroutine at
// a time.
type blockWriter struct {
	entries  []byte
	restarts []uint32
	count    int
	last     []byte // key
	first    []byte // key
	bits     uint32 // keysBit or 0
}

func (w *blockWriter) add(key, value []byte) {
	shared := 0
	if w.count%restartEvery == 0 {
		w.restarts = append(w.restarts, uint32(len(w.entries)))
	} else {
		shared = common(w.last, key)
	}
	if w.count == 0 {
		w.first = append(w.first[:0], key...)
	}
	w.entries = binary.AppendUvarint(w.entries, uint64(shared))
	w.entries = binary.AppendUvarint(w.entries, uint64(len(key)-shared))
	w.entries = binary.AppendUvarint(w.entries, uint64(len(value)))
	w.entries = append(w.entries, key[shared:]...)
	w.entries = append(w.entries, value...)
	w.last = append(w.last[:0], key...)
	w.count++
}

// common returns the length of the common prefix of two keys.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// finish appends the block to dst and resets the writer.
func (w *blockWriter) finish(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, blockHeader)...)
	dst = append(dst, w.entries...)
	for _, r := range w.restarts {
		dst = binary.LittleEndian.AppendUint32(dst, r)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(w.restarts)))
	body := dst[start+blockHeader:]
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(body))|w.bits)
	binary.LittleEndian.PutUint32(dst[start+4:], crc32.Checksum(body, castagnoli))
	w.entries, w.restarts, w.count = w.entries[:0], w.restarts[:0], 0
	return dst
}

// block is a parsed block. Its checksum is verified; its entries may be invalid.
type block struct {
	entries  []byte
	restarts []byte // 4 bytes each
}

// parseBlock returns a block, or the reason why it is damaged.
func parseBlock(data []byte) (b block, fault string) {
	if len(data) < blockHeader+perBlockTail {
		return b, "the block is truncated"
	}
	body := data[blockHeader:]
	switch {
	case uint64(binary.LittleEndian.Uint32(data)&^keysBit) != uint64(len(body)):
		return b, "wrong block length"
	case binary.LittleEndian.Uint32(data[4:]) != crc32.Checksum(body, castagnoli):
		return b, "block checksum mismatch"
	}
	n := uint64(binary.LittleEndian.Uint32(body[len(body)-perBlockTail:]))
	body = body[:len(body)-perBlockTail]
	if n == 0 || n*perBlockStart > uint64(len(body)) {
		return b, "wrong number of restarts"
	}
	at := len(body) - int(n)*perBlockStart
	return block{body[:at], body[at:]}, ""
}

// entries iterates over a block. It is not safe for concurrent use.
type entries struct {
	block
	next       int // where the next entry begins
	key, value []byte
	bad        bool // the block is invalid
}

// lengths parses the three numbers at the start of an entry: the length of the shared prefix, and
// the lengths of the rest of the key and of the value. It is not ok if rest is too short for them.
func lengths(entry []byte) (shared, key, value uint64, rest []byte, ok bool) {
	var n [3]uint64
	for i := range n {
		// Nearly all numbers have one byte.
		if len(entry) > 0 && entry[0] < 0x80 {
			n[i], entry = uint64(entry[0]), entry[1:]
			continue
		}
		v, size := binary.Uvarint(entry)
		if size <= 0 {
			return 0, 0, 0, nil, false
		}
		n[i], entry = v, entry[size:]
	}
	left := uint64(len(entry))
	return n[0], n[1], n[2], entry, n[1] <= left && n[2] <= left-n[1]
}

// step moves to the next entry. It returns false at the end, and if the block is invalid.
func (e *entries) step() bool {
	if e.next >= len(e.entries) {
		return false
	}
	shared, key, value, rest, ok := lengths(e.entries[e.next:])
	if !ok || shared > uint64(len(e.key)) {
		e.bad = true
		return false
	}
	e.key = append(e.key[:shared], rest[:key]...)
	e.value = rest[key : key+value : key+value]
	e.next = len(e.entries) - len(rest) + int(key+value)
	return true
}

// keyAt returns the key of the i-th restart, without a copy.
func (e *entries) keyAt(i int) (key []byte, ok bool) {
	at := uint64(binary.LittleEndian.Uint32(e.restarts[i*perBlockStart:]))
	if at >= uint64(len(e.entries)) {
		return nil, false
	}
	shared, length, _, rest, ok := lengths(e.entries[at:])
	if !ok || shared > 0 {
		return nil, false
	}
	return rest[:length], true
}

// restart moves to the entry of the i-th restart.
func (e *entries) restart(i int) bool {
	at := uint64(binary.LittleEndian.Uint32(e.restarts[i*perBlockStart:]))
	e.key = e.key[:0]
	if at >= uint64(len(e.entries)) {
		e.bad = true
		return false
	}
	e.next = int(at)
	return e.step()
}

// seek moves to the first entry that is not below key. If there is none, it returns false and stays
// at the last entry. If below is not nil, seek sets it to the entry before.
func (e *entries) seek(key []byte, below *Pair) bool {
	// The last restart below the key is in [low-1, high).
	low, high := 0, len(e.restarts)/perBlockStart
	for low < high {
		mid := (low + high) / 2
		full, ok := e.keyAt(mid)
		if !ok {
			e.bad = true
			return false
		}
		if bytes.Compare(full, key) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	found := e.restart(max(low-1, 0))
	for found && bytes.Compare(e.key, key) < 0 {
		if below != nil {
			below.set(e.key, e.value)
		}
		found = e.step()
	}
	return found
}
