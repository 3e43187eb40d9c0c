package fetch

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
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
	// A proxy resolves the name. Only what needs no resolving can be checked.
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		addr, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	if err == nil && !c.opts.Reach.Allows(addr) {
		return &Error{Kind: Blocked, Err: fmt.Errorf("%v is not a %v address", addr, c.opts.Reach)}
	}
	return nil
}
