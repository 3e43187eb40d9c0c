package robotstxt

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

// setPrefixes takes over the list. Of rules with one pattern only the one that wins is kept. Each
// step up the parents of the last rule leaves one behind for good, so finding all parents is
// linear.
func (s *ruleset) setPrefixes(list []rule) {
	slices.SortFunc(list, func(a, b rule) int {
		if c := strings.Compare(s.pattern(&a), s.pattern(&b)); c != 0 {
			return c
		}
		return a.precedence(&b)
	})
	list = exact(slices.CompactFunc(list, func(a, b rule) bool {
		return s.pattern(&a) == s.pattern(&b)
	}))
	parents := make([]int32, len(list))
	for i := range list {
		p := int32(i - 1)
		for p >= 0 && !strings.HasPrefix(s.pattern(&list[i]), s.pattern(&list[p])) {
			p = parents[p]
		}
		parents[i] = p
	}
	s.prefixes = prefixes{list, parents}
}

// longestPrefix returns the longest literal rule that is a prefix of path, or nil.
func (s *ruleset) longestPrefix(path string) *rule {
	x := &s.prefixes
	low, high := 0, len(x.sorted)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if s.pattern(&x.sorted[middle]) <= path {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for i := int32(low - 1); i >= 0; i = x.parents[i] {
		if strings.HasPrefix(path, s.pattern(&x.sorted[i])) {
			return &x.sorted[i]
		}
	}
	return nil
}
