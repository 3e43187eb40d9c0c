package exact

import "math/bits"

// A filter is a Bloom filter that knows which fingerprints are new for sure. All bits of a
// fingerprint lie in one line (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom
// filters", 2007), and lines are chosen by the highest bits. So a merge, which has sorted its
// fingerprints, walks through the memory from one end to the other. Against spreading the bits it
// costs twice the errors, each of which is one more look-up among many.
type filter struct {
	lines []line
}

// A line has the size of a line of the processor's cache.
type line [8]uint64

const (
	lineBytes = 8 * 8
	lineBits  = 9 // of a number, choose a bit in a line
	functions = 5 // as good as any from 4 to 6 at eight bits for each URL
)

func newFilter(memory int64) filter {
	return filter{make([]line, max(memory/lineBytes, 1))}
}

// addNew adds a fingerprint and reports whether it is new for sure.
func (f filter) addNew(print fingerprint) (isNew bool) {
	at, _ := bits.Mul64(print[0], uint64(len(f.lines)))
	line := &f.lines[at]
	// The low bits have had no say yet. The product brings them all over the word, whose nine bits
	// after nine bits then are spots in the line.
	spots := print[0] * 0x9e3779b97f4a7c15
	for range functions {
		spots = bits.RotateLeft64(spots, lineBits)
		word, bit := &line[spots>>6%8], uint64(1)<<(spots%64)
		isNew = isNew || *word&bit == 0
		*word |= bit
	}
	return isNew
}

// mark adds all sightings, which must be in the order of their fingerprints for it to be fast, and
// marks those that are new for sure. It returns how many.
func (f filter) mark(all []sighting) (news int64) {
	for i := range all {
		if f.addNew(all[i].print()) {
			all[i].setNew()
			news++
		}
	}
	return news
}
