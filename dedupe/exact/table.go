package exact

import "math/bits"

// A table holds the fingerprints that are not in the index yet, in memory and in ascending order.
//
// It is a hash table with linear probing. The hash of a fingerprint is its highest bits, and the
// entries of each cluster are sorted, so that the whole table is sorted (Amble and Knuth, "Ordered
// hash tables", 1974). A sweep can then merge the table into the index without sorting it first,
// and a search ends as soon as it meets a greater entry.
type table struct {
	slots []fingerprint // an empty slot is zero
	homes uint64        // slots at which the search for a fingerprint may start
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

func newTable(memory int64) *table {
	homes := max(memory/printSize-tableSlack, 32)
	return &table{slots: make([]fingerprint, homes+tableSlack), homes: uint64(homes)}
}

// limit returns the maximum number of entries.
func (t *table) limit() int { return int(t.homes) * tableLoad / 8 }

func (t *table) full() bool { return t.n >= t.limit() }

// seek returns the slot of a fingerprint, or the slot where it has to be inserted.
func (t *table) seek(f fingerprint) (slot int, found bool) {
	home, _ := bits.Mul64(uint64(f), t.homes)
	for slot = int(home); t.slots[slot] < f && t.slots[slot] != 0; slot++ {
	}
	return slot, t.slots[slot] == f
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
	for t.slots[end] != 0 {
		end++
	}
	if end+1 == len(t.slots) { // does not happen with hashes
		t.slots = append(t.slots, make([]fingerprint, tableSlack)...)
	}
	copy(t.slots[slot+1:], t.slots[slot:end])
	t.slots[slot] = f
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
		for ; slot < len(t.slots); slot++ {
			if f := t.slots[slot]; f != 0 {
				slot++
				return f, true
			}
		}
		return 0, false
	}
}
