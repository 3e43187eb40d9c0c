package dedupe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// MaxLength is the greatest length, in bytes, of a canonical URL. RFC 9110 (section 4.1) asks
// everybody to support 8000 bytes, so that no longer URL can be relied upon. The bound is that
// generous because a caller can refuse shorter ones, but could not accept longer ones.
const MaxLength = 8000

// What Canonical refuses.
var (
	ErrInvalid = errors.New("dedupe: invalid URL")
	ErrScheme  = errors.New("dedupe: scheme is neither http nor https")
	ErrTooLong = errors.New("dedupe: URL is too long")
)

// Canonical returns the one form of an absolute URL. These are the steps:
//
//  1. Parse it as browsers do, by the WHATWG URL Standard, which drops surrounding spaces and all
//     tabs and line breaks, lowers scheme and host, maps international names to ASCII and IPv4
//     addresses to four decimal numbers, removes default ports and dot segments, and
//     percent-encodes what may not stand bare. A URL that no browser takes is [ErrInvalid].
//  2. Refuse schemes other than http and https with [ErrScheme].
//  3. Drop the fragment, which no server sees.
//  4. Drop user name and password. What others wrote into a link is no login of the crawler's,
//     and it must not make countless URLs of one page.
//  5. Refuse what is now longer than [MaxLength] with [ErrTooLong].
//
// Nothing else changes: the order of the query, "/?" or "/", %7E or ~, and the case of the path
// may all matter to a server. [Steps] has further steps for those who know that they do not.
//
// A URL that is canonical already is returned as it is, without an allocation.
func Canonical(rawURL string) (string, error) { return Steps{}.Canonical(rawURL) }

// Canonical does what the function [Canonical] does, and the steps that are switched on before its
// last one. It is idempotent for each choice of steps.
func (s Steps) Canonical(rawURL string) (string, error) {
	u, err := weburl.Parse(rawURL, nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", ErrScheme
	}
	s.apply(&u)
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

// isConcatenation reports whether s is what joining the parts gives.
func isConcatenation(s string, parts []string) bool {
	for _, part := range parts {
		var found bool
		if s, found = strings.CutPrefix(s, part); !found {
			return false
		}
	}
	return s == ""
}
