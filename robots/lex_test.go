package robots

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Records that no verdict needs are the lexer's to find all the same, with their place.
func TestRecords(t *testing.T) {
	const text = "Host: h.test\nUser-Agent : foo # x\r\n\r\nContent-Signal: ai-train=no, a=b:c\r" +
		"Disallow /a\n: /nothing\nthree words here\nRequest-rate:\nClean-param: ref /x/"
	require.Equal(t, []record{
		{hostKind, "Host", "h.test", 1},
		{agentKind, "User-Agent", "foo", 2},
		{signalKind, "Content-Signal", "ai-train=no, a=b:c", 4},
		{disallowKind, "Disallow", "/a", 5},
		{rateKind, "Request-rate", "", 8},
		{cleanParamKind, "Clean-param", "ref /x/", 9},
	}, slices.Collect(records(text)))
}

func TestRecordsCanStopEarlyAndStartAgain(t *testing.T) {
	all := records("a: 1\nb: 2")
	for range 2 {
		for rec := range all {
			require.Equal(t, record{unknownKind, "a", "1", 1}, rec)
			break
		}
	}
}

// Hostile texts: each is the most of one thing that fits. Work that grows with the square of
// the text would take minutes here, and memory that does not follow the text would show.
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
	require.False(t, Parse(many("user-agent:N\n")).denyAll)
	require.True(t, Parse(many("\r")).Rules("foo").Allowed(long))
	require.True(t, Parse(many("user-agent:*\nallow:/N\n")).Rules("foo").Allowed(long))
	// Else each repeated name would merge all rules once more.
	same := Parse([]byte("user-agent: foo\nuser-agent: FOO/2\nuser-agent: foo\ndisallow: /a\n"))
	require.Len(t, same.agents, 1)
	require.True(t, Parse([]byte(nested)).Rules("foo").Allowed(long))
	for _, line := range []string{
		"disallow:/*a*a*a*a*a*a*a*a*c$\n",
		"disallow:/*a*a*a*aN*c\n",
		"disallow:" + strings.Repeat("*a", 8000) + "c\n",
		"disallow:/" + strings.Repeat("*", 16000) + "c\n",
	} {
		rules := Parse(many(line)).Rules("foo")
		require.NotEmpty(t, rules.set.wild)
		require.Nil(t, rules.set.second, "no wildcard may reach the second engine")
		require.True(t, rules.Allowed(long))
		require.Zero(t, testing.AllocsPerRun(3, func() { rules.Allowed(long) }))
	}
}

// number writes in letters, so that it can stand in a token.
func number(i int) string {
	s := ""
	for ; i > 0 || s == ""; i /= 26 {
		s += string(rune('a' + i%26))
	}
	return s
}
