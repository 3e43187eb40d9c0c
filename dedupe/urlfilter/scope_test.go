package urlfilter_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
)

func TestScope(t *testing.T) {
	const seed = "https://www.example.co.uk/docs/intro.html?x=1"
	for _, tt := range []struct {
		reach   urlfilter.Reach
		in, out []string
	}{
		{urlfilter.Page, []string{seed}, []string{"https://www.example.co.uk/docs/"}},
		{
			urlfilter.Prefix,
			[]string{"https://www.example.co.uk/docs/", "https://www.example.co.uk/docs/a/b?c=/"},
			[]string{
				"https://www.example.co.uk/", "https://www.example.co.uk/docs", "http://www.example.co.uk/docs/",
				"https://www.example.co.uk/other?x=/docs/", "https://other.example.co.uk/docs/",
			},
		},
		{
			urlfilter.Host,
			[]string{"https://www.example.co.uk/", "http://www.example.co.uk/any"},
			[]string{"https://example.co.uk/", "https://www.example.co.uk:8443/"},
		},
		{
			urlfilter.Domain,
			[]string{"https://example.co.uk/", "http://a.b.example.co.uk/"},
			[]string{"https://other.co.uk/", "https://example.com/"},
		},
		{urlfilter.Any, []string{"http://anything.example/"}, nil},
		{"", []string{"http://anything.example/"}, nil},
	} {
		s := &urlfilter.Scope{Reach: tt.reach}
		require.Equal(t, tt.out == nil, s.Holds(seed), "%s: empty scope", tt.reach)
		s.Add("http://192.0.2.1/")
		s.Add(seed)
		for _, url := range append(tt.in, seed) {
			require.True(t, s.Holds(url), "%s holds %s", tt.reach, url)
		}
		for _, url := range tt.out {
			require.False(t, s.Holds(url), "%s holds %s", tt.reach, url)
		}
	}
	var none *urlfilter.Scope
	none.Add(seed)
	require.True(t, none.Holds(seed))
}

// TestLongPathsDoNotAllocate looks up a path with 3,900 directories, of which only those no longer
// than the seed's matter. Allocations stand in for quadratic work.
func TestLongPathsDoNotAllocate(t *testing.T) {
	s := &urlfilter.Scope{Reach: urlfilter.Prefix}
	s.Add("https://example.com/docs/")
	url := "https://example.com/" + strings.Repeat("d/", 3900)
	require.Zero(t, testing.AllocsPerRun(10, func() { s.Holds(url) }))
	require.False(t, s.Holds(url))
	require.True(t, s.Holds("https://example.com/docs/"+strings.Repeat("d/", 3900)))
}

func TestReachIsAFlag(t *testing.T) {
	var s urlfilter.Scope
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(new(strings.Builder))
	flags.TextVar(&s.Reach, "scope", urlfilter.Host, "how far to go")
	require.Equal(t, urlfilter.Host, s.Reach)
	for _, reach := range []urlfilter.Reach{
		urlfilter.Page, urlfilter.Prefix, urlfilter.Host, urlfilter.Domain, urlfilter.Any,
	} {
		require.NoError(t, flags.Parse([]string{"-scope", string(reach)}))
		require.Equal(t, reach, s.Reach)
	}
	err := flags.Parse([]string{"-scope", "everything"})
	require.ErrorContains(t, err, "want page, prefix, host, domain or any")
}

func TestSeed(t *testing.T) {
	for text, want := range map[string]string{
		"www.example.org":           "https://www.example.org/",
		" HTTP://Example.ORG/a#b ":  "http://example.org/a",
		"example.org:8080":          "https://example.org:8080/",
		"localhost:8080/x":          "http://localhost:8080/x",
		"127.0.0.1":                 "http://127.0.0.1/",
		"LOCALHOST:443":             "http://localhost:443/",
		"www.localhost":             "http://www.localhost/",
		"localhosting.example":      "https://localhosting.example/",
		"localhost.example":         "https://localhost.example/",
		"127.example.org":           "https://127.example.org/",
		"[::1]:8080":                "http://[::1]:8080/",
		"example.org/Help:Contents": "https://example.org/Help:Contents",
		"example.org:80/http://x":   "https://example.org:80/http://x",
		"example.org?x=http://y":    "https://example.org/?x=http://y",
		"example.org#a:b":           "https://example.org/",
		"//example.org/a":           "https://example.org/a",
	} {
		got, err := urlfilter.Seed(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "http://", "ftp://a.example/", "two words.example", "mailto:me@a.example", ":",
		"/news", "/tmp/seeds.txt", "./seeds.txt", "../seeds.txt", "a.example,", "'a.example'", "~/seeds.txt",
		"///tmp/seeds.txt", `\tmp\seeds.txt`, `\\server\seeds.txt`,
	} {
		_, err := urlfilter.Seed(text)
		require.ErrorContains(t, err, fmt.Sprintf("%q", text))
	}
}

func TestSeedsReportsEachBadLine(t *testing.T) {
	text := "\ufeff# list\n a.example\r\n\nhttp://\nb.example/x\nmailto:c\n"
	urls, err := urlfilter.Seeds(strings.NewReader(text), "seeds.txt")
	require.Equal(t, []string{"https://a.example/", "https://b.example/x"}, urls)
	require.EqualError(t, err, "urlfilter: seeds.txt:4: \"http://\" is not an http(s) URL\n"+
		"urlfilter: seeds.txt:6: \"mailto:c\" is not an http(s) URL")

	urls, err = urlfilter.Seeds(strings.NewReader("a.example/x # why\nb.example/#top\n"), "f")
	require.Equal(t, []string{"https://b.example/"}, urls, "not /x%20")
	require.ErrorContains(t, err, "f:1: \"a.example/x # why\" has a space")

	urls, err = urlfilter.Seeds(strings.NewReader("a.example/\t0.5\nb.example/x \t# why\n\tc.example\t\n"), "f")
	require.Equal(t, []string{"https://c.example/"}, urls, "neither /0.5 nor /x%20")
	require.ErrorContains(t, err, "f:1: \"a.example/\\t0.5\" has a space or a tab")
	require.ErrorContains(t, err, "f:2: ")

	urls, err = urlfilter.Seeds(strings.NewReader("a.example/ b.example/\na.example,\nc.example\n"), "f")
	require.Equal(t, []string{"https://c.example/"}, urls, "neither /%20b.example/ nor the host with a comma")
	require.ErrorContains(t, err, "f:2: ")

	for _, end := range []string{"\n", "\r\n"} {
		long := strings.Repeat("x", 1<<16-3) // the longest line
		text := strings.Join([]string{"a.example", long, "#" + long, "", "b.example", "no:", "c.example"}, end)
		for _, r := range []io.Reader{strings.NewReader(text), iotest.HalfReader(strings.NewReader(text))} {
			urls, err = urlfilter.Seeds(r, "f")
			require.Equal(t, []string{"https://a.example/", "https://b.example/", "https://c.example/"}, urls, "%q", end)
			var numbers []int
			for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
				var syntax *urlfilter.SyntaxError
				require.ErrorAs(t, err, &syntax)
				numbers = append(numbers, syntax.Line)
			}
			require.Equal(t, []int{2, 6}, numbers, "%q", end)
		}
		for _, bad := range []string{long + "xxx", "#" + long + long, "b.example\rc.example", "#\rc.example"} {
			urls, err = urlfilter.Seeds(strings.NewReader("a.example"+end+bad+end+"d.example"), "f")
			require.Equal(t, []string{"https://a.example/"}, urls)
			require.ErrorContains(t, err, "urlfilter: read seeds f: line 2: ")
			require.False(t, errors.As(err, new(*urlfilter.SyntaxError)), "it cannot be skipped")
		}
	}
}
