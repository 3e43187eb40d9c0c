package table

import (
	"bytes"
	"encoding/binary"
	"sort"
)

// A block is a sorted list of entries. There are two layouts, which are on disk. Do not change
// them; add a version.
//
// If all keys have one size, and all values, the entries follow each other: the key, then the
// value.
//
// Otherwise an entry consists of the length of the prefix that its key shares with the key before,
// the lengths of the rest of the key and of the value, and these two. A restart is the offset of an
// entry with a full key. After the entries come the restarts (4 bytes each) and their number (4
// bytes). Lengths are unsigned varints, other numbers are little endian.
type blockWriter struct {
	fixed    bool
	body     []byte
	restarts []uint32
	count    int
	first    []byte // key
	last     []byte // key
}

const (
	restartEvery = 16 // entries
	restartSize  = 4
)

func (w *blockWriter) add(key, value []byte) {
	if w.count == 0 {
		w.first = append(w.first[:0], key...)
	}
	w.count++
	if w.fixed {
		w.body = append(append(w.body, key...), value...)
		return
	}
	shared := 0
	if (w.count-1)%restartEvery == 0 {
		w.restarts = append(w.restarts, uint32(len(w.body)))
	} else {
		shared = common(w.last, key)
	}
	w.body = binary.AppendUvarint(w.body, uint64(shared))
	w.body = binary.AppendUvarint(w.body, uint64(len(key)-shared))
	w.body = binary.AppendUvarint(w.body, uint64(len(value)))
	w.body = append(append(w.body, key[shared:]...), value...)
	w.last = append(w.last[:0], key...)
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

// finish returns the block, valid until the next add, and resets the writer.
func (w *blockWriter) finish() []byte {
	b := w.body
	if !w.fixed {
		for _, r := range w.restarts {
			b = binary.LittleEndian.AppendUint32(b, r)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(len(w.restarts)))
	}
	w.body, w.restarts, w.count = b[:0], w.restarts[:0], 0
	return b
}

// entries iterates over a block. It is not safe for concurrent use.
type entries struct {
	keySize  int // of fixed entries, else 0
	size     int // of a fixed entry
	data     []byte
	restarts []byte
	next     int // where the next entry begins
	key      []byte
	value    []byte
	buf      []byte // of the key, unless entries are fixed
	bad      bool   // the block is invalid
}

// open begins a block of the table. Its checksum is verified, but its entries may be invalid.
func (e *entries) open(o *Options, body []byte) {
	if o.Key == 0 {
		e.openVariable(body)
		return
	}
	size := o.Key + o.Value
	*e = entries{keySize: o.Key, size: size, data: body, bad: len(body)%size > 0}
}

// openVariable begins a block of variable entries, such as those of the index.
func (e *entries) openVariable(body []byte) {
	*e = entries{buf: e.buf[:0]}
	end := len(body) - restartSize
	if end < 0 {
		e.bad = true
		return
	}
	n := uint64(binary.LittleEndian.Uint32(body[end:]))
	if n == 0 || n*restartSize > uint64(end) {
		e.bad = true
		return
	}
	start := end - int(n)*restartSize
	e.data, e.restarts = body[:start], body[start:end]
}

// lengths parses the three numbers at the start of an entry. It is not ok if rest is too short.
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
	if e.next >= len(e.data) || e.bad {
		return false
	}
	if e.keySize > 0 {
		b := e.data[e.next : e.next+e.size : e.next+e.size]
		e.key, e.value = b[:e.keySize], b[e.keySize:]
		e.next += e.size
		return true
	}
	shared, key, value, rest, ok := lengths(e.data[e.next:])
	if !ok || shared > uint64(len(e.buf)) {
		e.bad = true
		return false
	}
	e.buf = append(e.buf[:shared], rest[:key]...)
	e.key = e.buf
	e.value = rest[key : key+value : key+value]
	e.next = len(e.data) - len(rest) + int(key+value)
	return true
}

// seek moves to the first entry that is not below key. If there is none, it returns false. If below
// is not nil, seek sets it to the entry before.
func (e *entries) seek(key []byte, below *Pair) bool {
	if e.bad {
		return false
	}
	if e.keySize > 0 {
		return e.seekFixed(key, below)
	}
	// Begin at the last restart below the key.
	above := sort.Search(len(e.restarts)/restartSize, func(i int) bool {
		full, ok := e.restartKey(i)
		e.bad = e.bad || !ok
		return bytes.Compare(full, key) >= 0
	})
	if e.bad {
		return false
	}
	e.next = int(binary.LittleEndian.Uint32(e.restarts[max(above-1, 0)*restartSize:]))
	e.buf = e.buf[:0]
	found := e.step()
	for found && bytes.Compare(e.key, key) < 0 {
		if below != nil {
			below.set(e.key, e.value)
		}
		found = e.step()
	}
	return found
}

func (e *entries) seekFixed(key []byte, below *Pair) bool {
	n := sort.Search(len(e.data)/e.size, func(i int) bool {
		return bytes.Compare(e.data[i*e.size:][:e.keySize], key) >= 0
	})
	if below != nil && n > 0 {
		b := e.data[(n-1)*e.size:][:e.size]
		below.set(b[:e.keySize], b[e.keySize:])
	}
	e.next = n * e.size
	return e.step()
}

// restartKey returns the key of the i-th restart, without a copy.
func (e *entries) restartKey(i int) (key []byte, ok bool) {
	at := uint64(binary.LittleEndian.Uint32(e.restarts[i*restartSize:]))
	if at >= uint64(len(e.data)) {
		return nil, false
	}
	shared, length, _, rest, ok := lengths(e.data[at:])
	if !ok || shared > 0 {
		return nil, false
	}
	return rest[:length], true
}
