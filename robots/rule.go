package robots

import (
	"cmp"
	"math"
	"strings"
)

// rule is one Allow or Disallow line that can match, in a form ready for comparison. It holds no
// pointer, so that a hundred thousand of them cost the garbage collector nothing.
//
// In the text that it points into lies its canonical pattern, and a line end. Where the file has
// it in another form, rewrittenBit is set and that form follows, with its own line end.
type rule struct {
	at   uint32
	size uint16 // of the canonical pattern, without the $ at its end
	head uint16 // the part of size before the first *
	bits uint32 // the flags below, and from lineShift on the line in the file
}

const (
	allowBit     = 1 << iota
	anchorBit    // ends in $
	rewrittenBit // was not canonical in the file
	lineShift    = iota
)

// settledPattern returns the canonical form of a pattern, without the $ at its end, and the flags
// that say what that form hides.
func settledPattern(written string) (pattern string, bits uint32) {
	body, anchored := strings.CutSuffix(written, "$")
	if anchored {
		bits = anchorBit
	}
	if pattern = canonical(body, true); pattern != body {
		bits |= rewrittenBit
	}
	return pattern, bits
}

// newRule finds once what each check would have to look for again.
func newRule(pattern string, at, bits uint32) rule {
	r := rule{at: at, size: uint16(len(pattern)), head: uint16(len(pattern)), bits: bits}
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

// pattern returns the canonical pattern without the $ at its end.
func (r *rule) pattern(text string) string { return text[r.at : r.at+uint32(r.size)] }

// written returns the pattern as it stands in the file.
func (r *rule) written(text string) string {
	line, rest, _ := strings.Cut(text[r.at:], "\n")
	if r.bits&rewrittenBit != 0 {
		line, _, _ = strings.Cut(rest, "\n")
	}
	return line
}

// literal reports whether r is a mere prefix.
func (r *rule) literal() bool { return !r.anchored() && r.head == r.size }

// directory returns the rule for the directory itself that Google reads into an Allow of its
// index.htm or index.html. It points to the same text, so it is explained by the same line.
func (r *rule) directory(text string) (dir rule, ok bool) {
	if !r.allow() {
		return rule{}, false
	}
	pattern := r.pattern(text)
	slash := strings.LastIndexByte(pattern, '/')
	if slash < 0 || !strings.HasPrefix(pattern[slash:], "/index.htm") {
		return rule{}, false
	}
	return newRule(pattern[:slash+1], r.at, r.bits|anchorBit), true
}

// matches compares the rule with a path in canonical form.
func (r *rule) matches(text, path string) bool {
	pattern := r.pattern(text)
	head := int(r.head)
	if !strings.HasPrefix(path, pattern[:head]) {
		return false
	}
	if r.head == r.size {
		return !r.anchored() || len(path) == head
	}
	// The last octet tells most mismatches at once: /*.php$ is what many rules look like.
	last := pattern[len(pattern)-1]
	if r.anchored() && last != '*' && path[len(path)-1] != last {
		return false
	}
	return piecesMatch(pattern[head+1:], path[head:], r.anchored(), strings.Index)
}

// octetsIn returns which octets occur in a canonical pattern or path, as a set in which each has
// the place of its lower six bits. Hardly two that are frequent share one, and it does no harm.
func octetsIn(s string) (set uint64) {
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
