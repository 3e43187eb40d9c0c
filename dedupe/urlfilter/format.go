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

// The limits of [Format]. Those of segments are Heritrix's, proven for twenty years.
const (
	maxLength   = 2083 // of a URL in bytes: the limit of old browsers, which sites still observe
	maxSegments = 20
	maxRepeats  = 3 // broken relative links create paths such as /a/b/a/b/a/b
	maxParams   = 30
)

// Format has limits on the form of a URL. Of 730,000 URLs of two crawls and a list of downloads, the
// zero Format rejects 183, of which 28 lead to a page.
type Format struct {
	// AnySuffix accepts hosts without a public suffix, such as those of an intranet. false means
	// that only addresses and names under listed suffixes are accepted.
	AnySuffix bool
}

// Check returns why a canonical URL is rejected, or Fine. A URL has at most 2083 bytes, 20 segments of
// the path, and 30 parameters of the query. No segment and no parameter, with its value, may occur more
// than three times.
func (f Format) Check(url string) Reason {
	if len(url) > maxLength {
		return TooLong
	}
	if !f.AnySuffix && !isListed(weburl.Host(url)) {
		return UnknownSuffix
	}
	path, query, _ := strings.Cut(afterHost(url), "?")
	if many, repeats := check(path, "/", maxSegments); many {
		return TooDeep
	} else if repeats {
		return Repeating
	}
	if many, repeats := check(query, "&", maxParams); many {
		return ManyParams
	} else if repeats {
		return Repeating
	}
	return Fine
}

// check reports whether a text has more parts than permitted, or else one part too often. Slashes at
// both ends of a path separate nothing.
func check(text, separator string, most int) (many, repeats bool) {
	// Most texts have few parts, and counting separators is cheaper than splitting.
	if strings.Count(text, separator) < maxRepeats {
		return false, false
	}
	if separator == "/" {
		text = strings.Trim(text, "/")
	}
	n := strings.Count(text, separator) + 1
	if n > most {
		return true, false
	}
	var array [maxParams]string
	parts := array[:0]
	for part := range strings.SplitSeq(text, separator) {
		count := 1
		for _, other := range parts {
			if other == part {
				count++
			}
		}
		if count > maxRepeats {
			return false, true
		}
		parts = append(parts, part)
	}
	return false, false
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
