package exact

import "math/bits"

// A table holds the fingerprints that are not in the index yet, in memory and in ascending order.
//
// It is a hash table with linear probing. The hash of a fingerprint is its highest bits, and the
// entries of each cluster are sorted, so that the whole table is sorted (Amble and Knuth, "Ordered
// hash tables", 1974). A sweep can then merge the table into the index without sorting it first,
// and a search ends as soon as it meets a greater entry.
type table struct {
	slots []uint64 // words of fingerprints; an empty slot is zero
	words int      // per fingerprint, 1 or 2
	homes uint64   // slots at which the search for a fingerprint may start
	n     int
}

const (
	// tableSlack is the number of slots after the last home, so that clusters need not wrap around.
	// The last slot is always empty, and ends every search.
	tableSlack = 256

	// A table is full at tableLoad/8 of its homes. Searches then look at nine slots on average,
	// which are two lines of the processor's cache.
	tableLoad = 6
)

func newTable(memory int64, words int) *table {
	homes := max(memory/int64(8*words)-tableSlack, 32)
	return &table{
		slots: make([]uint64, int(homes+tableSlack)*words), words: words, homes: uint64(homes),
	}
}

// limit returns the maximum number of entries.
func (t *table) limit() int { return int(t.homes) * tableLoad / 8 }

func (t *table) full() bool { return t.n >= t.limit() }

func (t *table) at(slot int) (f fingerprint) {
	copy(f[:t.words], t.slots[slot*t.words:])
	return f
}

// seek returns the slot of a fingerprint, or the slot where it has to be inserted.
func (t *table) seek(f fingerprint) (slot int, found bool) {
	home, _ := bits.Mul64(f[0], t.homes)
	if t.words == 1 {
		for slot = int(home); t.slots[slot] < f[0] && t.slots[slot] != 0; slot++ {
		}
		return slot, t.slots[slot] == f[0]
	}
	for slot = int(home); ; slot++ {
		if g := t.at(slot); g == (fingerprint{}) || !g.less(f) {
			return slot, g == f
		}
	}
}

// has reports whether the table has a fingerprint.
func (t *table) has(f fingerprint) bool {
	_, found := t.seek(f)
	return found
}

// add adds a fingerprint, unless the table has it. It requires fewer entries than the limit.
func (t *table) add(f fingerprint) {
	slot, found := t.seek(f)
	if found {
		return
	}
	end := slot
	for t.at(end) != (fingerprint{}) {
		end++
	}
	if (end+1)*t.words == len(t.slots) { // does not happen with hashes
		t.slots = append(t.slots, make([]uint64, tableSlack*t.words)...)
	}
	copy(t.slots[(slot+1)*t.words:], t.slots[slot*t.words:end*t.words])
	copy(t.slots[slot*t.words:], f[:t.words])
	t.n++
}

func (t *table) clear() {
	clear(t.slots)
	t.n = 0
}

// ascending returns a function that returns the entries in order, and then false.
func (t *table) ascending() func() (fingerprint, bool) {
	slot := 0
	return func() (fingerprint, bool) {
		for ; slot*t.words < len(t.slots); slot++ {
			if f := t.at(slot); f != (fingerprint{}) {
				slot++
				return f, true
			}
		}
		return fingerprint{}, false
	}
}
