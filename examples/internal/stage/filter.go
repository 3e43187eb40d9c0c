package stage

import (
	"errors"
	"regexp"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/spinneret-go/spinneret/dedupe"
)

// A Reason is why a link was not followed; "" is none.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	NotURL        Reason = "no URL"
	OtherScheme   Reason = "neither http nor https"
	TooLong       Reason = "URL too long"
	UnknownSuffix Reason = "host under no public suffix"
	Trap          Reason = "looks like a trap (path repeats itself or is too deep)"
	TooDeep       Reason = "too many links from a seed"
	OutOfScope    Reason = "out of scope"
	Excluded      Reason = "excluded by pattern"
	NotIncluded   Reason = "matches no include pattern"
	Denied        Reason = "on the deny list"
	NoFollow      Reason = "page asks for its links not to be followed"
	Duplicate     Reason = "seen before"
)

// Malformed gives the reason for an error of [dedupe.Canonical].
func Malformed(err error) Reason {
	switch {
	case errors.Is(err, dedupe.ErrScheme):
		return OtherScheme
	case errors.Is(err, dedupe.ErrTooLong):
		return TooLong
	}
	return NotURL
}

// Bounds of the path of a sane page. The figures are those of Heritrix, whose operators have lived
// with them for twenty years.
const (
	maxSegments = 20
	maxRepeats  = 3
)

// Format judges a canonical URL by its form alone. Hosts without a public suffix are names that
// no public DNS knows; local says that they are to be taken all the same.
func Format(url string, local bool) Reason {
	if !local && !listed(dedupe.Host(url)) {
		return UnknownSuffix
	}
	if trapped(url) {
		return Trap
	}
	return ""
}

// listed says whether the host lies under a suffix of the public suffix list. The list's default
// rule takes an unknown single label for a suffix; such names are refused.
func listed(host string) bool {
	if _, ok := Literal(host); ok {
		return true
	}
	suffix, icann := publicsuffix.PublicSuffix(host)
	return icann || strings.Contains(suffix, ".")
}

// trapped finds paths that a server makes up for ever: the same segment again and again, as broken
// relative links breed it, or more depth than people build.
func trapped(url string) bool {
	path := url[len(url)-len(pathOf(url)):]
	path, _, _ = strings.Cut(path, "?")
	segments := 0
	counts := make(map[string]int, 8)
	for segment := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		segments++
		counts[segment]++
		if segments > maxSegments || counts[segment] > maxRepeats {
			return true
		}
	}
	return false
}

// pathOf returns what follows the authority.
func pathOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		return rest[slash:]
	}
	return ""
}

// A Filter is the operator's word on what is crawled. The zero Filter lets everything pass. Its
// methods are safe for concurrent use.
type Filter struct {
	Scope    *Scope           // nil lets any host pass
	Include  []*regexp.Regexp // of which a URL must match one, unless it is a seed; empty for all
	Exclude  []*regexp.Regexp // of which it must match none
	Deny     *DenyList        // nil denies nothing
	MaxDepth int              // links from a seed; negative is without bound
	Local    bool             // hosts need no public suffix
}

// Check tells why the item is not to be fetched, or "".
func (f *Filter) Check(it Item) Reason {
	if reason := Format(it.URL, f.Local); reason != "" {
		return reason
	}
	switch {
	case f.MaxDepth >= 0 && it.Depth > f.MaxDepth:
		return TooDeep
	case f.Scope != nil && !f.Scope.Holds(it.URL):
		return OutOfScope
	case matchesAny(f.Exclude, it.URL):
		return Excluded
	case len(f.Include) > 0 && !it.Seeded() && !matchesAny(f.Include, it.URL):
		return NotIncluded
	case f.Deny.Holds(it.URL):
		return Denied
	}
	return ""
}

func matchesAny(patterns []*regexp.Regexp, url string) bool {
	for _, p := range patterns {
		if p.MatchString(url) {
			return true
		}
	}
	return false
}
