package robots

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEngineOfGroup pins which groups go to temoto.
func TestEngineOfGroup(t *testing.T) {
	prefixes := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "disallow: /%d/\n", i)
		}
		return b.String()
	}
	for _, tt := range []struct {
		name, rules string
		second      bool
	}{
		{"one prefix", "disallow: /a\n", true},
		{"no rules", "", true},
		{"the most prefixes", prefixes(maxSecond), true},
		{"too many prefixes", prefixes(maxSecond + 1), false},
		{"repeated prefixes count once", prefixes(maxSecond) + prefixes(maxSecond), true},
		{"a star", "disallow: /a\ndisallow: /b*c\n", false},
		{"a star at the end", "disallow: /a*\n", false},
		{"only a star", "disallow: *\n", false},
		{"an end mark", "disallow: /a$\n", false},
		{"an index page", "allow: /index.html\n", false},
		{"a dollar within", "disallow: /a$b\n", true},
		{"an escaped star", "disallow: /a%2Ab\n", true},
		{"a star that no path can meet", "disallow: a*\ndisallow: /b\n", true},
	} {
		set := Parse([]byte("user-agent: *\n" + tt.rules)).Rules("foo").set
		require.Equal(t, tt.second, set.second != nil, tt.name)
	}
}

// requireEnginesAgree asks both engines about a path, where temoto has a say.
func requireEnginesAgree(t *testing.T, rules Rules, url string) (asked bool) {
	t.Helper()
	if rules.set == nil || rules.set.second == nil {
		return false
	}
	path := target(url)
	require.Equal(t, rules.set.own(path).Allowed, rules.set.second.Test(path),
		"engines differ on %q (canonical %q)", url, path)
	return true
}

// causes are the 20 ways in which temoto alone gave wrong verdicts. Each must stay cured, whether
// the engine or what is fed to it is the cure.
var causes = []check{
	{"1 rule outside of a group", "disallow: /x\nuser-agent: *\ndisallow: /a\n", "foo", "/a",
		false},
	{"2 bad crawl-delay", "user-agent: *\ncrawl-delay: soon\ndisallow: /a\n", "foo", "/a", false},
	{"3 comment without blank", "user-agent: *\ndisallow: /a#b\n", "foo", "/ac", false},
	{"4 blank before the colon", "user-agent : *\ndisallow : /a b\n", "foo", "/a b", false},
	{"5 misspelt key", "user-agent: *\ndisalow: /a\n", "foo", "/a", false},
	{"6 crawl-delay between agents", "user-agent: foo\ncrawl-delay: 1\nuser-agent: bar\n" +
		"disallow: /a\n", "foo", "/a", false},
	{"7 version in the token", "user-agent: foo/1.0 x\ndisallow: /a\n", "foo", "/a", false},
	{"8 prefix of the agent", "user-agent: foo\ndisallow: /a\n", "foobar", "/a", true},
	{"9 group without rules", "user-agent: *\ndisallow: /a\nuser-agent: foo", "foo", "/a", true},
	{"10 escapes", "user-agent: *\ndisallow: /%7ea/\u00e9\n", "foo", "/~a/%c3%a9", false},
	{"11 no slash in front", "user-agent: *\ndisallow: a\n", "foo", "/a", true},
	{"12 only a star", "user-agent: *\ndisallow: *\n", "foo", "/a", false},
	{"12 length of a last star", "user-agent: *\nallow: /a\ndisallow: /a*\n", "foo", "/a", false},
	{"13 wildcard within the path", "user-agent: *\ndisallow: /a*b\n", "foo", "/x/a/b", true},
	{"14 dollar within", "user-agent: *\ndisallow: /a$b\n", "foo", "/a$b", false},
	{"15 equal length", "user-agent: *\ndisallow: /a\nallow: /a\n", "foo", "/a", true},
	{"16 length of expressions", "user-agent: *\nallow: /abcdef\ndisallow: /*.c\n", "foo",
		"/abcdef.c", true},
	{"17 index page", "user-agent: *\nallow: /index.html\ndisallow: /\n", "foo", "/", true},
	{"18 NUL", "user-agent: *\ndisallow: /a\x00b\n", "foo", "/a", false},
	{"19 the file itself", "user-agent: *\ndisallow: /\n", "foo", "/robots.txt", true},
	{"20 UTF-16", "\xFF\xFEu\x00s\x00e\x00r\x00-\x00a\x00g\x00e\x00n\x00t\x00:\x00*\x00\n\x00" +
		"d\x00i\x00s\x00a\x00l\x00l\x00o\x00w\x00:\x00/\x00", "foo", "/a", false},
}

func TestRootCauses(t *testing.T) { runChecks(t, causes) }

// A canonical URL costs no allocation, whichever engine decides.
func TestChecksDoNotAllocate(t *testing.T) {
	for _, body := range []string{typicalFile, "user-agent: *\ndisallow: /a/\nallow: /a/b\n"} {
		rules := Parse([]byte(body)).Rules("examplebot")
		for _, url := range []string{
			"https://www.example.com/a/b/c.html?d=e&f=%E3%83%84#g", "/a/", "https://h.test/", "",
		} {
			require.Zero(t, testing.AllocsPerRun(10, func() {
				rules.Allowed(url)
				rules.Match(url)
			}), url)
		}
	}
}

func TestFileIsSafeForConcurrentUse(t *testing.T) {
	file := Parse([]byte("user-agent: a\ndisallow: /a\nuser-agent: *\ndisallow: /*b\n"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			agent, path := "a", "/a"
			if i%2 == 0 {
				agent, path = "other", "/xb"
			}
			for range 50 {
				if rules := file.Rules(agent); rules.Allowed(path) || !rules.Allowed("/c") {
					t.Errorf("wrong verdict for %s", agent)
				}
			}
		})
	}
	wg.Wait()
	require.Same(t, file.Rules("x").set, file.Rules("y").set, "compiled once")
	require.Len(t, file.sets, 2, "not once per agent that asks")
}
