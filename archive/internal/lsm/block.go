package lsm

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A block is a sorted list of keys with their values. It consists of the length of the rest
// (4 bytes), its CRC-32C (4 bytes), the entries, the offsets of the entries that are written in full
// (4 bytes each), and their number (4 bytes). The highest bit of the length is set if the values are
// addresses of blocks. Numbers are little endian. An entry is the length of what its key has in common with the key
// before, the lengths of the rest of the key and of the value, and these two.
const (
	blockHeader   = 8
	blockSize     = 4 << 10 // of the entries, from which on a block is full
	restartEvery  = 16      // entries that share their beginnings with the one before
	maxBlock      = 1 << 24
	perBlockTail  = 4
	perBlockStart = 4
	keysBit       = 1 << 31
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockWriter gathers entries. The zero blockWriter is empty and ready to use, by one goroutine at
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

// common returns the length of what two keys begin with.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// finish appends the block and empties the writer.
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

// block is a block that was read. It is not trusted beyond its checksum.
type block struct {
	entries  []byte
	restarts []byte // 4 bytes each
}

// parseBlock returns what is wrong, or "".
func parseBlock(data []byte) (b block, fault string) {
	if len(data) < blockHeader+perBlockTail {
		return b, "the block is cut off"
	}
	body := data[blockHeader:]
	switch {
	case uint64(binary.LittleEndian.Uint32(data)&^keysBit) != uint64(len(body)):
		return b, "the block has another length"
	case binary.LittleEndian.Uint32(data[4:]) != crc32.Checksum(body, castagnoli):
		return b, "the block does not have its checksum"
	}
	n := uint64(binary.LittleEndian.Uint32(body[len(body)-perBlockTail:]))
	body = body[:len(body)-perBlockTail]
	if n == 0 || n*perBlockStart > uint64(len(body)) {
		return b, "the block has no list of entries"
	}
	at := len(body) - int(n)*perBlockStart
	return block{body[:at], body[at:]}, ""
}

// entries walks through a block. It is not safe for concurrent use.
type entries struct {
	block
	next       int // where the next entry begins
	key, value []byte
	bad        bool // the block is not what a writer makes
}

// lengths cuts off the three numbers that an entry begins with: what its key has in common with the
// key before, and the lengths of what follows. It is not ok if the rest is too short for them.
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

// step goes to the next entry. It is false at the end, and where the block is bad.
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

// keyAt returns the key of the i-th entry that is written in full, where it lies.
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

// restart goes to the i-th entry that is written in full, and reads it.
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

// seek goes to the first entry that is not below a key. It is false if there is none. Then key and
// value are those of the last entry. It sets below to the entry before the one found, if wanted.
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
