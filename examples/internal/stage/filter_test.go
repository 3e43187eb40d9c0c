package stage

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
)

func TestFilterCheck(t *testing.T) {
	deny := new(urlfilter.List)
	require.NoError(t, deny.Reload(strings.NewReader("bad.example.com"), "list"))
	scope := NewScope(Domain)
	scope.Add("http://example.com/")
	denying := new(DenyList)
	denying.Set(deny)
	f := Filter{
		Scope:    scope,
		Include:  []*regexp.Regexp{regexp.MustCompile(`/docs/`)},
		Exclude:  []*regexp.Regexp{regexp.MustCompile(`\.pdf$`)},
		Deny:     denying,
		MaxDepth: 2,
	}
	for _, tt := range []struct {
		name string
		it   Item
		want Reason
	}{
		{"a seed need not match the include pattern", Item{URL: "http://example.com/"}, ""},
		{"a link has to", Item{URL: "http://example.com/blog", Depth: 1}, NotIncluded},
		{"and this one does", Item{URL: "http://example.com/docs/a", Depth: 1}, ""},
		{"excluded though included", Item{URL: "http://example.com/docs/a.pdf", Depth: 1}, Excluded},
		{"at the last depth", Item{URL: "http://example.com/docs/", Depth: 2}, ""},
		{"beyond it", Item{URL: "http://example.com/docs/", Depth: 3}, TooManyLinks},
		{"a trap", Item{URL: "http://example.com/docs/a/a/a/a", Depth: 1}, urlfilter.Repeating},
		{"a host that the public DNS does not know", Item{URL: "http://intranet.corp/"}, urlfilter.UnknownSuffix},
		{"another domain", Item{URL: "http://example.org/docs/", Depth: 1}, OutOfScope},
		{"a sitemap need not match the include pattern",
			Item{URL: "http://example.com/s.xml", Depth: 1, Sitemap: &Sitemap{Server: "example.com"}}, ""},
		{"nor lie in the scope, if its server does", Item{
			URL: "http://example.org/s.xml", Depth: 1, Sitemap: &Sitemap{Server: "example.org"}}, ""},
		{"a sitemap elsewhere", Item{
			URL: "http://example.org/s.xml", Depth: 1, Sitemap: &Sitemap{Server: "example.com"}}, OutOfScope},
		{"an excluded sitemap", Item{
			URL: "http://example.com/s.pdf", Sitemap: &Sitemap{Server: "example.com"}}, Excluded},
		{"denied", Item{URL: "http://a.bad.example.com/docs/", Depth: 1}, Denied},
	} {
		require.Equal(t, tt.want, f.Check(tt.it), "%s: Check(%+v)", tt.name, tt.it)
	}
	require.Empty(t, (&Filter{}).Check(Item{URL: "http://example.com/"}), "the zero Filter")
}

func TestScope(t *testing.T) {
	const seed = "https://www.example.co.uk/docs/intro.html?x=1"
	for _, tt := range []struct {
		reach Reach
		in    []string
		out   []string
	}{
		{Page, []string{seed}, []string{"https://www.example.co.uk/docs/"}},
		{
			Prefix,
			[]string{"https://www.example.co.uk/docs/", "https://www.example.co.uk/docs/a/b?c=/"},
			[]string{
				"https://www.example.co.uk/", "https://www.example.co.uk/docs",
				"https://www.example.co.uk/other?x=/docs/", "https://other.example.co.uk/docs/",
			},
		},
		{
			Host,
			[]string{"https://www.example.co.uk/", "http://www.example.co.uk/any"},
			[]string{"https://example.co.uk/", "https://www.example.co.uk:8443/"},
		},
		{
			Domain,
			[]string{"https://example.co.uk/", "http://a.b.example.co.uk/"},
			[]string{"https://other.co.uk/", "https://example.com/"},
		},
		{Any, []string{"http://anything.example/"}, nil},
	} {
		s := NewScope(tt.reach)
		if tt.reach != Any {
			require.False(t, s.Holds(seed), "%s: empty scope", tt.reach)
		}
		s.Add(seed)
		for _, url := range append(tt.in, seed) {
			require.True(t, s.Holds(url), "%s holds %s", tt.reach, url)
		}
		for _, url := range tt.out {
			require.False(t, s.Holds(url), "%s holds %s", tt.reach, url)
		}
	}
}

func TestParseReach(t *testing.T) {
	for _, r := range []Reach{Page, Prefix, Host, Domain, Any} {
		got, err := ParseReach(string(r))
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
	_, err := ParseReach("everything")
	require.ErrorContains(t, err, "want page, prefix, host, domain or any")
}

func TestSeed(t *testing.T) {
	for text, want := range map[string]string{
		"www.example.org":          "https://www.example.org/",
		" HTTP://Example.ORG/a#b ": "http://example.org/a",
		"localhost:8080/x":         "http://localhost:8080/x",
		"127.0.0.1":                "http://127.0.0.1/",
		"[::1]:8080":               "http://[::1]:8080/",
	} {
		got, err := Seed(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "http://", "ftp://a.example/", "two words.example", "mailto:me@a.example", ":"} {
		_, err := Seed(text)
		require.Error(t, err, text)
	}
}

func TestSeedsSkipsWhatIsNone(t *testing.T) {
	var bad []int
	urls, err := Seeds(strings.NewReader("# list\na.example\n\nhttp://\nb.example/x\n"),
		func(line int, err error) { bad = append(bad, line) })
	require.NoError(t, err)
	require.Equal(t, []string{"https://a.example/", "https://b.example/x"}, urls)
	require.Equal(t, []int{4}, bad)
}
