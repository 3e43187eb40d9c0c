package rep

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Path is where a robots.txt lies on its host (RFC 9309, 2.3).
const Path = "/robots.txt"

// ErrLocate is wrapped by the errors of [Origin].
var ErrLocate = errors.New("robotstxt: no robots.txt for this URL")

// defaultPorts also says which schemes there are: RFC 9309 (2.3) speaks of HTTP and FTP.
var defaultPorts = map[string]string{"http": "80", "https": "443", "ftp": "21"}

// Origin returns scheme, host and port of a URL, in the one form that all URLs of that robots.txt
// share. Most URLs begin with it, and need neither a parser nor an allocation.
func Origin(raw string) (string, error) {
	for _, scheme := range [...]string{"https://", "http://"} {
		rest, ok := strings.CutPrefix(raw, scheme)
		if !ok {
			continue
		}
		host := Leading(rest, isPlainHostByte)
		length := len(host)
		if port, ok := strings.CutPrefix(rest[length:], ":"); ok {
			length += len(":") + len(plainPort(port, scheme))
		}
		ends := length == len(rest) || strings.IndexByte("/?#", rest[length]) >= 0
		if host != "" && ends && rest[length-1] != ':' {
			return raw[:len(scheme)+length], nil
		}
	}
	origin, err := parseOrigin(raw)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrLocate, err)
	}
	return origin, nil
}

// isPlainHostByte has what parseOrigin leaves as it is.
func isPlainHostByte(c byte) bool {
	return 'a' <= c && c <= 'z' || IsDigit(c) || c == '.' || c == '-'
}

// plainPort returns the port at the start of s, or "" if parseOrigin may change or reject it.
func plainPort(s, scheme string) string {
	port := Leading(s, IsDigit)
	usual := scheme == "http://" && port == "80" || scheme == "https://" && port == "443"
	if len(port) > 5 || port == "" || port[0] == '0' || len(port) == 5 && port > "65535" || usual {
		return ""
	}
	return port
}

func parseOrigin(raw string) (string, error) {
	// What follows the host does not matter here, and may be broken.
	if scheme, rest, ok := strings.Cut(raw, "://"); ok {
		host := Leading(rest, func(c byte) bool { return c != '/' && c != '?' && c != '#' })
		raw = scheme + "://" + host
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", err
	}
	usual, known := defaultPorts[u.Scheme]
	if !known {
		return "", fmt.Errorf("scheme %q", u.Scheme)
	}
	// A colon is allowed inside of brackets only, but url.Parse lets some others pass.
	host := lower(u.Hostname())
	if host == "" || strings.Contains(host, ":") && u.Host[0] != '[' {
		return "", fmt.Errorf("host %q", u.Host)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Port() != "" {
		number, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			return "", fmt.Errorf("port %q", u.Port())
		}
		// Without leading zeros, or one port would have many keys.
		if port := strconv.FormatUint(number, 10); port != usual {
			host += ":" + port
		}
	}
	// URL.String escapes what a host may hold beyond ASCII. That parses again, unless it is in a zone.
	origin := (&url.URL{Scheme: u.Scheme, Host: host}).String()
	if again, err := url.Parse(origin); err != nil {
		return "", err
	} else if again.String() != origin {
		return "", fmt.Errorf("host %q", u.Host)
	}
	return origin, nil
}

// lower changes ASCII only. Beyond it, letters that have a lower case in ASCII, such as the sign for
// kelvin, may name another host to the client that makes the request.
func lower(host string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, host)
}
