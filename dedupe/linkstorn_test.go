package dedupe

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestATornEntryMatchesNeitherLink simulates concurrent writes to one entry: the first word is of
// one link, and the second of another link, or of the same link in another context.
func TestATornEntryMatchesNeitherLink(t *testing.T) {
	for _, other := range []struct {
		link    string
		context uint64
	}{{"/b", 1}, {"/a", 2}, {"/a", 1 << 32}, {"/a", 1 << 63}} {
		links := NewLinkCache(1)
		links.Put("/a", 1, 10)
		first := links.entries[0].first.Load()
		links.Put(other.link, other.context, 20)
		links.entries[0].first.Store(first)
		_, ok := links.Get("/a", 1)
		require.False(t, ok, other)
		_, ok = links.Get(other.link, other.context)
		require.False(t, ok, other)
	}
}
