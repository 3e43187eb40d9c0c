package crawl

import (
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// A filter decides which URLs the operator wants to be crawled, by the crawl's options and the
// operator's settings. Its methods are safe for concurrent use.
type filter struct {
	format   urlfilter.Format
	scope    *urlfilter.Scope
	deny     *urlfilter.List
	maxDepth int
}

// filter builds the filter of a crawl with these settings.
func (o *Options) filter(s Settings) (*filter, error) {
	f := &filter{
		format: urlfilter.Format{AnySuffix: o.Loopback},
		scope:  &urlfilter.Scope{}, deny: &urlfilter.List{}, maxDepth: o.MaxDepth,
	}
	reach := o.Scope
	if s.Scope != "" {
		reach = s.Scope
	}
	if err := f.scope.Reach.UnmarshalText([]byte(reach)); err != nil {
		return nil, err
	}
	for _, seeds := range [][]string{o.Seeds, s.Seeds} {
		for _, seed := range seeds {
			f.scope.Add(seed)
		}
	}
	deny := strings.Join(append(append([]string{}, o.Deny...), s.Deny...), "\n")
	if err := f.deny.Reload(strings.NewReader(deny), "deny list"); err != nil {
		return nil, err
	}
	return f, nil
}

// check returns why a page or a sitemap is not wanted, or "".
func (f *filter) check(it message.Item) urlfilter.Reason {
	if why := f.format.Check(it.URL); why != urlfilter.Fine {
		return why
	}
	// A sitemap on another server is allowed if it belongs to a server that passed the filter.
	own := it.Kind == message.Sitemap && stage.Authority(it.URL) == it.For
	switch {
	case f.maxDepth >= 0 && int(it.Depth) > f.maxDepth:
		return stage.TooManyLinks
	case !own && !f.scope.Holds(it.URL):
		return stage.OutOfScope
	case f.denies(it.URL):
		return stage.Denied
	}
	return urlfilter.Fine
}

// denies reports whether a URL must not be requested for any purpose.
func (f *filter) denies(url string) bool { return !f.deny.Match(url).Allowed }
