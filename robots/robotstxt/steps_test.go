package robotstxt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A step is one octet of the path that the search for a piece of a pattern reads. For any pattern,
// all of its searches together read no octet twice. So a check of one rule takes at most as many
// steps as the path has octets, and as many searches as the pattern has pieces.
func TestStepsAreBounded(t *testing.T) {
	path := strings.Repeat("a", 2000) + "b"
	for _, tt := range []struct {
		name, pieces, path string
		anchored, want     bool
	}{
		{"each piece found at once", strings.Repeat("a*", 1000) + "c", path, false, false},
		{"the same, with an end", strings.Repeat("a*", 1000) + "c", path, true, false},
		{"as many pieces as octets", strings.Repeat("a*", 2000) + "b", path, false, true},
		{"more pieces than octets", strings.Repeat("a*", 8000) + "c", path, false, false},
		{"empty pieces", strings.Repeat("*", 16000) + "c", path, false, false},
		{"nearly the piece, everywhere", strings.Repeat("ab*", 500) + "c", strings.Repeat("aab", 700),
			false, false},
		{"long pieces", strings.Repeat("a", 999) + "*" + strings.Repeat("a", 1001) + "b", path, true,
			true},
		{"one octet too long", strings.Repeat("a", 1000) + "*" + strings.Repeat("a", 1001) + "b", path,
			true, false},
		{"the tail overlaps what is used up", "a*ab", "ab", true, false},
	} {
		steps, searches := 0, 0
		find := func(s, piece string) int {
			searches++
			i := strings.Index(s, piece)
			if i < 0 {
				steps += len(s)
			} else {
				steps += i + len(piece)
			}
			return i
		}
		require.Equal(t, tt.want, piecesMatch(tt.pieces, tt.path, tt.anchored, find), tt.name)
		require.LessOrEqual(t, steps, len(tt.path), tt.name)
		require.LessOrEqual(t, searches, strings.Count(tt.pieces, "*")+1, tt.name)
	}
}

// TestLongURLsAreCut: what is beyond the bound changes nothing, and what is before it counts. Files with
// few wildcards read all.
func TestLongURLsAreCut(t *testing.T) {
	few := Parse([]byte("user-agent: *\ndisallow: *late\n")).Rules("x")
	require.False(t, few.Allowed("https://h.test/"+strings.Repeat("x", 1<<20)+"late"))
	wild := strings.Builder{}
	for n := range maxSteps / maxPath {
		fmt.Fprintf(&wild, "allow:*%d\n", n)
	}
	rules := Parse([]byte("user-agent: *\ndisallow: /a\ndisallow: *late\n" + wild.String())).Rules("x")
	require.False(t, rules.Allowed("https://h.test/a"+strings.Repeat("x", 1<<20)))
	require.False(t, rules.Allowed("https://h.test/"+strings.Repeat("x", maxPath-10)+"late"))
	require.True(t, rules.Allowed("https://h.test/"+strings.Repeat("x", maxPath)+"late"))
	require.True(t, rules.Allowed("https://h.test/"+strings.Repeat("\xff", maxPath)+"late"))
}
