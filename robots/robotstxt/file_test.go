package robotstxt

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const manyRecords = "Host: h.test # main\nX-Early: 1\nuser-agent: foo\nX-Foo : a b:c\nnocolon value\n" +
	"user-agent: foo2\nallow: /\nsitemap: /s.xml\nCrawl-Delay: 3\n" +
	"user-agent: *\nNoindex: /a\nLicense: https://h.test/l.xml\nx-empty:\nuser-agent: foo\nx-foo: late\n"

// Records unknown to the package must be accessible, with their lines.
func TestRecordsOfRules(t *testing.T) {
	file := Parse([]byte(manyRecords))
	require.Equal(t, []Record{
		{4, "X-Foo", "a b:c"},
		{5, "nocolon", "value"},
		{9, "Crawl-Delay", "3"},
		{11, "Noindex", "/a"},
		{13, "x-empty", ""},
		{15, "x-foo", "late"},
	}, slices.Collect(file.Rules("foo").Records()), "its two groups: no rule parts * from foo")
	require.Len(t, slices.Collect(file.Rules("other").Records()), 3)
	require.Len(t, slices.Collect(file.Rules("foo2").Records()), 3)
	for range file.Rules("foo").Records() {
		break
	}
}

func TestSitemapURLs(t *testing.T) {
	file := Parse([]byte("sitemap: https://h.test/a.xml\nsitemap: /b.xml\nsitemap: c.xml\n" +
		"sitemap: //other.test/d.xml\nsitemap: h.test/e.xml\nsitemap: HTTPS://h.test/a.xml\n" +
		"sitemap: mailto:x\nsitemap: http://%zz/\nsitemap: file:///etc\nsitemap: https:///f\n"))
	require.Equal(t, []string{
		"https://h.test/a.xml", "https://h.test/b.xml", "https://h.test/c.xml",
		"https://other.test/d.xml", "https://h.test/h.test/e.xml",
	}, slices.Collect(file.SitemapURLs("https://h.test/robots.txt")))
	require.Equal(t, []string{"https://h.test/a.xml"}, slices.Collect(file.SitemapURLs("%")))
}

// TestWhatIsNotKnownIsForbidden: callers that do not check whether a file was fetched must not
// allow anything.
func TestWhatIsNotKnownIsForbidden(t *testing.T) {
	var file *File
	for _, rules := range []Rules{{}, file.Rules("foo")} {
		require.Equal(t, Verdict{}, rules.Match("/a"))
		require.False(t, rules.Allowed("https://h.test/"))
		require.True(t, rules.Allowed("https://h.test/robots.txt"))
		_, delayed := rules.Delay()
		require.False(t, delayed)
		require.Nil(t, rules.File())
		require.Empty(t, slices.Collect(rules.Records()))
	}
	require.Empty(t, file.Sitemaps())
	require.Empty(t, file.String())
	require.Zero(t, file.Size())
}

// TestAgents covers what counts as a crawler's own name. Any other text gets the groups for *.
func TestAgents(t *testing.T) {
	file := Parse([]byte("user-agent: foo\ndisallow: /foo\nuser-agent: MJ12bot\ndisallow: /mj\n" +
		"user-agent: mozilla\ndisallow: /moz\nuser-agent: *\ndisallow: /all\n"))
	for agent, path := range map[string]string{
		"foo":                              "/foo",
		" FOO ":                            "/foo",
		"Foo/1.0":                          "/foo",
		"foo/1.0 bar/2":                    "/foo",
		"Foo (+https://foo.test)":          "/foo",
		"foo(x)":                           "/foo",
		"Mozilla/5.0 (compatible; foo/2)":  "/foo",
		"Mozilla/5.0 (x; compatible;foo)":  "/foo",
		"Mozilla/5.0 (compatible; )":       "/moz",
		"Mozilla/5.0 (X11; Linux) Gecko/1": "/moz",
		"MJ12bot":                          "/mj",
		"mj":                               "/mj",
		"MJ12":                             "/all",
		"Foo Bar":                          "/all",
		"foo bar/1.0":                      "/all",
		"foo, bar":                         "/all",
		"foo*":                             "/all",
		"*":                                "/all",
		"":                                 "/all",
		"f\u00f6o":                         "/all",
	} {
		verdict := file.Rules(agent).Match(path)
		require.False(t, verdict.Allowed, agent)
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
	require.Len(t, file.rules, 2, "not once per agent that asks")
}

// TestAgentsThatShareANameHaveTheirOwnRules: MJ12bot names MJ as well, but not the other way round.
func TestAgentsThatShareANameHaveTheirOwnRules(t *testing.T) {
	file := Parse([]byte("user-agent: MJ12bot\ndisallow: /a\nuser-agent: MJ\ndisallow: /b\n"))
	for range 2 {
		require.True(t, file.Rules("MJ12bot").Allowed("/b"))
		require.False(t, file.Rules("MJ").Allowed("/b"))
		require.False(t, file.Rules("MJ").Allowed("/a"))
	}
}

// A canonical URL costs no allocation.
func TestChecksDoNotAllocate(t *testing.T) {
	for _, body := range []string{typicalFile, "user-agent: *\ndisallow: /a/\nallow: /a/\u00e9\n"} {
		rules := Parse([]byte(body)).Rules("examplebot")
		for _, url := range []string{
			"https://www.example.com/a/b/c.html?d=e&f=%E3%83%84#g", "/a/", "https://h.test/", "",
		} {
			require.Zero(t, testing.AllocsPerRun(10, func() { rules.Match(url) }), url)
		}
	}
}

// TestLinesAreThoseOfTheBody even if all of it is one long line after another.
func TestLinesAreThoseOfTheBody(t *testing.T) {
	body := "#\r\n\r\n" + strings.Repeat("x\n", 1000) + "user-agent: *\r\rdisallow: /a # b\n"
	require.Equal(t, Verdict{false, "/a", 1005}, Parse([]byte(body)).Rules("foo").Match("/a"))
}
