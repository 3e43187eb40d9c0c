package robotstxt

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	const text = "Host: h.test\nUser-Agent : foo # x\r\n\r\nContent-Signal: ai-train=no, a=b:c\r" +
		"Disallow /a\n: /nothing\nthree words here\n\tX:\nsite-map: \t ref /x/ \n"
	require.Equal(t, []line{
		{fileKind, "Host", "h.test", 1, 0, 6},
		{agentKind, "User-Agent", "foo", 2, 13, 26},
		{otherKind, "Content-Signal", "ai-train=no, a=b:c", 4, 37, 53},
		{disallowKind, "Disallow", "/a", 5, 72, 81},
		{otherKind, "X", "", 8, 112, 115},
		{sitemapKind, "site-map", "ref /x/", 9, 116, 128},
	}, slices.Collect(lines(text, 0, uint32(len(text)), 0)))
	for l := range lines(text, 0, uint32(len(text)), 0) {
		require.Equal(t, text[l.valueStart:][:len(l.value)], l.value)
		break
	}
	require.Equal(t, []line{{disallowKind, "Disallow", "/a", 15, 72, 81}},
		slices.Collect(lines(text, 72, 83, 14)), "a part of it")
}

// TestDecodeLeavesItsResult: a saved file is parsed again, and must not change.
func TestDecodeLeavesItsResult(t *testing.T) {
	wide := "\xFF\xFE" + strings.Repeat("\x00\x4e", MaxSize/2-8) + "\n\x00\x01\x00"
	for _, body := range []string{
		"", "a", "\xEF\xBB\xBFa", "\xEF\xBBa", "\xEF\xBB\xBF\xEF\xBB\xBFa", "\xEF\xBB\xBF\xFF\xFEa\x00",
		"\xFF\xFE\xFF\xFEa\x00", "\xFE\xFF\x00", strings.Repeat("x", MaxSize+1), wide,
		strings.Repeat("a\n", MaxSize), "\xEF\xBB\xBF" + strings.Repeat("a\n", MaxSize/2),
	} {
		once := decode([]byte(body))
		require.LessOrEqual(t, len(once), MaxSize)
		require.Equal(t, once, decode([]byte(once)), "%.20q", body)
	}
}

// Hostile texts: each has as much as possible of one thing. Quadratic work would take minutes here,
// and memory that is not proportional to the text would be noticed.
func TestHostileFiles(t *testing.T) {
	many := func(format string) []byte {
		var b strings.Builder
		for i := range 1 << 20 {
			b.WriteString(strings.ReplaceAll(format, "N", number(i)))
			if b.Len() > MaxSize {
				break
			}
		}
		return []byte("user-agent: *\n" + b.String())
	}
	nested := "user-agent: *\n"
	for i := 1; len(nested) < MaxSize; i++ {
		nested += "allow: /" + strings.Repeat("a", i) + "\n"
	}
	long := "/" + strings.Repeat("a", 2000) + "b"

	require.Equal(t, number(7), Parse(many("sitemap:N\n")).Sitemaps()[7])
	require.NotNil(t, Parse(many("user-agent:N\n")).Rules("b").set)
	require.True(t, Parse(many("\r")).Rules("foo").Allowed(long))
	require.True(t, Parse(many("user-agent:*\nallow:/N\n")).Rules("foo").Allowed(long))
	// Otherwise each repeated name would merge all rules again.
	same := Parse([]byte("user-agent: foo\nuser-agent: FOO/2\nuser-agent: foo\ndisallow: /a\n"))
	require.Equal(t, []uint32{0}, same.groupsOf("foo"))
	require.True(t, Parse([]byte(nested)).Rules("foo").Allowed(long))
	for _, line := range []string{
		"disallow:/*a*a*a*a*a*a*a*a*c$\n",
		"disallow:/*a*a*a*aN*c\n",
		"disallow:" + strings.Repeat("*a", 8000) + "c\n",
		"disallow:/" + strings.Repeat("*", 16000) + "c\n",
	} {
		rules := Parse(many(line)).Rules("foo")
		require.NotEmpty(t, rules.set.wild)
		require.True(t, rules.Allowed(long))
		require.Zero(t, testing.AllocsPerRun(3, func() { rules.Allowed(long) }))
	}
}

// number is written in letters, so that it can be part of a token.
func number(i int) string {
	s := ""
	for ; i > 0 || s == ""; i /= 26 {
		s += string(rune('a' + i%26))
	}
	return s
}
