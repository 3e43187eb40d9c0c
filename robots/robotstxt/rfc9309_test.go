package robotstxt

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// 2.5: at least 500 KiB are parsed.
func TestRFC9309Limits(t *testing.T) {
	const head, tail = "user-agent: *\n", "disallow: /last\n"
	filler := func(n int) string { return strings.Repeat("#", n-1) + "\n" }

	fits := Parse([]byte(head + filler(MaxSize-len(head+tail)) + tail))
	require.False(t, fits.Rules("foo").Allowed("/last"), "the last line within the limit")

	const cut = "disallow: /lasting\ndisallow: /b"
	over := Parse([]byte(head + filler(MaxSize-len(head+tail)) + cut))
	require.True(t, over.Rules("foo").Allowed("/last"), "half a pattern is none")
	require.True(t, over.Rules("foo").Allowed("/b"), "a line beyond the limit")

	endless := Parse([]byte(head + strings.Repeat("x", 2*MaxSize)))
	require.True(t, endless.Rules("foo").Allowed("/"))
	require.Equal(t, head, endless.String())
}
