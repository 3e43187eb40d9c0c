package robots

import (
	"slices"
	"strings"
)

// prefixes finds the longest of many literal rules. Sorted by pattern, all prefixes of a path
// stand before the place of the path, and each is a prefix of its next: so the rule just before
// that place leads to all of them through its parents.
type prefixes struct {
	sorted  []rule  // by pattern, each pattern once
	parents []int32 // the longest other rule that is a prefix of this one; -1 if none
}

// newPrefixes takes over the list. Of rules with one pattern only the one that wins is kept, so
// the Allow of a tie is settled here. Each step up the parents of the last rule leaves one behind
// for good, so finding all parents is linear.
func newPrefixes(list []rule, text string) prefixes {
	slices.SortFunc(list, func(a, b rule) int {
		if c := strings.Compare(a.pattern(text), b.pattern(text)); c != 0 {
			return c
		}
		return a.precedence(&b)
	})
	list = slices.CompactFunc(list, func(a, b rule) bool {
		return a.pattern(text) == b.pattern(text)
	})
	list = exact(list)
	parents := make([]int32, len(list))
	for i := range list {
		p := int32(i - 1)
		for p >= 0 && !strings.HasPrefix(list[i].pattern(text), list[p].pattern(text)) {
			p = parents[p]
		}
		parents[i] = p
	}
	return prefixes{list, parents}
}

// longest returns the longest rule that is a prefix of path, or nil.
func (x *prefixes) longest(text, path string) *rule {
	low, high := 0, len(x.sorted)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if x.sorted[middle].pattern(text) <= path {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for i := int32(low - 1); i >= 0; i = x.parents[i] {
		if strings.HasPrefix(path, x.sorted[i].pattern(text)) {
			return &x.sorted[i]
		}
	}
	return nil
}
