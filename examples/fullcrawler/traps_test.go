package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter/trap"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// TestStrangersMakeNoTrap: a host answers with the same page for any missing item. Links of its own
// site make that a trap; links of other sites do not, even through redirects.
func TestStrangersMakeNoTrap(t *testing.T) {
	const repeats = 100
	const own, other, sibling = "http://www.a.org/list", "http://b.org/", "http://shop.a.org/"
	item := func(n int) string { return fmt.Sprintf("http://www.a.org/item/%d", n) }
	for name, tt := range map[string]struct {
		found func(n int) []stage.Item // one after the other; the last one is fetched
		want  stage.Reason
	}{
		"by its own links":     {func(n int) []stage.Item { return []stage.Item{{URL: item(n), From: own}} }, trap.Trap},
		"by links of its site": {func(n int) []stage.Item { return []stage.Item{{URL: item(n), From: sibling}} }, trap.Trap},
		"by a sitemap":         {func(n int) []stage.Item { return []stage.Item{{URL: item(n)}} }, trap.Trap},
		"by links of others":   {func(n int) []stage.Item { return []stage.Item{{URL: item(n), From: other}} }, ""},
		"by links of others, which redirect": {func(n int) []stage.Item {
			return []stage.Item{{URL: other + fmt.Sprint(n), From: other}, {URL: item(n), From: other + fmt.Sprint(n), Hops: 1}}
		}, ""},
		"by its own redirects, to which others link": {func(n int) []stage.Item {
			old := fmt.Sprintf("http://www.a.org/old/%d", n)
			return []stage.Item{{URL: old, From: other}, {URL: item(n), From: old, Hops: 1}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := newTraps(repeats, dedupe.New(dedupe.Options{}))
			for n := range repeats + 1 {
				last := stage.Item{}
				for _, it := range tt.found(n) {
					it.Depth, it.Strange = 1, last.Strange
					it.Strange = it.ByStrangers()
					require.Empty(t, found.admit(it), n)
					last = it
				}
				last.Visit = &stage.Visit{State: stage.State{Hash: 1}}
				found.note(last)
			}
			require.Equal(t, tt.want, found.admit(stage.Item{URL: item(9999), From: own, Depth: 1}))
		})
	}
}
