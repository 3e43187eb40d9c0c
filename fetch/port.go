package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// badPorts are those that the Fetch Standard blocks (2.9): services that could mistake an HTTP
// request for one of their own, such as mail, FTP and IRC.
var badPorts = []uint16{
	0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
	103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
	512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
	995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
	6669, 6679, 6697, 10080,
}

// checkTarget returns why a host and port may not be requested, before the address of the host is
// known. The port is "" if it is the scheme's default.
func (c *Client) checkTarget(host, port string) *Error {
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		if _, bad := slices.BinarySearch(badPorts, uint16(n)); bad {
			return &Error{Kind: Blocked, Err: fmt.Errorf("port %d is not for HTTP", n)}
		}
	}
	if !c.names {
		return nil
	}
	// A proxy resolves the name. Only what needs no resolving can be checked. Dots at the end change
	// nothing for many a resolver, but hide an address from the parser of URLs.
	u, err := weburl.Parse("http://"+strings.TrimRight(host, ".")+"/", nil)
	if err != nil {
		return &Error{Kind: BadURL, Err: err}
	}
	host = u.Host
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		addr, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	if err == nil && !c.opts.Reach.Allows(addr) {
		return &Error{Kind: Blocked, Err: fmt.Errorf("%v is not a %v address", addr, c.opts.Reach)}
	}
	return nil
}

// checkRequest returns why a request of an http.Client may not be sent. A proxy that gets it reads
// where it leads from its target, which net/http takes from three places: they must agree.
func (c *Client) checkRequest(req *http.Request) *Error {
	if !c.names {
		return c.checkTarget(req.URL.Hostname(), req.URL.Port())
	}
	u, err := weburl.Parse("http://"+req.URL.Host+"/", nil)
	if err == nil && strings.ContainsAny(req.URL.Host, `/\?#@`) {
		err = fmt.Errorf("%.40q is not a host", req.URL.Host)
	}
	if err == nil && c.viaProxy(req.URL.Scheme) {
		path := req.URL.Opaque == "" || req.URL.Opaque[0] == '/' && !strings.HasPrefix(req.URL.Opaque, "//")
		if !path || req.Host != "" && !strings.EqualFold(req.Host, req.URL.Host) {
			err = errors.New("a request through a proxy needs Host and URL.Opaque as they are by default")
		}
	}
	if err != nil {
		return &Error{Kind: BadURL, Err: err}
	}
	return c.checkTarget(u.Host, u.Port)
}
