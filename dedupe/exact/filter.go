package exact

import "math/bits"

// A filter is a Bloom filter that tells which fingerprints are certainly new. All bits of a
// fingerprint are in one line (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom
// filters", 2007), and the highest bits choose the line. So a lookup costs one memory access, and a
// merge, which sorts its fingerprints, accesses the memory sequentially. False positives are twice
// as frequent as with bits spread over the whole filter, and each costs one more lookup.
type filter []line

// A line has the size of a cache line.
type line [8]uint64

const (
	lineBytes = 8 * 8
	lineBits  = 9 // of a number select a bit in a line
	functions = 5 // as good as 4 or 6 at eight bits for each URL
)

func newFilter(memory int64) filter { return make(filter, max(memory/lineBytes, 1)) }

// addNew adds a fingerprint and reports whether it is certainly new.
func (f filter) addNew(print fingerprint) (isNew bool) {
	at, _ := bits.Mul64(uint64(print), uint64(len(f)))
	line := &f[at]
	// The low bits were not used yet. The product spreads them over the word, and each nine bits of
	// it select a bit of the line.
	spots := uint64(print) * 0x9e3779b97f4a7c15
	for range functions {
		spots = bits.RotateLeft64(spots, lineBits)
		word, bit := &line[spots>>6%8], uint64(1)<<(spots%64)
		isNew = isNew || *word&bit == 0
		*word |= bit
	}
	return isNew
}

// mark adds all sightings, which should be sorted by fingerprint, and marks those that are
// certainly new. It returns their number.
func (f filter) mark(all []sighting) (news int64) {
	for i := range all {
		if f.addNew(all[i].print()) {
			all[i].setNew()
			news++
		}
	}
	return news
}
