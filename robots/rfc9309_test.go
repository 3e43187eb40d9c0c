package robots

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// 2.3.1: what the response to the request for the file means.
func TestRFC9309Access(t *testing.T) {
	const body = "user-agent: *\ndisallow: /a\n"
	for _, tt := range []struct {
		clause   string
		statuses []int
		a, b     bool // whether /a and /b are allowed
	}{
		{"2.3.1.1-successful", []int{200, 203, 206, 299}, false, true},
		{"2.3.1.2-redirects-left-over", []int{300, 301, 302, 303, 307, 308, 399}, true, true},
		{"2.3.1.3-unavailable", []int{400, 401, 403, 404, 410, 428, 430, 451, 499}, true, true},
		{"2.3.1.4-unreachable", []int{500, 502, 503, 504, 599}, false, false},
		{"2.3.1.4-too-many-requests", []int{429}, false, false},
		{"2.3.1.4-unexpected", []int{0, -1, 100, 101, 199, 600, 999}, false, false},
	} {
		t.Run(tt.clause, func(t *testing.T) {
			for _, status := range tt.statuses {
				rules := FromResponse(status, []byte(body)).Rules("foo")
				require.Equal(t, tt.a, rules.Allowed("/a"), status)
				require.Equal(t, tt.b, rules.Allowed("/b"), status)
				require.Equal(t, tt.b, rules.Match("/b").Allowed, status)
				require.True(t, rules.Allowed("/robots.txt"), status)
				_, delayed := rules.Delay()
				require.False(t, delayed)
			}
		})
	}
}

// 2.5: at least 500 KiB are parsed.
func TestRFC9309Limits(t *testing.T) {
	const head, tail = "user-agent: *\n", "disallow: /last\n"
	filler := func(n int) string { return strings.Repeat("#", n-1) + "\n" }

	fits := Parse([]byte(head + filler(MaxSize-len(head+tail)) + tail))
	require.Zero(t, fits.Skipped())
	require.False(t, fits.Rules("foo").Allowed("/last"), "the last line within the limit")

	const cut = "disallow: /lasting\ndisallow: /b"
	over := Parse([]byte(head + filler(MaxSize-len(head+tail)) + cut))
	require.Equal(t, len(cut)-len(tail), over.Skipped())
	require.True(t, over.Rules("foo").Allowed("/last"), "half a pattern is none")
	require.True(t, over.Rules("foo").Allowed("/b"), "a line beyond the limit")

	endless := Parse([]byte(head + strings.Repeat("x", 2*MaxSize)))
	require.True(t, endless.Rules("foo").Allowed("/"))
	require.Equal(t, len(head)+MaxSize, endless.Skipped())
}
