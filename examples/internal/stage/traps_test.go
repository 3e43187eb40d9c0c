package stage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter/trap"
)

// TestStrangersMakeNoTrap: a host answers with the same page for any missing item. Links of its own
// site make that a trap; links of other sites do not, even through redirects.
func TestStrangersMakeNoTrap(t *testing.T) {
	const repeats = 100
	const own, other, sibling = "http://www.a.org/list", "http://b.org/", "http://shop.a.org/"
	item := func(n int) string { return fmt.Sprintf("http://www.a.org/item/%d", n) }
	for name, tt := range map[string]struct {
		found func(n int) []Item // one after the other; the last one is fetched
		want  Reason
	}{
		"by its own links":     {func(n int) []Item { return []Item{{URL: item(n), From: own}} }, trap.Trap},
		"by links of its site": {func(n int) []Item { return []Item{{URL: item(n), From: sibling}} }, trap.Trap},
		"by a sitemap":         {func(n int) []Item { return []Item{{URL: item(n)}} }, trap.Trap},
		"by links of others":   {func(n int) []Item { return []Item{{URL: item(n), From: other}} }, ""},
		"by links of others, which redirect": {func(n int) []Item {
			return []Item{{URL: other + fmt.Sprint(n), From: other}, {URL: item(n), From: other + fmt.Sprint(n), Hops: 1}}
		}, ""},
		"by its own redirects, to which others link": {func(n int) []Item {
			old := fmt.Sprintf("http://www.a.org/old/%d", n)
			return []Item{{URL: old, From: other}, {URL: item(n), From: old, Hops: 1}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			traps := NewTraps(repeats)
			for n := range repeats + 1 {
				last := Item{}
				for _, it := range tt.found(n) {
					it.Depth, it.Strange = 1, last.Strange
					it.Strange = it.ByStrangers()
					require.Empty(t, traps.Admit(it), n)
					last = it
				}
				last.Visit = &Visit{State: State{Hash: 1}}
				traps.Note(last)
			}
			require.Equal(t, tt.want, traps.Admit(Item{URL: item(9999), From: own, Depth: 1}))
		})
	}
}
