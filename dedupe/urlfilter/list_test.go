package urlfilter_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
)

const operatorsList = `
# hosts
example.com
+ good.example.com
BÜCHER.example
192.0.2.1
[2001:db8::1]

# prefixes
https://a.example/dir/
https://a.example/dir/sub/page
https://b.example
+https://a.example/dir/good

=https://c.example/page?a
/[?&]sort=/
+=http://d.example/?sort=1
`

func parse(t testing.TB, text string) *urlfilter.List {
	t.Helper()
	list := new(urlfilter.List)
	require.NoError(t, list.Reload(strings.NewReader(text), "list"))
	return list
}

func TestList(t *testing.T) {
	list := parse(t, operatorsList)
	for _, tt := range []struct {
		name, url string
		allowed   bool
		entry     string
	}{
		{"unnamed", "https://other.example/", true, ""},
		{"host", "https://example.com/x", false, "example.com"},
		{"host with a port", "http://example.com:81/", false, "example.com"},
		{"host with a root dot", "http://example.com./", false, "example.com"},
		{"prefix with a root dot", "https://a.example./dir/x", false, "https://a.example/dir/"},
		{"exact with a root dot", "https://c.example./page?a", false, "=https://c.example/page?a"},
		{"root dot before a port", "https://b.example.:81/", true, ""},
		{"host below", "https://www.example.com/", false, "example.com"},
		{"host with only a common ending", "https://myexample.com/", true, ""},
		{"host above", "https://com/", true, ""},
		{"allowed host", "https://good.example.com/", true, "+ good.example.com"},
		{"host below the allowed one", "https://a.good.example.com/", true, "+ good.example.com"},
		{"international host", "https://xn--bcher-kva.example/", false, "BÜCHER.example"},
		{"address", "http://192.0.2.1/", false, "192.0.2.1"},
		{"host that ends like an address", "http://a.192.0.2.1.example/", true, ""},
		{"IPv6 address", "http://[2001:db8::1]/", false, "[2001:db8::1]"},
		{"prefix", "https://a.example/dir/x", false, "https://a.example/dir/"},
		{"prefix itself", "https://a.example/dir/", false, "https://a.example/dir/"},
		{"prefix of the prefix", "https://a.example/dir", true, ""},
		{"prefix below a prefix", "https://a.example/dir/sub/page2", false, "https://a.example/dir/"},
		{"prefix of another scheme", "http://a.example/dir/x", true, ""},
		{"allowed prefix", "https://a.example/dir/good/x", true, "+https://a.example/dir/good"},
		{"prefix of a host", "https://b.example/x", false, "https://b.example"},
		{"host that begins like the prefix", "https://b.example.org/x", true, ""},
		{"exact", "https://c.example/page?a", false, "=https://c.example/page?a"},
		{"more than exact", "https://c.example/page?a&b", true, ""},
		{"pattern", "http://e.example/?a&sort=1", false, "/[?&]sort=/"},
		{"allowed exactly", "http://d.example/?sort=1", true, "+=http://d.example/?sort=1"},
		{"not a URL", "", true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := list.Match(tt.url)
			require.Equal(t, tt.allowed, got.Allowed)
			require.Equal(t, tt.entry, got.Entry)
			if tt.entry == "" {
				require.Zero(t, got.Line)
			} else {
				require.Equal(t, tt.entry, strings.Split(operatorsList, "\n")[got.Line-1])
			}
		})
	}
}

func TestStarMakesAnAllowlist(t *testing.T) {
	list := parse(t, "*\n+example.com\n")
	require.True(t, list.Match("https://www.example.com/").Allowed)
	require.Equal(t, urlfilter.Verdict{Entry: "*", Line: 1}, list.Match("https://a.example/"))
	twice := parse(t, "*\n*\n").Match("https://a.example/")
	require.Equal(t, urlfilter.Verdict{Entry: "*", Line: 1}, twice, "of two, the first")
	require.True(t, parse(t, "").Match("https://a.example/").Allowed)
	require.True(t, (*urlfilter.List)(nil).Match("https://a.example/").Allowed)
}

func TestBadEntriesAreNamed(t *testing.T) {
	for text, reason := range map[string]string{
		"a b":                   "is neither a host",
		"example.com/path":      "is neither a host",
		"example.com:80":        "",
		"example.com:81":        "is neither a host",
		"/(/":                   "is not a regular expression",
		"//":                    "is neither a host",
		"/private":              "is neither a host", // a path was the host of that name
		"/private/secret/x":     "is neither a host",
		"+/public":              "is neither a host",
		"//example.com":         "is neither a host",
		`\\example.com`:         "is neither a host",
		"ftp://example.com/":    "is not an http(s) URL",
		"=example.com":          "is not an http(s) URL after the equals sign",
		"+":                     "is neither a host",
		"user@example.com":      "",
		"https://exa mple.com/": "is not an http(s) URL",
		"*.example.com":         "the host alone stands for all hosts under it",
		".example.com":          "the host alone stands for all hosts under it",
		"https://*.a.example/":  "the host alone stands for all hosts under it",
		"=http://.a.example/":   "the host alone stands for all hosts under it",
		"example.com.":          "",
		"https://a.example/#!/": "has a fragment",

		"0.0.0.0\tads.example":                  "a tab", // a hosts file: it was the host 0.0.0.0ads.example
		"https://a.example/\tspam":              "a tab",
		"=https://a.example/\tx":                "a tab",
		"=\thttps://a.example/x":                "",
		"https://a.example/ https://b.example/": "has a space", // it was a prefix of neither
		"=https://a.example/x\u00a0why":         "has a space",

		"example.com,":       "has a host that no page has", // lines of other programs, which denied nothing
		`"example.com"`:      "has a host that no page has",
		"!example.com":       "has a host that no page has",
		"-example.com":       "has a host that no page has",
		"++example.com":      "has a host that no page has",
		"https://a.example;": "has a host that no page has",
		"my_host-1.example":  "",

		"=https://a.example/page # why": "has a fragment", // it was that of /page%20
		"=https://a.example/page#top":   "has a fragment",
		"example.com# why":              "has a fragment",
	} {
		err := new(urlfilter.List).Reload(strings.NewReader("# first\n\n"+text+"\n"), "deny.txt")
		if reason == "" {
			require.NoError(t, err, text)
			continue
		}
		var syntax *urlfilter.SyntaxError
		require.ErrorAs(t, err, &syntax, text)
		require.Equal(t, 3, syntax.Line)
		require.Equal(t, text, syntax.Entry)
		require.Contains(t, syntax.Reason, reason)
		require.Contains(t, err.Error(), "urlfilter: deny.txt:3: ")
	}
	for text, reason := range map[string]string{
		strings.Repeat("x", 1<<16):       "line 3: bufio.Scanner: token too long",
		"#" + strings.Repeat("x", 1<<16): "line 3: bufio.Scanner: token too long",
		"a.example\rb.example":           "line 3: a CR within",
		"# comment\rb.example":           "line 3: a CR within",
	} {
		list := new(urlfilter.List)
		require.NoError(t, list.Reload(strings.NewReader("old.example"), "deny.txt"))
		require.ErrorContains(t, list.Reload(strings.NewReader("# first\r\n\r\n"+text+"\n"), "deny.txt"), reason)
		require.False(t, list.Match("http://old.example/").Allowed)
	}
	broken := errors.New("broken")
	err := new(urlfilter.List).Reload(iotest.ErrReader(broken), "deny.txt")
	require.ErrorIs(t, err, broken)
}

// A prefix ends anywhere, so its end is no segment.
func TestPrefixesThatEndInDots(t *testing.T) {
	for prefix, want := range map[string][2]string{ // a URL with the prefix, and one without
		"https://a.example/.":         {"https://a.example/.git/", "https://a.example/index.html"},
		"https://a.example/docs/..":   {"https://a.example/docs/..x", "https://a.example/index.html"},
		"https://a.example/%2e":       {"https://a.example/%2egit", "https://a.example/index.html"},
		"https://a.example/x/../y":    {"https://a.example/yz", "https://a.example/x/"},
		"https://a.example./.":        {"https://a.example/.git/", "https://a.example/index.html"},
		"https://a.example":           {"https://a.example/", "https://a.examplex/"},
		"https://a.example:81":        {"https://a.example:81/", "https://a.example:810/"},
		"https://a.example?":          {"https://a.example/?x", "https://a.example/x"},
		"https://a.example/search?":   {"https://a.example/search?x", "https://a.example/search-results"},
		"https://1.2.3.4":             {"https://1.2.3.4/", "https://1.2.3.4x/"},
		"https://[::1]":               {"https://[::1]/", "https://[::2]/"},
		"https:\\\\a.example\\dir://": {"https://a.example/dir://", "https://a.example/"},
	} {
		require.False(t, parse(t, prefix).Match(want[0]).Allowed, prefix)
		require.True(t, parse(t, prefix).Match(want[1]).Allowed, prefix)
	}
}

// TestPrefixesAgreeWithASimpleSearch compares the lookup with trying all prefixes in turn.
func TestPrefixesAgreeWithASimpleSearch(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		path := func() string {
			b := make([]byte, random.IntN(5))
			for i := range b {
				b[i] = "ab/"[random.IntN(3)]
			}
			return "https://a.example/" + string(b)
		}
		var prefixes []string
		for range random.IntN(12) {
			prefixes = append(prefixes, path())
		}
		list := parse(t, strings.Join(prefixes, "\n"))
		for range 100 {
			url := path() + path()[len("https://a.example/"):]
			want := true
			for _, prefix := range prefixes {
				want = want && !strings.HasPrefix(url, prefix)
			}
			require.Equal(t, want, list.Match(url).Allowed, "%q in %q", url, prefixes)
		}
	}
}

func TestReloadKeepsTheOldListOnErrors(t *testing.T) {
	var list urlfilter.List
	require.True(t, list.Match("https://a.example/").Allowed)
	require.NoError(t, list.Reload(strings.NewReader("a.example"), "list"))
	require.False(t, list.Match("https://a.example/").Allowed)
	var syntax *urlfilter.SyntaxError
	require.ErrorAs(t, list.Reload(strings.NewReader("b.example\na b"), "list"), &syntax)
	require.False(t, list.Match("https://a.example/").Allowed)
	require.True(t, list.Match("https://b.example/").Allowed)
	require.NoError(t, list.Reload(strings.NewReader("\ufeffb.example"), "list"))
	require.True(t, list.Match("https://a.example/").Allowed)
	require.False(t, list.Match("https://b.example/").Allowed)
}

// TestReloadIsAtomic swaps two lists during lookups: each answer must be from one of the lists.
func TestReloadIsAtomic(t *testing.T) {
	texts := []string{"a.example", "\nexample"}
	list := parse(t, texts[0])
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				got := list.Match("https://a.example/")
				if fmt.Sprint(got) != "{false a.example 1}" && fmt.Sprint(got) != "{false example 2}" {
					t.Errorf("%+v", got)
					return
				}
			}
		})
	}
	for i := range 2000 {
		if err := list.Reload(strings.NewReader(texts[i%2]), "list"); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

func FuzzReload(f *testing.F) {
	f.Add(operatorsList, "https://a.example/dir/x")
	f.Fuzz(func(t *testing.T, text, url string) {
		list := new(urlfilter.List)
		if err := list.Reload(strings.NewReader(text), "list"); err != nil {
			var syntax *urlfilter.SyntaxError
			if !errors.As(err, &syntax) {
				t.Errorf("Reload(%q): %v", text, err)
			}
			return
		}
		got := list.Match(url)
		if got.Line == 0 {
			if !got.Allowed || got.Entry != "" {
				t.Errorf("%q: %+v", url, got)
			}
			return
		}
		// The entry alone must decide the same way, if it denies.
		if again := parse(t, got.Entry).Match(url); !got.Allowed && again.Allowed {
			t.Errorf("%q: %+v, but its entry alone gives %+v", url, got, again)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	var text strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&text, "host%d.example\nhttps://other%d.example/dir/\n", i, i)
	}
	list := parse(b, text.String())
	b.ReportAllocs()
	for b.Loop() {
		list.Match("https://www.host7.example.net/page")
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
}

// TestListsTakeEquivalentEscapesForTheSame, however a site or the operator writes them.
func TestListsTakeEquivalentEscapesForTheSame(t *testing.T) {
	var l urlfilter.List
	require.NoError(t, l.Reload(strings.NewReader("http://a.example/~me/\nhttp://a.example./%7Eus/%2e\n=http://a.example/%7Eyou\n/%2Fadmin/\n"), "list"))
	for url, allowed := range map[string]bool{
		"http://a.example/~me/1": false, "http://a.example/%7Eme/1": false, "http://a.example/%7e%6De/1": false,
		"http://a.example/~us/.git": false, "http://a.example/%7Eus/%2Egit": false, "http://a.example/~us/": true,
		"http://a.example/~you": false, "http://a.example/%7Eyou": false, "http://a.example/%7Ethem": true,
		"http://a.example/x%2Fadmin": false, "http://a.example/x/admin": true, "http://a.example/100%": true,
	} {
		require.Equal(t, allowed, l.Match(url).Allowed, url)
	}
}

// TestPatternsSeeNoRoot: a dot of the root at the end of a host hides nothing from a pattern with an escape.
func TestPatternsSeeNoRoot(t *testing.T) {
	var l urlfilter.List
	require.NoError(t, l.Reload(strings.NewReader("/^https://a\\.example/%7E/"), "list"))
	require.False(t, l.Match("https://a.example/%7Ejoe").Allowed)
	require.False(t, l.Match("https://a.example./%7Ejoe").Allowed)
	for _, prefix := range []string{"https://a.example/%", "https://a.example/%7"} {
		require.ErrorContains(t, l.Reload(strings.NewReader(prefix), "list"), "ends within an escape")
	}
	require.Error(t, l.Reload(strings.NewReader(strings.Repeat(" ", 1<<16)+"evil.example"), "list"))
}
