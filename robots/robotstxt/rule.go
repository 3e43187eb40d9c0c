package robotstxt

import (
	"cmp"
	"math"
	"strings"
)

// A rule is one Allow or Disallow line that can match, in a form ready for comparison. It holds no
// pointer, so that a hundred thousand of them cost the garbage collector nothing.
//
// Its pattern lies in the text of the file if it is in canonical form there. Else rewrittenBit is
// set, and in extra stand the canonical form, a line end, the form in the file, and a line end.
type rule struct {
	start uint32
	size  uint16 // of the canonical pattern, without the $ at its end
	head  uint16 // the part of size before the first *
	bits  uint32 // the flags below, and from lineShift on the line in the file
}

var _ = [math.MaxUint16 - 3*maxLine]struct{}{} // sizes fit: escaping makes three bytes of one

const (
	allowBit     = 1 << iota
	anchorBit    // ends in $
	rewrittenBit // is not canonical in the file
	lineShift    = iota
)

// newRule finds once what each check would have to look for again.
func newRule(pattern string, start, bits uint32) rule {
	r := rule{start: start, size: uint16(len(pattern)), head: uint16(len(pattern)), bits: bits}
	if i := strings.IndexByte(pattern, '*'); i >= 0 {
		r.head = uint16(i)
	}
	return r
}

func (r *rule) allow() bool    { return r.bits&allowBit != 0 }
func (r *rule) anchored() bool { return r.bits&anchorBit != 0 }
func (r *rule) line() uint32   { return r.bits >> lineShift }

// octets is the length that decides which rule wins. The $ counts (RFC 9309, 2.2.2).
func (r *rule) octets() uint32 { return uint32(r.size) + r.bits&anchorBit/anchorBit }

// literal reports whether r is a prefix without wildcards.
func (r *rule) literal() bool { return !r.anchored() && r.head == r.size }

// pattern returns the canonical pattern of a rule, without the $ at its end.
func (s *ruleset) pattern(r *rule) string {
	text := s.text
	if r.bits&rewrittenBit != 0 {
		text = s.extra
	}
	return text[r.start : r.start+uint32(r.size)]
}

// written returns the pattern of a rule as it stands in the file.
func (s *ruleset) written(r *rule) string {
	if r.bits&rewrittenBit == 0 {
		return s.text[r.start : r.start+r.octets()]
	}
	_, rest, _ := strings.Cut(s.extra[r.start:], "\n")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// matches compares a rule, of which this is the canonical pattern, with a path in canonical form.
func (r *rule) matches(pattern, path string) bool {
	head := int(r.head)
	if !strings.HasPrefix(path, pattern[:head]) {
		return false
	}
	if r.head == r.size {
		return !r.anchored() || len(path) == head
	}
	// The last byte tells most mismatches at once: /*.php$ is what many rules look like.
	last := pattern[len(pattern)-1]
	if r.anchored() && last != '*' && path[len(path)-1] != last {
		return false
	}
	return piecesMatch(pattern[head+1:], path[head:], r.anchored(), strings.Index)
}

// Matcher returns a function that reports whether a path pattern, in the syntax of Allow and
// Disallow, matches a URL, and how many octets it has: of several that match, the longest decides.
// It is for records that have patterns of their own, such as Content-Usage.
func Matcher(url string) func(pattern string) (octets int, ok bool) {
	path := target(url, maxPath) // once, since a file may have tens of thousands of patterns
	return func(pattern string) (octets int, ok bool) {
		body, anchored := strings.CutSuffix(pattern, "$")
		body = canonical(body[:min(len(body), maxLine)], true)
		if body == "" || body[0] != '/' && body[0] != '*' {
			return 0, false
		}
		r := newRule(body, 0, 0)
		if anchored {
			r.bits |= anchorBit
		}
		return int(r.octets()), r.matches(body, path)
	}
}

// bytesIn returns which bytes occur in a canonical pattern or path, as a set in which each has the
// place of its lower six bits. Hardly two that are frequent share one, and it does no harm.
func bytesIn(s string) (set uint64) {
	for i := range len(s) {
		set |= 1 << (s[i] % 64)
	}
	return set
}

// piecesMatch takes each piece between two stars where it first occurs. That leaves the most for
// the next pieces, so it never has to go back: what was searched once is not searched again, and
// the whole is linear in path and pattern if find is.
func piecesMatch(pieces, path string, anchored bool, find func(s, piece string) int) bool {
	for {
		star := strings.IndexByte(pieces, '*')
		if star < 0 {
			break
		}
		i := find(path, pieces[:star])
		if i < 0 {
			return false
		}
		path, pieces = path[i+star:], pieces[star+1:]
	}
	if anchored {
		return strings.HasSuffix(path, pieces)
	}
	return find(path, pieces) >= 0
}

// before is the precedence of rules (RFC 9309, 2.2.2): more octets, then Allow. The line only
// decides which of two equals is named as the reason.
func (r *rule) before(other *rule) bool { return r.precedence(other) < 0 }

func (r *rule) precedence(other *rule) int {
	return cmp.Or(
		cmp.Compare(other.octets(), r.octets()),
		cmp.Compare(other.bits&allowBit, r.bits&allowBit),
		cmp.Compare(r.line(), other.line()),
	)
}

// sortKey puts the order of before into a number, which ends in the place of r in the file.
func (r *rule) sortKey(place int) uint64 {
	key := uint64(math.MaxUint16-r.octets()) << 33
	if !r.allow() {
		key |= 1 << 32
	}
	return key | uint64(place)
}
