// Package simhash detects whether a text has really changed.
//
// A page with a counter or today's date has different bytes at each visit, so to a crawler that
// compares bytes it seems to change all the time. [Of] fingerprints the text without such words,
// and [Print.Changed] estimates how much of it is new:
//
//	before := simhash.Of(oldText)
//	now := simhash.Of(newText)
//	if before.Changed(now) > 0.02 {
//		// store a new version
//	}
//
// # What is ignored
//
// Words with a digit (counters, dates, times, prices, ids); English names of months and weekdays,
// and the words of "5 minutes ago"; the case of letters; everything that is neither letter, with
// its marks, nor digit. These are heuristics. If only a price changes, the page counts as unchanged: compare
// bytes, too, if that matters.
//
// # What it does not do
//
// It expects text: tags would count as words, so remove them first. The hashes have no key: the
// author of a text can make its Print equal to that of another text.
package simhash

import (
	"math"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// A Print is the fingerprint of a text, in 16 bytes. The zero Print is the fingerprint of a text
// without words. Prints of two releases of this package may differ: one that was stored may count as
// another text once.
type Print struct {
	Words uint64 // hash of all words that are not ignored, in order
	Near  uint64 // their simhash: the fewer bits differ, the more shingles are the same
}

// Changed estimates which share of the words is new in one of two texts, from 0 to 1. It is 0 if
// only ignored words differ. It counts words that are new here and there; a passage of new words
// counts for a third of its length.
//
// The estimate is coarse: it has 32 steps, of which the first are 0.0001, 0.0004, 0.0016, 0.0036,
// 0.0064, 0.01, 0.014 and 0.02, and differs by a third from one text to another. It means the same
// at any length, so one word is a small change of a page and a large one of a paragraph. Of texts that
// have nothing in common it is mostly between 0.3 and 1, and 1 if one of them has no words. So often,
// in percent, Changed is at most:
//
//	words  new words  0.004  0.02  0.05
//	   30          1      2    37    83
//	  300          1     70   100   100
//	  300         15      0     9    60
//	1,000          1     94   100   100
//	1,000         10     24    87   100
//	1,000         50      0     8    57
//
// Among eight billion pages, 0.004 finds copies best: 3 bits of 64 (Manku, Jain and Das Sarma,
// "Detecting near-duplicates for web crawling", 2007). For two versions of one document this is too
// strict: with 0.02 to 0.05, a new banner is no change, and a new paragraph is one.
func (p Print) Changed(q Print) float64 {
	switch {
	case p.Words == q.Words:
		return 0
	case p == Print{} || q == Print{}:
		return 1
	}
	// The share of bits that differ is the angle between the vectors of shingles (Charikar, section
	// 3). A shingle stays the same if all of its words do.
	angle := math.Pi * max(0.5, float64(p.distance(q))) / 64 // half a bit is less than any, and not nothing
	return 1 - math.Cbrt(max(0, math.Cos(angle)))
}

// distance returns how many bits of the simhashes differ, from 0 to 64. For unrelated texts it is
// about 32.
func (p Print) distance(q Print) int { return bits.OnesCount64(p.Near ^ q.Near) }

// Of returns the fingerprint of a text in UTF-8: the simhash of Charikar (2002) over shingles,
// which are three words in a row. In scripts without spaces, each letter is a word. It allocates
// nothing, and takes time linear in the length of the text.
func Of(text []byte) Print {
	var s sum
	for len(text) > 0 {
		var w word
		w, text = nextWord(text)
		if w.hash != 0 && !w.digits && !ignored[w.hash] {
			s.add(w.hash)
		}
	}
	return s.print()
}

// sum is the state of computing a Print.
type sum struct {
	words    uint64
	last     [2]uint64 // hashes of the words before
	seen     int       // words
	shingles int
	counts   [64]int   // shingles with each bit
	lanes    [8]uint64 // the same for the latest ones, eight bits per count
	pending  int       // shingles in lanes
}

// shingle is the number of words in a shingle.
const shingle = 3

func (s *sum) add(word uint64) {
	s.words = mix(s.words ^ word)
	s.seen++
	if s.seen >= shingle {
		s.count(mix(mix(s.last[0])+s.last[1]) ^ word)
	}
	s.last[0], s.last[1] = s.last[1], word
}

// count adds a shingle. It adds eight counts in one operation, as long as none exceeds eight bits.
func (s *sum) count(hash uint64) {
	hash = mix(hash)
	s.shingles++
	for i := range s.lanes {
		s.lanes[i] += spread[byte(hash>>(8*i))]
	}
	if s.pending++; s.pending == 255 {
		s.flush()
	}
}

func (s *sum) flush() {
	for i := range s.counts {
		s.counts[i] += int(byte(s.lanes[i/8] >> (i % 8 * 8)))
	}
	s.lanes, s.pending = [8]uint64{}, 0
}

// spread has a byte for each bit of its index.
var spread = func() (table [256]uint64) {
	for b := range table {
		for i := range 8 {
			table[b] |= uint64(b>>i&1) << (8 * i)
		}
	}
	return table
}()

func (s *sum) print() Print {
	if s.seen > 0 && s.seen < shingle {
		s.count(s.words) // too short for a shingle
	}
	s.flush()
	var near uint64
	for i, n := range s.counts {
		if 2*n > s.shingles {
			near |= 1 << i
		}
	}
	return Print{s.words, near}
}

// mix spreads each bit over all others. It is the last step of MurmurHash3 (Appleby, 2011).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// A word is a run of letters with their marks, and digits.
type word struct {
	hash   uint64 // 0 if there is no word
	digits bool   // contains a digit
}

// The constants of FNV-1a (Fowler, Noll and Vo).
const (
	fnvStart = 0xcbf29ce484222325
	fnvPrime = 0x100000001b3
)

// nextWord cuts off the first word and everything before it.
func nextWord(text []byte) (w word, rest []byte) {
	hash := uint64(fnvStart)
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		switch {
		case 'a' <= r|0x20 && r|0x20 <= 'z' && r < utf8.RuneSelf:
			r |= 0x20
		case unicode.IsDigit(r):
			w.digits = true
		case r >= utf8.RuneSelf && hash != fnvStart && unicode.Is(unicode.M, r):
			// A vowel sign or an accent belongs to the letter before it.
		case r < utf8.RuneSelf || !unicode.IsLetter(r):
			if hash != fnvStart {
				w.hash = hash
				return w, text[i:]
			}
			i += size
			continue
		case isAlone(r):
			if hash == fnvStart {
				return letter(text[i:])
			}
			w.hash = hash
			return w, text[i:]
		default:
			r = lower(r)
		}
		hash = (hash ^ uint64(r)) * fnvPrime
		i += size
	}
	if hash != fnvStart {
		w.hash = hash
	}
	return w, nil
}

// lower returns one form of all letters with the same capital, in lower case. Greek words end in another
// sigma, and the language, which says whether I has a dot in lower case, is unknown.
func lower(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// letter cuts off the first letter and its marks.
func letter(text []byte) (w word, rest []byte) {
	w.hash = fnvStart
	for i := 0; len(text) > 0; i++ {
		r, size := utf8.DecodeRune(text)
		if i > 0 && !unicode.Is(unicode.M, r) {
			break
		}
		w.hash = (w.hash ^ uint64(r)) * fnvPrime
		text = text[size:]
	}
	return w, text
}

// isAlone reports whether a letter belongs to a script without spaces between words.
func isAlone(r rune) bool {
	return r >= 0x0e00 && unicode.In(r,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
		unicode.Myanmar)
}

// ignored has the hashes of words that are typical of dates and times.
var ignored = func() map[uint64]bool {
	set := make(map[uint64]bool)
	for _, text := range []string{
		"january february march april may june july august september october november december",
		"jan feb mar apr jun jul aug sep sept oct nov dec",
		"monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun",
		"ago second seconds minute minutes hour hours day days week weeks month months year years",
		"today yesterday am pm gmt utc",
	} {
		for rest := []byte(text); len(rest) > 0; {
			var w word
			w, rest = nextWord(rest)
			set[w.hash] = true
		}
	}
	return set
}()
