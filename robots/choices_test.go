package robots

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestChoices holds what no clause of RFC 9309 demands, and why it is as it is.
func TestChoices(t *testing.T) {
	for reason, checks := range map[string][]check{
		"like-google":         likeGoogle,
		"whose-group":         whoseGroup,
		"which-path":          whichPath,
		"one-form-both-sides": oneForm,
	} {
		t.Run(reason, func(t *testing.T) { runChecks(t, checks) })
	}
}

// Site owners test their files with Google's tools, so what Google forgives works in practice,
// and what it refuses has been noticed there.
var likeGoogle = []check{
	{"missing colon", "user-agent *\ndisallow /a\n", "foo", "/a", false},
	{"missing colon and a third word", "user-agent: *\ndisallow /a b\n", "foo", "/a", true},
	{"useragent", "useragent: foo\ndisallow: /a\n", "foo", "/a", false},
	{"user agent", "user agent: foo\ndisallow: /a\n", "foo", "/a", false},
	{"dissallow", "user-agent: *\ndissallow: /a\n", "foo", "/a", false},
	{"dissalow", "user-agent: *\ndissalow: /a\n", "foo", "/a", false},
	{"disalow", "user-agent: *\nDisalow: /a\n", "foo", "/a", false},
	{"diasllow", "user-agent: *\ndiasllow: /a\n", "foo", "/a", false},
	{"disallaw", "user-agent: *\ndisallaw: /a\n", "foo", "/a", false},
	{"keys by prefix", "user-agents: *\ndisallowed: /\nallowance: /a\n", "foo", "/a", true},
	{"desallow is no key", "user-agent: *\ndesallow: /a\n", "foo", "/a", true},
	{"blank inside a pattern", "user-agent: *\ndisallow: /a b\n", "foo", "/a%20b", false},
	{"and not cut there", "user-agent: *\ndisallow: /a b\n", "foo", "/a", true},
	{"pattern without slash", "user-agent: *\ndisallow: a\n", "foo", "/a", true},
	{"pattern of a URL", "user-agent: *\ndisallow: http://h.test/a\n", "foo", "/a", true},
	{"pattern of a dollar", "user-agent: *\ndisallow: $\n", "foo", "/", true},
	{"index.html", "user-agent: *\nallow: /a/index.html\ndisallow: /a/\n", "foo", "/a/", true},
	{"index.htm", "user-agent: *\nallow: /a/index.htm\ndisallow: /a/\n", "foo", "/a/", true},
	{"index.html$", "user-agent: *\nallow: /a/index.html$\ndisallow: /a/\n", "foo", "/a/", true},
	{"index.html itself", "user-agent: *\nallow: /a/index.html\ndisallow: /a\n", "foo",
		"/a/index.html", true},
	{"index.html, nothing else", "user-agent: *\nallow: /a/index.html\ndisallow: /a/\n", "foo",
		"/a/b", false},
	{"index.html is never forbidden so", "user-agent: *\ndisallow: /a/index.html\n", "foo", "/a/",
		true},
	{"byte order mark", "\xEF\xBB\xBFuser-agent: *\ndisallow: /a\n", "foo", "/a", false},
	{"half a byte order mark", "\xEF\xBBuser-agent: *\ndisallow: /a\n", "foo", "/a", false},
	{"no byte order mark later", "\n\xEF\xBB\xBFuser-agent: *\ndisallow: /a\n", "foo", "/a", true},
	{"NUL ends a line", "user-agent: *\ndisallow: /a\x00b\n", "foo", "/a", false},
	{"crawl-delay ends no agents",
		"user-agent: foo\ncrawl-delay: 1\nuser-agent: bar\ndisallow: /\n", "foo", "/a", false},
	{"star with words", "user-agent: * (all)\ndisallow: /a\n", "foo", "/a", false},
	{"star with a name", "user-agent: *bot\ndisallow: /a\n", "foo", "/a", true},
	{"one name a line", "user-agent: foo, bar\ndisallow: /a\n", "bar", "/a", true},
	{"raw octets", "user-agent: *\ndisallow: /\xff\n", "foo", "/%FF", false},
	{"a page instead of a file", "<html><body>disallow: /</body></html>", "foo", "/a", true},
}

// A crawler must find the group that its users would call its own.
var whoseGroup = []check{
	{"digits in the file", "user-agent: MJ12bot\ndisallow: /\n", "MJ12bot", "/", false},
	{"digits and version", "user-agent: MJ12bot/v1\ndisallow: /\n", "mj12bot/v1.4", "/", false},
	{"digits only count whole", "user-agent: MJ\ndisallow: /\n", "MJ12bot", "/", true},
	{"letters stop at digits", "user-agent: MJ12bot\ndisallow: /\n", "MJ", "/", false},
	{"digits in front", "user-agent: 360Spider\ndisallow: /\n", "360Spider", "/", false},
	{"points", "user-agent: Mail.RU_Bot/2.0\ndisallow: /\n", "Mail.RU_Bot", "/", false},
	{"posing as a browser", "user-agent: foo\ndisallow: /\n",
		"Mozilla/5.0 (compatible; foo/2.1; +http://foo.test)", "/", false},
	{"posing, late", "user-agent: foo\ndisallow: /\n",
		"Mozilla/5.0 (Linux) Chrome/1 Safari/2 (compatible; Foo/2.1)", "/", false},
	{"a browser", "user-agent: mozilla\ndisallow: /\n", "Mozilla/5.0 (Linux)", "/", false},
	{"no name", "user-agent: foo\ndisallow: /\nuser-agent: *\ndisallow: /a", "", "/b", true},
	{"no name is star", "user-agent: foo\ndisallow: /\nuser-agent: *\ndisallow: /a", "", "/a",
		false},
	{"the name star", "user-agent: *\ndisallow: /a", "*", "/a", false},
	{"blanks around", "user-agent: foo\ndisallow: /a", " foo ", "/a", false},
	{"an empty name starts a group", "user-agent: foo\ndisallow: /\nuser-agent:\ndisallow: /a\n",
		"foo", "/a", false},
	{"and it is nobody's", "user-agent:\ndisallow: /a\n", "foo", "/a", true},
}

// Callers hold URLs, paths, or what users typed; no form of a URL may fail open.
var whichPath = []check{
	{"absolute", noA, "foo", "https://h.test/a", false},
	{"port and user", noA, "foo", "https://u:p@h.test:81/a?b", false},
	{"path", noA, "foo", "/a?b#c", false},
	{"without scheme", noA, "foo", "h.test/a", false},
	{"fragment", noA, "foo", "https://h.test/#/a", true},
	{"fragment with a slash, no path", "user-agent: *\ndisallow: /$", "foo", "h.test#/a", false},
	{"URL in the query", noA, "foo", "/b?u=http://h.test/a", true},
	{"URL in a bare query", "user-agent: *\ndisallow: /?u", "foo", "?u=http://h.test/a", false},
	{"query after the host", "user-agent: *\ndisallow: /?a", "foo", "http://h.test?a", false},
	{"nothing is the root", "user-agent: *\ndisallow: /$", "foo", "", false},
	{"host is the root", "user-agent: *\ndisallow: /$", "foo", "http://h.test", false},
	{"two slashes are a path", "user-agent: *\ndisallow: //a", "foo", "//a", false},
	{"robots.txt with a query", "user-agent: *\ndisallow: /", "foo", "/robots.txt?a", false},
	{"robots.txt escaped", "user-agent: *\ndisallow: /", "foo", "/%72obots.txt", true},
}

const noA = "user-agent: *\ndisallow: /a\n"

// Sites write patterns as people read them, URLs come as programs write them.
var oneForm = []check{
	{"blank", "user-agent: *\ndisallow: /a%20b\n", "foo", "/a b", false},
	{"quote and braces", "user-agent: *\ndisallow: /\"{|}\"\n", "foo", "/%22%7b%7C%7d%22", false},
	{"tilde", "user-agent: *\ndisallow: /%7Ea\n", "foo", "/~a", false},
	{"lone percent", "user-agent: *\ndisallow: /100%\n", "foo", "/100%/a", false},
	{"lone percent and a digit", "user-agent: *\ndisallow: /%4\n", "foo", "/%4", false},
	{"half an escape matches no whole", "user-agent: *\ndisallow: /%4\n", "foo", "/%41", true},
	{"half an escape stays half", "user-agent: *\ndisallow: /%2F\n", "foo", "/%2%46", true},
	{"no double decoding", "user-agent: *\ndisallow: /a\n", "foo", "/%2561", true},
	{"reserved stay", "user-agent: *\ndisallow: /a=b\n", "foo", "/a%3Db", true},
	{"star in the URL", "user-agent: *\ndisallow: /%2A\n", "foo", "/*", false},
	{"dot segments stay", "user-agent: *\ndisallow: /a\n", "foo", "/b/../a", true},
}

// A line's end is where Google's parser has it, or a pattern would change its meaning.
func TestLongLine(t *testing.T) {
	pattern := "/" + strings.Repeat("a", 16663-len("disallow:/"))
	rules := Parse([]byte("user-agent:*\ndisallow:" + pattern + "bbb\n")).Rules("foo")
	require.Equal(t, pattern, rules.Match(pattern+"ccc").Pattern)
	require.True(t, rules.Allowed(pattern[1:]))
}

func TestUTF16(t *testing.T) {
	const text = "user-agent: *\r\ndisallow: /\u30C4\n"
	little, big := []byte("\xFF\xFE"), []byte("\xFE\xFF")
	for _, r := range text {
		little = append(little, byte(r), byte(r>>8))
		big = append(big, byte(r>>8), byte(r))
	}
	for _, body := range [][]byte{little, big, append(little, 'x')} {
		v := Parse(body).Rules("foo").Match("/%E3%83%84")
		require.Equal(t, Verdict{false, "/\u30C4", 2}, v)
	}
}

// The reason must lead to the line that a person would change.
func TestMatchNamesTheRule(t *testing.T) {
	const body = "# first\r\nuser-agent: *\r\n\r\nallow: /a\rdisallow: /a/%62 c*$ # why\n" +
		"disallow: /b\ndisallow: /b\nallow: /c/index.html\ndisallow: /c\n"
	rules := Parse([]byte(body)).Rules("foo")
	for _, tt := range []struct {
		url  string
		want Verdict
	}{
		{"/a/x", Verdict{true, "/a", 4}},
		{"/a/b%20c", Verdict{false, "/a/%62 c*$", 5}},
		{"/b", Verdict{false, "/b", 6}},
		{"/c/", Verdict{true, "/c/index.html", 8}},
		{"/d", Verdict{true, "", 0}},
		{"/robots.txt", Verdict{true, "", 0}},
	} {
		require.Equal(t, tt.want, rules.Match(tt.url), "%+v", tt)
	}
	require.Equal(t, Verdict{}, FromResponse(503, nil).Rules("foo").Match("/a"))
	require.Equal(t, Verdict{Allowed: true}, Rules{}.Match("/a"))
	require.True(t, Rules{}.Allowed("/a"))
}

func TestDelay(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"5", 5 * time.Second, true},
		{"0", 0, true},
		{"0.5", 500 * time.Millisecond, true},
		{".25", 250 * time.Millisecond, true},
		{"2.", 2 * time.Second, true},
		{"10 # seconds", 10 * time.Second, true},
		{"86399", 86399 * time.Second, true},
		{"86401", MaxDelay, true},
		{strings.Repeat("9", 400), MaxDelay, true},
		{"", 0, false},
		{".", 0, false},
		{"1.2.3", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"0x1p-2", 0, false},
		{"1_0", 0, false},
		{"NaN", 0, false},
		{"Inf", 0, false},
		{"5s", 0, false},
		{"1,5", 0, false},
		{"ten", 0, false},
	} {
		file := Parse([]byte("user-agent: *\ncrawl-delay: " + tt.value + "\ndisallow: /a\n"))
		delay, ok := file.Rules("foo").Delay()
		require.Equal(t, tt.ok, ok, "%+v", tt)
		require.Equal(t, tt.want, delay, "%+v", tt)
		require.False(t, file.Rules("foo").Allowed("/a"), "%+v", tt)
	}
}

func TestDelayOfGroups(t *testing.T) {
	file := Parse([]byte("crawl-delay: 99\nuser-agent: foo\ncrawl-delay: 3\nuser-agent: bar\n" +
		"crawldelay: 7\ncrawl-delay: x\ndisallow: /a\ncrawl-delay: 5\n" +
		"user-agent: foo\ndisallow: /b\nCrawl-Delay 9\n" +
		"user-agent: *\ncrawl delay: 20\nuser-agent: quick\nallow: /\n" +
		"user-agent: own\nallow: /\n"))
	for agent, want := range map[string]time.Duration{
		"foo":   9 * time.Second, // the longest of both groups
		"bar":   7 * time.Second,
		"other": 20 * time.Second,
		"quick": 20 * time.Second,
	} {
		delay, ok := file.Rules(agent).Delay()
		require.True(t, ok, agent)
		require.Equal(t, want, delay, agent)
	}
	_, ok := file.Rules("own").Delay()
	require.False(t, ok, "a group without delay does not inherit that of *")
	_, ok = Rules{}.Delay()
	require.False(t, ok)
}

func TestSitemaps(t *testing.T) {
	file := Parse([]byte("sitemap: https://h.test/A.xml#x\nuser-agent: foo\nSITEMAP:/b.xml\n" +
		"Site-map: https://other.test/c.xml\nsitemap:\nsitemap: /b.xml\ndisallow: /\n"))
	want := []string{"https://h.test/A.xml", "/b.xml", "https://other.test/c.xml"}
	require.Equal(t, want, file.Sitemaps())

	file.Sitemaps()[0] = "changed"
	require.Equal(t, want, file.Sitemaps(), "a File does not change")
	require.Empty(t, FromResponse(503, []byte("sitemap: /a")).Sitemaps())
	require.Empty(t, Parse(nil).Sitemaps())
}
