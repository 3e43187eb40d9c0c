package exact

import (
	"cmp"
	"slices"
)

// A sighting is a URL that waits for the next merge: its fingerprint, and the place of
// its item in the pile, shifted left by one bit. The lowest bit is set if the filter found the URL
// to be certainly new. Places grow, so they also tell which sighting came first.
//
// It is an array, not a struct, so that the sort can index its words. Sightings take most of a
// Set's memory, and the more of them fit, the fewer passes over the disk there are. So everything
// else that belongs to a sighting is in the pile.
type sighting [2]uint64

// The words by which sightings are sorted.
const (
	byPrint = 0
	byPlace = 1
)

const sightingBytes = 2 * 8

// newSighting returns a sighting that is not marked as new.
func newSighting(f fingerprint, place int64) sighting {
	return sighting{uint64(f), uint64(place) << 1}
}

func (s sighting) print() fingerprint { return fingerprint(s[byPrint]) }

func (s sighting) place() int64 { return int64(s[byPlace] >> 1) }

func (s sighting) isNew() bool { return s[byPlace]&1 != 0 }

func (s *sighting) setNew() { s[byPlace] |= 1 }

func (s *sighting) clearNew() { s[byPlace] &^= 1 }

// sameURL reports whether two sightings are of one URL.
func (s sighting) sameURL(other sighting) bool { return s.print() == other.print() }

const (
	digitBits   = 8 // few enough that the ends of all buckets stay in the L1 cache
	digits      = 1 << digitBits
	smallBucket = 24 // sightings for which an insertion sort is fastest
)

// sortWords sorts by one word, and if that is equal, by the other one. It is a radix
// sort: as fingerprints and places are distributed evenly, their highest bits divide them into
// small buckets. It works in place, which leaves the memory of a copy for more sightings (McIlroy,
// Bostic and McIlroy, "Engineering radix sort", 1993). All words must be equal in the bits above
// the digit at shift.
func sortWords(all []sighting, word, shift int) {
	if len(all) <= smallBucket || shift < 0 {
		sortBucket(all, word)
		return
	}
	p := partition{word: word, shift: shift}
	for i := range all {
		p.ends[all[i].digit(word, shift)]++
	}
	p.begin()
	p.move(all, len(all))
	start := 0
	for _, end := range p.ends {
		sortWords(all[start:end], word, nextShift(shift))
		start = end
	}
}

// A partition divides sightings into buckets by one digit of a word, some at a time.
type partition struct {
	word, shift int
	ends        [digits]int // of the buckets; before begin, their sizes
	next        [digits]int // places in them that are not filled yet
	digit       int         // all buckets below it are filled
}

// begin prepares for move. The sizes of the buckets must be in p.ends.
func (p *partition) begin() {
	start := 0
	for digit, size := range p.ends {
		p.next[digit] = start
		start += size
		p.ends[digit] = start
	}
}

// move moves about n sightings to their buckets, and reports whether all are there. Each sighting in
// the wrong bucket replaces the next one of its own bucket, which is then moved in the same way, and
// so on, until one belongs to the bucket with the gap.
func (p *partition) move(all []sighting, n int) (done bool) {
	word, shift := p.word, p.shift
	for ; p.digit < digits; p.digit++ {
		for next := &p.next[p.digit]; *next < p.ends[p.digit]; *next++ {
			if n <= 0 {
				return false
			}
			s := all[*next]
			for to := s.digit(word, shift); int(to) != p.digit; to = s.digit(word, shift) {
				s, all[p.next[to]] = all[p.next[to]], s
				p.next[to]++
				n--
			}
			all[*next] = s
			n--
		}
	}
	return true
}

// bucket returns the range of a bucket.
func (p *partition) bucket(digit int) (start, end int) {
	if digit > 0 {
		start = p.ends[digit-1]
	}
	return start, p.ends[digit]
}

// digit returns the digit of a word at shift.
func (s *sighting) digit(word, shift int) byte { return byte(s[word] >> shift) }

// nextShift returns the shift of the next digit, or -1 if there is none. The last digit may overlap
// with the one before it.
func nextShift(shift int) int {
	if shift == 0 {
		return -1
	}
	return max(shift-digitBits, 0)
}

// sortBucket sorts a few sightings, or many with the same word: those of a frequent URL that never
// stays in the list of the latest URLs for long.
func sortBucket(all []sighting, word int) {
	if len(all) > smallBucket {
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

// compare orders by the word, and then by the other one.
func (s sighting) compare(other sighting, word int) int {
	return cmp.Or(cmp.Compare(s[word], other[word]), cmp.Compare(s[1-word], other[1-word]))
}
