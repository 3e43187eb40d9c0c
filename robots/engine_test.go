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
