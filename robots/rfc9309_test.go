package robots

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A check is one verdict that a file must give.
type check struct {
	name  string
	file  string
	agent string
	url   string
	want  bool
}

func runChecks(t *testing.T, checks []check) {
	t.Helper()
	for _, c := range checks {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			rules := Parse([]byte(c.file)).Rules(c.agent)
			require.Equal(t, c.want, rules.Allowed(c.url), "%+v", c)
			require.Equal(t, c.want, rules.Match(c.url).Allowed, "%+v", c)
		})
	}
}

const (
	fooAndBar = "user-agent: foo\nuser-agent: bar\ndisallow: /a\n"
	fooBarFoo = "user-agent: foo\ndisallow: /a\n" +
		"user-agent: bar\ndisallow: /b\n" +
		"user-agent: foo\ndisallow: /c\n"
)

// TestRFC9309 holds what the standard demands, by the clause that demands it.
func TestRFC9309(t *testing.T) {
	for clause, checks := range map[string][]check{
		"2.1-groups":     clause21,
		"2.2-syntax":     clause22,
		"2.2.1-agent":    clause221,
		"2.2.2-rules":    clause222,
		"2.2.2-encoding": clause222Encoding,
		"2.2.3-special":  clause223,
		"2.2.4-other":    clause224,
	} {
		t.Run(clause, func(t *testing.T) { runChecks(t, checks) })
	}
}

// 2.1: a group is one or more user-agent lines followed by rules, ended by another user-agent
// line or the end of the file; the last group may have no rules, which means it allows
// everything.
var clause21 = []check{
	{"one agent", "User-agent: foo\nDisallow: /a\n", "foo", "/a", false},
	{"two agents share rules, first", fooAndBar, "foo", "/a", false},
	{"two agents share rules, second", fooAndBar, "bar", "/a", false},
	{"a rule ends the agents",
		"user-agent: foo\ndisallow: /a\nuser-agent: bar\ndisallow: /b\n", "bar", "/a", true},
	{"empty last group", "user-agent: *\ndisallow: /\nuser-agent: foo", "foo", "/a", true},
	{"an empty line ends nothing", "user-agent: foo\n\n\ndisallow: /a\n", "foo", "/a", false},
	{"an empty file allows", "", "foo", "/a", true},
	{"a file of comments allows", "# nothing\n# here\n", "foo", "/a", true},
}

// 2.2: the ABNF. Keys do not depend on case, blanks stand around the colon, # starts a comment,
// lines end in CR, LF or CRLF.
var clause22 = []check{
	{"case of keys", "USER-AGENT: foo\nDISALLOW: /a\n", "foo", "/a", false},
	{"blanks around everything",
		" \tuser-agent \t : \tfoo \n disallow\t:\t/a \t\n", "foo", "/a", false},
	{"no blanks at all", "user-agent:foo\ndisallow:/a", "foo", "/a", false},
	{"comment after a value", "user-agent: foo # us\ndisallow: /a # private\n", "foo", "/a", false},
	{"comment without a blank", "user-agent: foo#us\ndisallow: /a#private\n", "foo", "/ab", false},
	{"comment hides a line", "user-agent: foo\n#disallow: /a\n", "foo", "/a", true},
	{"CR", "user-agent: foo\rdisallow: /a\r", "foo", "/a", false},
	{"CRLF", "user-agent: foo\r\ndisallow: /a\r\n", "foo", "/a", false},
	{"no end of the last line", "user-agent: foo\ndisallow: /a", "foo", "/a", false},
	{"an empty pattern matches nothing", "user-agent: foo\ndisallow:\n", "foo", "/a", true},
	{"a rule of blanks matches nothing", "user-agent: foo\ndisallow:  \t \n", "foo", "/a", true},
	{"an empty rule ends the agents",
		"user-agent: foo\ndisallow:\nuser-agent: bar\ndisallow: /\n", "foo", "/a", true},
}

// 2.2.1: tokens match without case; groups of one token are merged; * applies if no token does;
// no group, no rules.
var clause221 = []check{
	{"case of the token", "user-agent: FooBot\ndisallow: /a\n", "fOObOT", "/a", false},
	{"groups merge, first", fooBarFoo, "foo", "/a", false},
	{"groups merge, second", fooBarFoo, "foo", "/c", false},
	{"other groups do not", fooBarFoo, "foo", "/b", true},
	{"star if no token matches",
		"user-agent: foo\ndisallow: /a\nuser-agent: *\ndisallow: /b\n", "bar", "/b", false},
	{"star not beside a token",
		"user-agent: foo\ndisallow: /a\nuser-agent: *\ndisallow: /b\n", "foo", "/b", true},
	{"star groups merge",
		"user-agent: *\ndisallow: /a\nuser-agent: *\ndisallow: /b\n", "bar", "/a", false},
	{"star in front of the token",
		"user-agent: *\ndisallow: /b\nuser-agent: foo\ndisallow: /a\n", "foo", "/b", true},
	{"no group", "user-agent: foo\ndisallow: /\n", "bar", "/a", true},
	{"a token is no prefix", "user-agent: foo\ndisallow: /\n", "foobar", "/a", true},
	{"nor is the other", "user-agent: foobar\ndisallow: /\n", "foo", "/a", true},
	{"version in the file", "user-agent: foo/1.2\ndisallow: /\n", "foo", "/a", false},
	{"version of the agent",
		"user-agent: foo\ndisallow: /\n", "foo/1.2 (+http://foo.test)", "/a", false},
	{"rules before any group", "disallow: /\nuser-agent: foo\ndisallow: /a\n", "foo", "/b", true},
	{"rules without any group", "disallow: /\n", "foo", "/b", true},
}

// 2.2.2: the match starts at the first octet of the path and is case-sensitive; most octets
// win; Allow wins if equal; no match means allowed; /robots.txt is allowed.
var clause222 = []check{
	{"prefix", "user-agent: *\ndisallow: /fish\n", "foo", "/fish/salmon.html", false},
	{"not in the middle", "user-agent: *\ndisallow: /fish\n", "foo", "/cat/fish", true},
	{"case matters", "user-agent: *\ndisallow: /fish\n", "foo", "/Fish", true},
	{"the query belongs to it", "user-agent: *\ndisallow: /a?b=\n", "foo", "/a?b=c", false},
	{"longest wins, allow", "user-agent: *\ndisallow: /a\nallow: /a/b\n", "foo", "/a/b", true},
	{"longest wins, disallow", "user-agent: *\nallow: /a\ndisallow: /a/b\n", "foo", "/a/b", false},
	{"order is nothing", "user-agent: *\ndisallow: /a/b\nallow: /a\n", "foo", "/a/b", false},
	{"equal is allowed", "user-agent: *\ndisallow: /a\nallow: /a\n", "foo", "/a", true},
	{"equal is allowed, other order",
		"user-agent: *\nallow: /a\ndisallow: /a\n", "foo", "/a", true},
	{"equal among wildcards", "user-agent: *\ndisallow: /*b\nallow: /a*\n", "foo", "/ab", true},
	{"wildcards count as octets",
		"user-agent: *\nallow: /ab\ndisallow: /***\n", "foo", "/ab", false},
	{"no match is allowed", "user-agent: *\ndisallow: /a\n", "foo", "/b", true},
	{"the site", "user-agent: *\ndisallow: /\n", "foo", "http://h.test", false},
	{"robots.txt", "user-agent: *\ndisallow: /\n", "foo", "http://h.test/robots.txt", true},
	{"robots.txt exactly",
		"user-agent: *\ndisallow: /\n", "foo", "http://h.test/robots.txt2", false},
	{"robots.txt at the root",
		"user-agent: *\ndisallow: /\n", "foo", "http://h.test/a/robots.txt", false},
	{"rules of another URL part", "user-agent: *\ndisallow: /h\n", "foo", "http://h.test/a", true},
}

// 2.2.2, figure 4 and the text before it: octets beyond US-ASCII and those that RFC 3986
// reserves are percent-encoded before the comparison, and encoded unreserved ones decoded.
var clause222Encoding = []check{
	{"row 1", "user-agent: *\ndisallow: /foo/bar?baz=quz\n", "foo", "/foo/bar?baz=quz", false},
	{"row 2", "user-agent: *\ndisallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar\n", "foo",
		"/foo/bar?baz=https%3A%2F%2Ffoo.bar", false},
	{"row 3", "user-agent: *\ndisallow: /foo/bar/\u30C4\n", "foo", "/foo/bar/%E3%83%84", false},
	{"row 3, the other way",
		"user-agent: *\ndisallow: /foo/bar/%E3%83%84\n", "foo", "/foo/bar/\u30C4", false},
	{"row 4", "user-agent: *\ndisallow: /foo/bar/%E3%83%84\n", "foo", "/foo/bar/%E3%83%84", false},
	{"row 5", "user-agent: *\ndisallow: /foo/bar/%62%61%7A\n", "foo", "/foo/bar/baz", false},
	{"row 5, the other way",
		"user-agent: *\ndisallow: /foo/bar/baz\n", "foo", "/foo/bar/%62%61%7A", false},
	{"case of escapes", "user-agent: *\ndisallow: /%e3%83%84%2f\n", "foo", "/%E3%83%84%2F", false},
	{"case of escapes, the other way",
		"user-agent: *\ndisallow: /%E3%83%84%2F\n", "foo", "/%e3%83%84%2f", false},
	{"an escaped slash is none", "user-agent: *\ndisallow: /a%2Fb\n", "foo", "/a/b", true},
	{"octets, not letters, count",
		"user-agent: *\nallow: /\u00e9\ndisallow: /*abcd\n", "foo", "/\u00e9abcd", true},
}

// 2.2.3: # starts a comment, $ ends a match, * is any octets; as literals they are escaped.
var clause223 = []check{
	{"star", "user-agent: *\ndisallow: /a*c\n", "foo", "/abbc", false},
	{"star is empty", "user-agent: *\ndisallow: /a*c\n", "foo", "/ac", false},
	{"star spans slash and query", "user-agent: *\ndisallow: /a*c\n", "foo", "/a/b?x=c", false},
	{"stars", "user-agent: *\ndisallow: /*.php*x=\n", "foo", "/a/b.php?y=1&x=2", false},
	{"stars in order", "user-agent: *\ndisallow: /*x=*.php\n", "foo", "/b.php?x=2", true},
	{"star at the start", "user-agent: *\ndisallow: *.gif\n", "foo", "/a/b.gif", false},
	{"dollar", "user-agent: *\ndisallow: /a$\n", "foo", "/a", false},
	{"dollar ends", "user-agent: *\ndisallow: /a$\n", "foo", "/ab", true},
	{"dollar after a query", "user-agent: *\ndisallow: /*.php$\n", "foo", "/a.php?x", true},
	{"star before dollar", "user-agent: *\ndisallow: /*a$\n", "foo", "/bab/a", false},
	{"the last one counts",
		"user-agent: *\nallow: /this/path/exactly$\ndisallow: /\n", "foo",
		"/this/path/exactly", true},
	{"dollar within is literal", "user-agent: *\ndisallow: /a$b\n", "foo", "/a$b", false},
	{"escaped star",
		"user-agent: *\ndisallow: /path/file-with-a-%2A.html\n", "foo",
		"/path/file-with-a-*.html", false},
	{"escaped star is no wildcard",
		"user-agent: *\ndisallow: /path/a-%2A.html\n", "foo", "/path/a-b.html", true},
	{"escaped dollar", "user-agent: *\ndisallow: /path/foo-%24\n", "foo", "/path/foo-$", false},
	{"escaped dollar is no end",
		"user-agent: *\ndisallow: /path/foo-%24\n", "foo", "/path/foo-", true},
	{"escaped hash", "user-agent: *\ndisallow: /a%23b\n", "foo", "/a%23b", false},
}

// 2.2.4: other records do not interfere with the rules.
var clause224 = []check{
	{"sitemap within a group",
		"user-agent: foo\nsitemap: http://h.test/s\ndisallow: /a\n", "foo", "/a", false},
	{"sitemap between agents",
		"user-agent: foo\nsitemap: http://h.test/s\nuser-agent: bar\ndisallow: /a\n", "foo",
		"/a", false},
	{"sitemap between groups",
		"user-agent: foo\ndisallow: /a\nsitemap: x\nuser-agent: bar\ndisallow: /b\n", "bar",
		"/a", true},
	{"unknown keys", "user-agent: foo\nnoindex: /\ndisallow: /a\nhost: x\n", "foo", "/a", false},
}

// TestRFC9309Examples holds the two files of the RFC's section 5.
func TestRFC9309Examples(t *testing.T) {
	const simple = `User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot`
	const longest = "User-Agent: foobot\nAllow: /example/page/\n" +
		"Disallow: /example/page/disallowed.gif\n"
	runChecks(t, []check{
		{"5.1 gif", simple, "other", "/a/b.gif", false},
		{"5.1 gif with a query", simple, "other", "/a/b.gif?c", true},
		{"5.1 example", simple, "other", "/example/", false},
		{"5.1 publications", simple, "other", "/publications/", true},
		{"5.1 foobot page", simple, "foobot", "/example/page.html", true},
		{"5.1 foobot gif", simple, "foobot", "/example/allowed.gif", true},
		{"5.1 foobot rest", simple, "foobot", "/publications/", false},
		{"5.1 barbot page", simple, "barbot", "/example/page.html", false},
		{"5.1 bazbot page", simple, "bazbot", "/example/page.html", false},
		{"5.1 bazbot gif", simple, "bazbot", "/a/b.gif", true},
		{"5.1 quxbot", simple, "quxbot", "/example/page.html", true},
		{"5.2 longest match", longest, "foobot", "/example/page/disallowed.gif", false},
		{"5.2 shorter match", longest, "foobot", "/example/page/allowed.gif", true},
	})
}

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

// 2.3.1.5: crawlers must use the lines that can be parsed.
func TestRFC9309ParsingErrors(t *testing.T) {
	const body = "<html>\n\x00\xff\nallow\ndisallow: /zzz\nuser-agent foo\ncrawl-delay: soon\n" +
		"disallow: /a\n:::\n= = =\n: /x\ndisallow /b\n"
	runChecks(t, []check{
		{"2.3.1.5 with colon", body, "foo", "/a", false},
		{"2.3.1.5 without", body, "foo", "/b", false},
		{"2.3.1.5 not beyond", body, "foo", "/c", true},
	})
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

// 2.3: the file lies at /robots.txt of the scheme and authority of the URL.
func TestRFC9309Location(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"https://www.example.com/", "https://www.example.com/robots.txt"},
		{"ftp://ftp.example.com/pub/a", "ftp://ftp.example.com/robots.txt"},
		{"http://www.example.com:8080/a/robots.txt?b", "http://www.example.com:8080/robots.txt"},
		{"http://example.com", "http://example.com/robots.txt"},
	} {
		got, err := Locate(tt.url)
		require.NoError(t, err)
		require.Equal(t, tt.want, got, "%+v", tt)
	}
}
