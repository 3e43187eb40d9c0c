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
	scope := &urlfilter.Scope{Reach: urlfilter.Domain}
	scope.Add("http://example.com/")
	f := Filter{
		Scope:    scope,
		Include:  []*regexp.Regexp{regexp.MustCompile(`/docs/`)},
		Exclude:  []*regexp.Regexp{regexp.MustCompile(`\.pdf$`)},
		Deny:     deny,
		MaxDepth: 2,
	}
	for _, tt := range []struct {
		name string
		it   Item
		want Reason
	}{
		{"a seed need not match the include pattern", Item{URL: "http://example.com/"}, ""},
		{"a link must match it", Item{URL: "http://example.com/blog", Depth: 1}, NotIncluded},
		{"a matching link", Item{URL: "http://example.com/docs/a", Depth: 1}, ""},
		{"excluded and included", Item{URL: "http://example.com/docs/a.pdf", Depth: 1}, Excluded},
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
