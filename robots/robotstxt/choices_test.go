package robotstxt

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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

// The reason must point to the line that a person would change.
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
	require.Equal(t, Verdict{Allowed: true}, Parse(nil).Rules("foo").Match("/a"))
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
	require.Empty(t, Parse(nil).Sitemaps())
}
