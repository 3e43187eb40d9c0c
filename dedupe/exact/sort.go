package exact

import (
	"cmp"
	"math/bits"
	"slices"
)

// A sighting is a URL that waits for the next merge: the words of its fingerprint, and the place of
// its item in the pile, doubled to make room for a bit. The bit says that the filter has found it
// to be new for sure. Places grow, so they also tell which sighting came first.
//
// It is an array, and not a struct, so that the words it is sorted by can be chosen. Most of a
// Set's memory is sightings, and the more of them wait, the fewer walks through the disk there
// are. So whatever else belongs to a sighting is on disk.
type sighting [3]uint64

// The words of a sighting that sightings are sorted by.
const (
	byPrint = 0
	byPlace = 2
)

const sightingBytes = 3 * 8

// newSighting returns one that the filter was not asked about yet.
func newSighting(f fingerprint, place int64) sighting {
	return sighting{f[0], f[1], uint64(place) << 1}
}

func (s sighting) print() fingerprint { return fingerprint{s[0], s[1]} }

func (s sighting) place() int64 { return int64(s[byPlace] >> 1) }

func (s sighting) isNew() bool { return s[byPlace]&1 != 0 }

func (s *sighting) setNew() { s[byPlace] |= 1 }

func (s *sighting) clearNew() { s[byPlace] &^= 1 }

// sameURL reports whether two sightings are of one URL.
func (s sighting) sameURL(other sighting) bool { return s.print() == other.print() }

// sortPrints brings sightings into the order of the runs, and drops all but the first of each URL.
func sortPrints(all []sighting) []sighting {
	sortWords(all, byPrint, 64-digitBits)
	return slices.CompactFunc(all, sighting.sameURL)
}

// sortPlaces brings sightings into the order in which they came.
func sortPlaces(all []sighting) {
	last := uint64(0)
	for i := range all {
		last = max(last, all[i][byPlace])
	}
	sortWords(all, byPlace, max(bits.Len64(last)-digitBits, 0))
}

const (
	digitBits = 8 // few enough that the heaps' ends, which are written to, stay in the first cache
	digits    = 1 << digitBits
	smallHeap = 24 // sightings that are sorted quickest one by one
)

// sortWords sorts by one word, and by the others, cyclically, where it is equal. As fingerprints
// and places are spread evenly, their highest bits part them into small heaps: in place, which
// keeps half of the memory for more sightings (McIlroy, Bostic and McIlroy, "Engineering radix
// sort", 1993). Bits above the digit at shift must be equal in all.
func sortWords(all []sighting, word, shift int) {
	if len(all) <= smallHeap || shift < 0 {
		sortHeap(all, word)
		return
	}
	var next, ends [digits]int
	for i := range all {
		ends[byte(all[i][word]>>shift)]++
	}
	start := 0
	for digit, count := range ends {
		next[digit] = start
		start += count
		ends[digit] = start
	}
	// Each sighting that lies in a wrong heap takes the place of the next one of its own heap,
	// which then looks for its heap, and so on, until one belongs to the heap with the gap.
	for digit := range ends {
		for next[digit] < ends[digit] {
			s := all[next[digit]]
			for to := byte(s[word] >> shift); int(to) != digit; to = byte(s[word] >> shift) {
				s, all[next[to]] = all[next[to]], s
				next[to]++
			}
			all[next[digit]] = s
			next[digit]++
		}
	}
	start = 0
	for _, end := range ends {
		sortWords(all[start:end], word, nextShift(shift))
		start = end
	}
}

// nextShift returns where the next digit begins, which may share bits with the one before it if
// there are no whole digits left, or -1 if there is none.
func nextShift(shift int) int {
	if shift == 0 {
		return -1
	}
	return max(shift-digitBits, 0)
}

// sortHeap sorts a few sightings, or many with the same word: those of a URL that is met all the
// time and yet never stays in the list of the latest.
func sortHeap(all []sighting, word int) {
	if len(all) > smallHeap {
		slices.SortFunc(all, func(x, y sighting) int { return x.compare(y, word) })
		return
	}
	for i := 1; i < len(all); i++ {
		s, to := all[i], i
		for ; to > 0 && s.compare(all[to-1], word) < 0; to-- {
			all[to] = all[to-1]
		}
		all[to] = s
	}
}

// compare orders by the word, and then by those that follow it, from the last one to the first.
func (s sighting) compare(other sighting, word int) int {
	if c := cmp.Compare(s[word], other[word]); c != 0 {
		return c
	}
	second, third := (word+1)%len(s), (word+2)%len(s)
	return cmp.Or(cmp.Compare(s[second], other[second]), cmp.Compare(s[third], other[third]))
}
