// Package urlfilter says which URLs a crawl leaves alone, by their form or by the operator's word.
//
// [Format] refuses what can hardly be a page: hosts that no public DNS knows, and URLs that a
// server makes up for ever. A [List] holds what the operator denies or allows, and a [Live] list
// can be replaced while others ask it:
//
//	var list urlfilter.Live
//	list.Store(parsed) // again after each change of the file
//	…
//	if why := (urlfilter.Format{}).Check(url); why != urlfilter.Fine {
//		return why
//	}
//	if verdict := list.Match(url); !verdict.Allowed {
//		return "line " + strconv.Itoa(verdict.Line)
//	}
//
// They are the URL Format Filter and the Explicit URL Filter of Ueda et al., "A parallel
// distributed crawler of producer-consumer modules". All URLs are canonical ones, as made by
// package weburl.
//
// # What it does not do
//
// It looks nothing up: neither a host in the DNS nor a page in robots.txt.
package urlfilter

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// A Reason is why a URL is left alone, in a few words for logs and reports.
type Reason string

// The reasons, in the order in which they are looked for. Fine is none.
const (
	Fine          Reason = ""
	NotURL        Reason = "no URL"
	OtherScheme   Reason = "neither http nor https"
	TooLong       Reason = "URL too long"
	UnknownSuffix Reason = "host under no public suffix"
	TooDeep       Reason = "path too deep"
	Repeating     Reason = "path repeats itself"
	ManyParams    Reason = "too many parameters"
	Calendar      Reason = "calendar far from today"
)

// Malformed gives the reason for an error of [weburl.Canonical], and Fine for none.
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

// The values that zero fields of [Format] stand for. Those for segments are Heritrix's, whose
// operators have lived with them for twenty years.
const (
	DefaultMaxLength   = 2083 // what browsers of old took, and so what sites keep to
	DefaultMaxSegments = 20
	DefaultMaxRepeats  = 3
	DefaultMaxParams   = 30
	DefaultYears       = 2
)

// Format is what a URL must look like. The zero Format is recommended for the public web. In each
// field, a negative number switches the check off.
type Format struct {
	// AnySuffix takes hosts that are under no public suffix, such as those of an intranet. false
	// means that only addresses and names under listed suffixes are fine.
	AnySuffix bool

	// MaxLength bounds the bytes of a URL. 0 means DefaultMaxLength.
	MaxLength int

	// MaxSegments bounds the segments of the path. 0 means DefaultMaxSegments. A path of more
	// than 64 is always too deep.
	MaxSegments int

	// MaxRepeats bounds how often one segment stands in a path, at any places. Broken relative
	// links breed such paths: /a/b/a/b/a/b. 0 means DefaultMaxRepeats.
	MaxRepeats int

	// MaxParams bounds the parameters of the query; more than 64 are always too many. How often
	// the same one with the same value stands there, MaxRepeats bounds. 0 means DefaultMaxParams.
	MaxParams int

	// Years bounds how far ahead a date in the URL may lie. Calendars link to the next month for
	// ever. Dates of 100 to 199 years ago are refused, too, as they link to the last one. What lies
	// a century beyond that, or beyond Years, is no date but another number. A date is a segment or
	// a parameter's value that begins with a year and goes on with a month, as in /2031/05 or
	// date=2031-05. 0 means DefaultYears.
	Years int
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

// exceeds applies a bound of which 0 is the default and a negative one is none.
func exceeds(n, bound, standard int) bool {
	if bound == 0 {
		bound = standard
	}
	return bound > 0 && n > bound
}

// maxParts bounds the work of comparing all parts of a path or of a query with all others.
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
	var segments parts
	fits := segments.split(strings.Trim(path, "/"), "/")
	if !fits || exceeds(segments.n, f.MaxSegments, DefaultMaxSegments) {
		return TooDeep
	}
	if f.repeats(segments.all()) {
		return Repeating
	}
	for i, segment := range segments.all() {
		next := ""
		if i+1 < segments.n {
			next = segments.array[i+1]
		}
		if f.isFarDate(segment, next) {
			return Calendar
		}
	}
	return Fine
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
	var params parts
	if !params.split(query, "&") || exceeds(params.n, f.MaxParams, DefaultMaxParams) {
		return ManyParams
	}
	if f.repeats(params.all()) {
		return Repeating
	}
	return f.checkDates(params.all())
}

// checkDates looks for far dates in values, and in years next to months.
func (f Format) checkDates(params []string) Reason {
	year, hasMonth := "", false
	for _, param := range params {
		name, value, _ := strings.Cut(param, "=")
		switch {
		case strings.EqualFold(name, "year") || strings.EqualFold(name, "y"):
			year = value
		case strings.EqualFold(name, "month") || strings.EqualFold(name, "m"):
			hasMonth = true
		case f.isFarDate(value, ""):
			return Calendar
		}
	}
	if hasMonth && f.isFarDate(year, "1") {
		return Calendar
	}
	return Fine
}

// isFarDate reports whether text begins with a year and goes on with a month, or next does, so that
// the date is too far from today. Years that are farther away than a century from there are other
// numbers: whoever follows a calendar from month to month does not get that far.
func (f Format) isFarDate(text, next string) bool {
	if f.Years < 0 || len(text) < 4 {
		return false
	}
	year, ok := digits(text[:4])
	if !ok || !isMonth(text[4:], next) {
		return false
	}
	years := f.Years
	if years == 0 {
		years = DefaultYears
	}
	distance := year - time.Now().Year()
	return years < distance && distance <= years+100 || -200 < distance && distance <= -100
}

// isMonth reports whether a month follows a year: in the rest of its text, as in -05 or _5_31, or
// alone in the text after it.
func isMonth(rest, next string) bool {
	month := next
	if rest != "" {
		if !strings.Contains("-_.", rest[:1]) {
			return false // a longer number, or a name
		}
		month, _, _ = strings.Cut(rest[1:], rest[:1])
	}
	value, ok := digits(month)
	return ok && len(month) <= 2 && 1 <= value && value <= 12
}

// digits returns the value of a short number, which has nothing but digits.
func digits(text string) (value int, ok bool) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		value = value*10 + int(text[i]-'0')
	}
	return value, text != "" && len(text) <= 4
}

// isListed reports whether a host is an address or lies under a suffix of the public suffix list.
// The list's default rule takes an unknown single label for a suffix; such names are not listed.
func isListed(host string) bool {
	if isAddress(host) {
		return true
	}
	suffix, icann := publicsuffix.PublicSuffix(strings.TrimSuffix(host, "."))
	return icann || strings.Contains(suffix, ".")
}

// isAddress relies on it that canonical names do not end in a number.
func isAddress(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Contains(host, ":") || last != "" && strings.Trim(last, "0123456789") == ""
}

// afterHost returns the path and the query.
func afterHost(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		return rest[slash:]
	}
	return ""
}
