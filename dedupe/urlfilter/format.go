package urlfilter

import (
	"errors"
	"maps"
	"strings"
	"sync/atomic"

	"golang.org/x/net/publicsuffix"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// A Reason says why a URL is rejected, in a few words for logs and reports.
type Reason string

// The reasons of this package. Fine means that the URL is not rejected.
const (
	Fine          Reason = ""
	NotURL        Reason = "not a URL"
	OtherScheme   Reason = "neither http nor https"
	TooLong       Reason = "URL too long"
	UnknownSuffix Reason = "host under no public suffix"
	TooDeep       Reason = "path too deep"
	Repeating     Reason = "path repeats itself"
	ManyParams    Reason = "too many parameters"
)

// Malformed returns the reason for an error of [weburl.Canonical], and Fine for nil.
func Malformed(err error) Reason {
	switch {
	case err == nil:
		return Fine
	case errors.Is(err, weburl.ErrScheme):
		return OtherScheme
	case errors.Is(err, weburl.ErrTooLong):
		return TooLong
	}
	return NotURL
}

// Defaults for zero fields of [Format]. The limits of segments are those of Heritrix, proven for
// twenty years.
const (
	DefaultMaxLength   = 2083 // the limit of old browsers, which sites still observe
	DefaultMaxSegments = 20
	DefaultMaxRepeats  = 3
	DefaultMaxParams   = 30
)

// Format has limits on the form of a URL. The zero Format is for the public web: of 730,000 URLs of
// two crawls and a list of downloads it rejects 183, of which 28 lead to a page. In each field, a
// negative number disables the check.
type Format struct {
	// AnySuffix accepts hosts without a public suffix, such as those of an intranet. false means
	// that only addresses and names under listed suffixes are accepted.
	AnySuffix bool

	// MaxLength is the maximum length of a URL in bytes. 0 means DefaultMaxLength.
	MaxLength int

	// MaxSegments is the maximum number of segments of the path. 0 means DefaultMaxSegments. A
	// path of more than 64 is always too deep.
	MaxSegments int

	// MaxRepeats is how often the same segment may occur in a path. Broken relative links create
	// such paths: /a/b/a/b/a/b. 0 means DefaultMaxRepeats.
	MaxRepeats int

	// MaxParams is the maximum number of query parameters; more than 64 are always too many.
	// MaxRepeats bounds how often the same parameter may have the same value. 0 means
	// DefaultMaxParams.
	MaxParams int
}

// Check returns why a canonical URL is rejected, or Fine.
func (f Format) Check(url string) Reason {
	if exceeds(len(url), f.MaxLength, DefaultMaxLength) {
		return TooLong
	}
	if !f.AnySuffix && !isListed(weburl.Host(url)) {
		return UnknownSuffix
	}
	path, query, _ := strings.Cut(afterHost(url), "?")
	if reason := f.checkPath(path); reason != Fine {
		return reason
	}
	return f.checkQuery(query)
}

// exceeds reports whether n is above a bound, where 0 means the default and a negative bound means
// none.
func exceeds(n, bound, standard int) bool {
	if bound == 0 {
		bound = standard
	}
	return bound > 0 && n > bound
}

// maxParts bounds the work of comparing each part of a path or query with all others.
const maxParts = 64

// parts are the segments of a path or the parameters of a query.
type parts struct {
	array [maxParts]string
	n     int
}

// split cuts text at each separator. It reports whether there are at most maxParts.
func (p *parts) split(text, separator string) bool {
	for more := true; more; p.n++ {
		if p.n == maxParts {
			return false
		}
		p.array[p.n], text, more = strings.Cut(text, separator)
	}
	return true
}

func (p *parts) all() []string { return p.array[:p.n] }

func (f Format) checkPath(path string) Reason {
	if f.cannotExceed(path, "/", f.MaxSegments, DefaultMaxSegments) {
		return Fine
	}
	var segments parts
	fits := segments.split(strings.Trim(path, "/"), "/")
	if !fits || exceeds(segments.n, f.MaxSegments, DefaultMaxSegments) {
		return TooDeep
	}
	if f.repeats(segments.all()) {
		return Repeating
	}
	return Fine
}

// cannotExceed reports whether a text has too few separators to exceed any bound, as in most URLs.
// Counting them is cheaper than splitting.
func (f Format) cannotExceed(text, separator string, bound, standard int) bool {
	n := strings.Count(text, separator) + 1
	return n <= maxParts && !exceeds(n, bound, standard) && !exceeds(n, f.MaxRepeats, DefaultMaxRepeats)
}

// repeats reports whether a part occurs too often.
func (f Format) repeats(parts []string) bool {
	for i, part := range parts {
		count := 1
		for _, other := range parts[:i] {
			if other == part {
				count++
			}
		}
		if exceeds(count, f.MaxRepeats, DefaultMaxRepeats) {
			return true
		}
	}
	return false
}

func (f Format) checkQuery(query string) Reason {
	if query == "" {
		return Fine
	}
	if f.cannotExceed(query, "&", f.MaxParams, DefaultMaxParams) {
		return Fine
	}
	var params parts
	if !params.split(query, "&") || exceeds(params.n, f.MaxParams, DefaultMaxParams) {
		return ManyParams
	}
	if f.repeats(params.all()) {
		return Repeating
	}
	return Fine
}

// isListed reports whether a host is an address, or under a suffix of the public suffix list. The
// list's default rule takes an unknown single label for a suffix; such names are not listed.
func isListed(host string) bool {
	if isAddress(host) {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	known := registries.Load()
	if known != nil && (*known)[last] {
		return true
	}
	if _, icann := publicsuffix.PublicSuffix(last); icann {
		grown := map[string]bool{strings.Clone(last): true}
		if known != nil {
			maps.Copy(grown, *known)
		}
		registries.Store(&grown) // what another goroutine has found meanwhile is found again
		return true
	}
	suffix, icann := publicsuffix.PublicSuffix(host)
	return icann || strings.Contains(suffix, ".")
}

// registries are the top-level domains that were met and are rules of the list: whatever is under
// them is listed. Asking the list costs an allocation and more time than the rest of a check.
var registries atomic.Pointer[map[string]bool]

// isAddress relies on canonical names not ending in a number.
func isAddress(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Contains(host, ":") || last != "" && strings.Trim(last, "0123456789") == ""
}
