package robots

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// ErrLocate is wrapped by the errors of [Locate].
var ErrLocate = errors.New("robots: no robots.txt for this URL")

// defaultPorts also says which schemes there are: RFC 9309 (2.3) speaks of HTTP and FTP, and
// for others nobody could say how to fetch a robots.txt.
var defaultPorts = map[string]string{"http": "80", "https": "443", "ftp": "21"}

// Locate returns where the robots.txt lies that holds for a URL (RFC 9309, 2.3): on the same
// scheme, host and port. Equal results mean that one file holds for both URLs, so the result
// is also the key to keep a File under.
//
// Scheme and host come in lower case, without user, path, query and default port. The url must
// be absolute, with the scheme http, https or ftp. A host name is not mapped to Punycode:
// give it in the form in which it will be requested.
func Locate(url string) (robotsURL string, err error) {
	robotsURL, err = locate(url)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrLocate, err)
	}
	return robotsURL, nil
}

// locate does the work of Locate, whose parameter hides the package url.
func locate(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", err
	}
	usual, known := defaultPorts[u.Scheme]
	if !known {
		return "", fmt.Errorf("scheme %q", u.Scheme)
	}
	// A colon is allowed inside of brackets only, but url.Parse lets some others pass.
	host := strings.ToLower(u.Hostname())
	if host == "" || strings.Contains(host, ":") && u.Host[0] != '[' {
		return "", fmt.Errorf("host %q", u.Host)
	}
	port, err := cleanPort(u.Port())
	if err != nil {
		return "", err
	}
	switch {
	case port != "" && port != usual:
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	// URL.String escapes what a host may hold beyond ASCII, so the result parses again.
	found := url.URL{Scheme: u.Scheme, Host: host, Path: ownPath}
	return found.String(), nil
}

// cleanPort drops leading zeros, with which one port would have many keys.
func cleanPort(port string) (string, error) {
	if port == "" {
		return "", nil
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", fmt.Errorf("port %q", port)
	}
	return strconv.FormatUint(number, 10), nil
}
