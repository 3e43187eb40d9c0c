package trap

import (
	"cmp"
	"hash/maphash"
	"math"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// Trap is the reason of this package.
const Trap urlfilter.Reason = "pattern leads to the same pages again and again"

// Defaults for zero fields of [Limits].
const (
	DefaultRepeats = 100
	DefaultEntries = 1 << 20
)

// Limits detects traps. The zero Limits uses the defaults. Its methods are safe for concurrent use.
//
// URLs of one host have the same pattern if they differ only in numbers, in ids and in the values
// of query parameters: /2031/05/x?a=b and /1999/12/x?a=c. An id is a UUID, or at least 16 letters
// and digits, with more than two digits and a letter. The digits of escapes are no numbers, except those
// of escaped digits.
type Limits struct {
	// Repeats is the number of consecutive pages of a pattern with known content after which the
	// pattern counts as a trap. 0 means DefaultRepeats. Negative disables the detection.
	Repeats int

	// Entries bounds the number of patterns with counts, which take about 50 bytes each. If there
	// are more, those with low counts are forgotten. 0 means DefaultEntries.
	Entries int

	mu     sync.Mutex
	seed   maphash.Seed
	counts map[uint64]tally
}

// A tally has the counts of a pattern.
type tally struct {
	repeats uint32 // consecutive pages with known content
	refused uint32 // since it became a trap
}

// One in probe URLs of a trap is admitted, to see whether it still is one: a site may have shown
// the same error for a while.
const probe = 64

// Admit returns urlfilter.Fine for a URL that the crawl is about to accept, or the reason to reject
// it. Call it after all other filters.
func (l *Limits) Admit(url string) urlfilter.Reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	pattern := l.key(url)
	t := l.counts[pattern]
	if !l.isTrap(t) {
		return urlfilter.Fine
	}
	t.refused++
	l.counts[pattern] = t
	if t.refused%probe == 0 {
		return urlfilter.Fine
	}
	return Trap
}

// Fetched records whether the content of a page was seen before, at another URL of its host. To
// know that, use a Filter of package dedupe with a hash of host and content. Report a known content
// only if the host's own site links to the page, see the package comment.
func (l *Limits) Fetched(url string, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pattern := l.key(url)
	t, found := l.counts[pattern]
	switch {
	case known:
		t.repeats += min(1, math.MaxUint32-t.repeats) // it stays at its maximum
	case !found:
		return // the common case
	default:
		t.repeats, t.refused = 0, 0
	}
	if t == (tally{}) {
		delete(l.counts, pattern)
		return
	}
	l.keep(pattern, t)
}

func (l *Limits) isTrap(t tally) bool {
	most := cmp.Or(l.Repeats, DefaultRepeats)
	return most > 0 && int64(t.repeats) >= int64(most)
}

// keep stores a tally. If there is no space, it evicts the lowest of a few.
func (l *Limits) keep(key uint64, t tally) {
	most := cmp.Or(max(l.Entries, 0), DefaultEntries)
	if _, found := l.counts[key]; !found && len(l.counts) >= most {
		const few = 8
		n, lowest, least := 0, uint64(0), uint32(math.MaxUint32)
		for other, t := range l.counts { // starts anywhere
			if n == 0 || t.repeats < least {
				lowest, least = other, t.repeats
			}
			if n++; n == few {
				break
			}
		}
		delete(l.counts, lowest)
	}
	l.counts[key] = t
}

// key returns the hash of a URL's host and pattern. It requires that l.mu is held.
func (l *Limits) key(url string) uint64 {
	if l.counts == nil {
		l.seed, l.counts = maphash.MakeSeed(), map[uint64]tally{}
	}
	var buffer [256]byte
	b := append(append(buffer[:0], weburl.Host(url)...), '/')
	return maphash.Bytes(l.seed, appendPattern(b, pathOf(url)))
}

// pathOf returns the path and the query of a URL.
func pathOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	return rest[max(strings.IndexAny(rest, "/?"), 0):]
}

// appendPattern appends a path and query, with # for each number and * for each id, and without the
// values of query parameters.
func appendPattern(dst []byte, path string) []byte {
	query, value := false, false
	for i := 0; i < len(path); {
		c := path[i]
		if !isWord(c) {
			switch c {
			case '?':
				query = true
			case '&':
				value = false
			}
			n := 1
			if isEscape(path[i:]) {
				n = len("%C3")
			}
			if !value {
				dst = append(dst, path[i:i+n]...)
			}
			value = value || query && c == '='
			i += n
			continue
		}
		start, id := i, false
		if i, id = start+len(uuidShape), isUUID(path[start:]); !id {
			for i = start; i < len(path) && isWord(path[i]); i++ {
			}
		}
		switch {
		case value:
		case id:
			dst = append(dst, '*')
		default:
			dst = appendWord(dst, path[start:i])
		}
	}
	return dst
}

// isEscape reports whether text begins with an escape of anything but a digit.
func isEscape(text string) bool {
	return len(text) > 2 && text[0] == '%' && isHex(text[1]) && isHex(text[2]) &&
		!(text[1] == '3' && isDigit(text[2]))
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

const uuidShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"

// isUUID reports whether text begins with a UUID.
func isUUID(text string) bool {
	if len(text) < len(uuidShape) || len(text) > len(uuidShape) && isWord(text[len(uuidShape)]) {
		return false
	}
	for i, shape := range []byte(uuidShape) {
		c := text[i]
		if shape == '-' && c != '-' || shape == 'x' && !isHex(c) {
			return false
		}
	}
	return true
}

// minID is the minimum length of an id of letters and digits.
const minID = 16

// appendWord appends a word of letters and digits.
func appendWord(dst []byte, word string) []byte {
	digits := 0
	for i := range len(word) {
		if isDigit(word[i]) {
			digits++
		}
	}
	if len(word) >= minID && digits > 2 && digits < len(word) {
		return append(dst, '*')
	}
	number := false
	for i := range len(word) {
		switch {
		case !isDigit(word[i]):
			dst = append(dst, word[i])
		case !number:
			dst = append(dst, '#')
		}
		number = isDigit(word[i])
	}
	return dst
}

func isWord(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
