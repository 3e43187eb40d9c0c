package robots

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// pattern is the compiled form of a rule.
type pattern struct {
	text   string // canonical, without the $ at the end
	rule   *rule  // where it comes from
	octets int32  // the length that decides which pattern wins, with the $
	head   int32  // the length of text before its first *
}

// appendPatterns adds what a rule stands for: usually one pattern; none if no path can match,
// because paths start with a slash; two for Allow: .../index.htm, which Google extends to the
// directory itself.
func appendPatterns(list []pattern, r *rule) []pattern {
	body, anchored := strings.CutSuffix(r.written, "$")
	text := canonical(body, true)
	if text == "" || text[0] != '/' && text[0] != '*' {
		return list
	}
	list = append(list, newPattern(r, text, anchored))
	slash := strings.LastIndexByte(text, '/')
	if r.allow && slash >= 0 && strings.HasPrefix(text[slash:], "/index.htm") {
		list = append(list, newPattern(r, text[:slash+1], true))
	}
	return list
}

// newPattern finds once what each check would have to look for again.
func newPattern(r *rule, text string, anchored bool) pattern {
	p := pattern{text: text, rule: r, octets: int32(len(text)), head: int32(len(text))}
	if anchored {
		p.octets++
	}
	if i := strings.IndexByte(text, '*'); i >= 0 {
		p.head = int32(i)
	}
	return p
}

// anchored reports whether p ends in $, which is counted but not part of the text.
func (p *pattern) anchored() bool { return int(p.octets) > len(p.text) }

// literal reports whether p is a mere prefix.
func (p *pattern) literal() bool { return !p.anchored() && int(p.head) == len(p.text) }

// matches takes each piece between two stars where it first occurs. That leaves the most for
// the next pieces, so it never has to go back, and the whole is linear in path and pattern.
func (p *pattern) matches(path string) bool {
	if !strings.HasPrefix(path, p.text[:p.head]) {
		return false
	}
	rest := path[p.head:]
	if int(p.head) == len(p.text) {
		return !p.anchored() || rest == ""
	}
	text := p.text[p.head+1:]
	for {
		star := strings.IndexByte(text, '*')
		if star < 0 {
			break
		}
		i := strings.Index(rest, text[:star])
		if i < 0 {
			return false
		}
		rest, text = rest[i+star:], text[star+1:]
	}
	if p.anchored() {
		return strings.HasSuffix(rest, text)
	}
	return strings.Contains(rest, text)
}

// before is the precedence of patterns (RFC 9309, 2.2.2): more octets, then Allow. The line
// only decides which of two equals is named as the reason.
func before(a, b *pattern) bool { return precedence(a, b) < 0 }

func precedence(a, b *pattern) int {
	if c := cmp.Compare(b.octets, a.octets); c != 0 {
		return c
	}
	if a.rule.allow != b.rule.allow {
		if a.rule.allow {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.rule.line, b.rule.line)
}

// sortKey puts the order of before into a number, which ends in the place of p in the file.
func (p *pattern) sortKey(place int) uint64 {
	key := uint64(math.MaxInt32-p.octets) << 33
	if !p.rule.allow {
		key |= 1 << 32
	}
	return key | uint64(place)
}

// prefixes finds the longest of many literal patterns. Sorted by text, all prefixes of a path
// stand before the place of the path, and each is a prefix of its next: so the pattern just
// before that place leads to all of them through its parents.
type prefixes struct {
	sorted  []pattern // by text, each text once
	parents []int32   // the longest other pattern that is a prefix of this one; -1 if none
}

// newPrefixes takes over the list. Of patterns with one text only the one that wins is kept, so
// the Allow of a tie is settled here. Each step up the parents of the last pattern leaves one
// behind for good, so finding all parents is linear.
func newPrefixes(list []pattern) prefixes {
	slices.SortFunc(list, func(a, b pattern) int {
		if c := strings.Compare(a.text, b.text); c != 0 {
			return c
		}
		return precedence(&a, &b)
	})
	list = slices.CompactFunc(list, func(a, b pattern) bool { return a.text == b.text })
	parents := make([]int32, len(list))
	for i := range list {
		p := int32(i - 1)
		for p >= 0 && !strings.HasPrefix(list[i].text, list[p].text) {
			p = parents[p]
		}
		parents[i] = p
	}
	return prefixes{list, parents}
}

// longest returns the longest pattern that is a prefix of path, or nil.
func (x *prefixes) longest(path string) *pattern {
	low, high := 0, len(x.sorted)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if x.sorted[middle].text <= path {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for i := int32(low - 1); i >= 0; i = x.parents[i] {
		if strings.HasPrefix(path, x.sorted[i].text) {
			return &x.sorted[i]
		}
	}
	return nil
}
