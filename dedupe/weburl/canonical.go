package weburl

import (
	"errors"
	"fmt"
	"strings"

	whatwg "github.com/spinneret-go/spinneret/internal/weburl"
)

// MaxLength is the maximum length of a canonical URL in bytes. RFC 9110 (section 4.1) recommends
// that everyone supports at least 8000 bytes, so longer URLs are unreliable. A caller who wants a
// lower limit can check the result.
const MaxLength = 8000

// The errors of this package. Test for them with [errors.Is].
var (
	ErrInvalid = errors.New("weburl: invalid URL")
	ErrScheme  = errors.New("weburl: scheme is neither http nor https")
	ErrTooLong = errors.New("weburl: URL is too long")
)

// Canonical returns the canonical form of an absolute URL:
//
//  1. Parse it by the WHATWG URL Standard. This drops surrounding spaces and all tabs and line
//     breaks, lowercases scheme and host, maps international names to ASCII and IPv4 addresses to
//     four decimal numbers, removes default ports and dot segments, and percent-encodes what must
//     be encoded. A string that browsers reject is [ErrInvalid].
//  2. Reject schemes other than http and https with [ErrScheme].
//  3. Drop the fragment, which is never sent to the server.
//  4. Drop user name and password. A login in a link does not belong to the crawler, and it would
//     make any number of URLs for one page.
//  5. Reject a result longer than [MaxLength] with [ErrTooLong].
//
// Everything else is unchanged: the order of the query, "/?" and "/", %7E and ~, and the case of
// the path may all matter to a server. [Steps] offers more normalization.
func Canonical(rawURL string) (string, error) { return Steps{}.Canonical(rawURL) }

// Canonical does what the function [Canonical] does, with the enabled steps before step 5.
func (s Steps) Canonical(rawURL string) (string, error) {
	u, err := parse(rawURL, nil)
	if err != nil {
		return "", err
	}
	return s.canonical(&u, rawURL)
}

// Resolve returns the canonical form of a link on the page with the URL base, and the errors of
// [Canonical]. Base is the URL of the page or of its base element. It need not be canonical.
func Resolve(base, link string) (string, error) {
	b, err := parse(base, nil)
	if err != nil {
		return "", err
	}
	u, err := parse(link, &b)
	if err != nil {
		return "", err
	}
	return Steps{}.canonical(&u, link)
}

func parse(rawURL string, base *whatwg.URL) (whatwg.URL, error) {
	u, err := whatwg.Parse(rawURL, base)
	if err != nil {
		err = fmt.Errorf("%w: %s", ErrInvalid, strings.TrimPrefix(err.Error(), "weburl: "))
	}
	return u, err
}

// canonical serializes a parsed URL. It returns rawURL itself if that is the result.
func (s Steps) canonical(u *whatwg.URL, rawURL string) (string, error) {
	if !whatwg.IsWeb(u) {
		return "", ErrScheme
	}
	s.apply(u)
	parts := [...]string{u.Scheme, "://", u.Host, "", u.Port, u.Path, "", u.Query}
	if u.Port != "" {
		parts[3] = ":"
	}
	if u.HasQuery {
		parts[6] = "?"
	}
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	switch {
	case length > MaxLength:
		return "", ErrTooLong
	case length == len(rawURL) && isConcatenation(rawURL, parts[:]):
		return rawURL, nil
	}
	return strings.Join(parts[:], ""), nil
}

// isConcatenation reports whether joining the parts gives s.
func isConcatenation(s string, parts []string) bool {
	for _, part := range parts {
		var found bool
		if s, found = strings.CutPrefix(s, part); !found {
			return false
		}
	}
	return s == ""
}
