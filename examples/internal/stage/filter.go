package stage

import (
	"regexp"
	"slices"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// A Reason is why a link was not followed; "" means none. Reasons in the form of a URL are in
// urlfilter.
type Reason = urlfilter.Reason

// The reasons that depend on the crawl, in the order in which they are checked.
const (
	TooManyLinks Reason = "too many links from a seed"
	OutOfScope   Reason = "out of scope"
	Excluded     Reason = "excluded by pattern"
	NotIncluded  Reason = "matches no include pattern"
	Denied       Reason = "on the deny list"
	SwitchedOff  Reason = "host is switched off by an override"
	NoSitemaps   Reason = "sitemaps are not read"
	NoFollow     Reason = "page asks for its links not to be followed"
	OtherServer  Reason = "in the sitemap of another server"
	IndexInIndex Reason = "sitemap index in a sitemap index"
	ManySitemaps Reason = "too many sitemaps of one server"
	CrowdedHost  Reason = "many more links than pages of a host may be known"
	ManyHosts    Reason = "many more hosts named by one owner than have answered"
	ManyStrange  Reason = "many pages of a host that only other sites link to"
	Duplicate    Reason = "seen before"
)

// A Filter has the operator's rules for the URLs to crawl. Its methods are safe for concurrent use.
type Filter struct {
	Format   urlfilter.Format
	Scope    *urlfilter.Scope // nil allows any host
	Include  []*regexp.Regexp // a URL must match one, unless it is a seed; empty means all
	Exclude  []*regexp.Regexp // it must match none
	Deny     *urlfilter.List  // nil denies nothing
	Erased   *urlfilter.List  // what was erased on request, which no exception in Deny allows again
	Hosts    *Overrides       // nil means no rules for single hosts
	MaxDepth int              // links from a seed; negative means unlimited
}

// Check returns why the item must not be fetched, or "".
func (f *Filter) Check(it Item) Reason {
	if reason := f.Format.Check(it.URL); reason != urlfilter.Fine {
		return reason
	}
	// A sitemap is not a page, and serves those of its server that the filter allows.
	page := it.Sitemap == nil
	own := !page && Authority(it.URL) == it.Sitemap.Server
	host := f.Hosts.Of(weburl.Host(it.URL))
	if host.Off {
		return SwitchedOff
	}
	switch {
	case host.MaxDepth > 0 && it.Depth > host.MaxDepth:
		return TooManyLinks
	case f.MaxDepth >= 0 && it.Depth > f.MaxDepth:
		return TooManyLinks
	case !own && !f.Scope.Holds(it.URL):
		return OutOfScope
	case matchesAny(f.Exclude, it.URL):
		return Excluded
	case len(f.Include) > 0 && page && !it.Seeded() && !matchesAny(f.Include, it.URL):
		return NotIncluded
	}
	return f.Bars(it.URL) // last: a link is only denied if nothing else excludes it
}

// Bars returns why nothing may be requested from a URL, not even a robots.txt, or "".
func (f *Filter) Bars(url string) Reason {
	switch {
	case f.Hosts.Of(weburl.Host(url)).Off:
		return SwitchedOff
	case f.DeniedBy(url) != "":
		return Denied
	}
	return ""
}

// DeniedBy returns the line that denies a URL, or "".
func (f *Filter) DeniedBy(url string) string {
	for _, list := range [...]*urlfilter.List{f.Deny, f.Erased} {
		if v := list.Match(url); !v.Allowed {
			return v.Entry
		}
	}
	return ""
}

func matchesAny(patterns []*regexp.Regexp, url string) bool {
	return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(url) })
}
