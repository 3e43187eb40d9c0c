package urlfilter

import (
	"errors"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// A Reason is why a URL is left alone, in a few words for logs and reports.
type Reason string

// The reasons of this package. Fine is none.
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
func (Format) Malformed(err error) Reason {
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

// The values that zero fields of [Format] stand for. Those for segments are
// Heritrix's, whose operators have lived with them for twenty years.
const (
	DefaultMaxLength   = 2083 // the limit of old browsers, and so one that sites keep to
	DefaultMaxSegments = 20
	DefaultMaxRepeats  = 3
	DefaultMaxParams   = 30
)

// Format is what a URL must look like. The zero Format is recommended for the public web. In each
// field, a negative number switches the check off.
type Format struct {
	// AnySuffix accepts hosts under no public suffix, such as those of an intranet. false means
	// that only addresses and names under listed suffixes are fine.
	AnySuffix bool

	// MaxLength is the maximum length of a URL in bytes. 0 means DefaultMaxLength.
	MaxLength int

	// MaxSegments is the maximum number of segments of the path. 0 means DefaultMaxSegments. A
	// path of more than 64 is always too deep.
	MaxSegments int

	// MaxRepeats is how often a segment may be in a path, anywhere in it. Broken relative links
	// breed such paths: /a/b/a/b/a/b. 0 means DefaultMaxRepeats.
	MaxRepeats int

	// MaxParams is the maximum number of query parameters; more than 64 are always too many.
	// MaxRepeats bounds how often the same parameter has the same value. 0 means
	// DefaultMaxParams.
	MaxParams int
}

// Check returns why a canonical URL is not fine, or Fine.
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

// exceeds reports whether n is above a bound, where 0 is the default and a negative one is none.
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

// cannotExceed reports whether a text has too few separators for any bound to be exceeded, as most
// have. Counting them is cheaper than cutting.
func (f Format) cannotExceed(text, separator string, bound, standard int) bool {
	n := strings.Count(text, separator) + 1
	return n <= maxParts && !exceeds(n, bound, standard) && !exceeds(n, f.MaxRepeats, DefaultMaxRepeats)
}

// repeats reports whether a part stands among the others too often.
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
	suffix, icann := publicsuffix.PublicSuffix(strings.TrimSuffix(host, "."))
	return icann || strings.Contains(suffix, ".")
}

// isAddress relies on canonical names not ending in a number.
func isAddress(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Contains(host, ":") || last != "" && strings.Trim(last, "0123456789") == ""
}
