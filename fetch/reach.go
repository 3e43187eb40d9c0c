package fetch

import (
	"net/netip"
	"slices"
)

// Reach says which addresses a Client may dial.
type Reach uint8

// The choices. The zero Reach is Public.
const (
	Public   Reach = iota // globally routable unicast addresses
	Loopback              // 127.0.0.0/8 and ::1
	Anywhere              // any address at all
)

// String returns the kind of address that r allows, such as "public".
func (r Reach) String() string {
	switch r {
	case Public:
		return "public"
	case Loopback:
		return "loopback"
	}
	return "any"
}

// Allows reports whether addr may be dialed. IPv6 forms that carry an IPv4 address are judged by
// that address where they are still in use (mapped, NAT64), and are not public where they are not
// (6to4, Teredo).
func (r Reach) Allows(addr netip.Addr) bool {
	if !addr.IsValid() {
		return false
	}
	// A zone names an interface of this machine, and no public address needs one.
	if r != Anywhere && addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	switch r {
	case Public:
		return isPublic(addr)
	case Loopback:
		return addr.IsLoopback()
	}
	return r == Anywhere
}

// isPublic follows the IANA registries of special-purpose addresses. For IPv6 it starts from what
// is given out (2000::/3) rather than from what is reserved, so that a range reserved later is
// refused already.
func isPublic(addr netip.Addr) bool {
	if addr.Is4() {
		return !within(addr, special4)
	}
	if nat64.Contains(addr) {
		b := addr.As16()
		return isPublic(netip.AddrFrom4([4]byte(b[12:])))
	}
	return global6.Contains(addr) && !within(addr, special6)
}

func within(addr netip.Addr, prefixes []netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

var (
	global6 = netip.MustParsePrefix("2000::/3")
	// A network without IPv4 reaches it through this prefix, so the address inside decides.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")

	special4 = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),        // this host; Linux takes it for loopback
		netip.MustParsePrefix("10.0.0.0/8"),       // private
		netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT
		netip.MustParsePrefix("127.0.0.0/8"),      // loopback
		netip.MustParsePrefix("169.254.0.0/16"),   // link-local; cloud metadata
		netip.MustParsePrefix("172.16.0.0/12"),    // private
		netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments; cloud metadata
		netip.MustParsePrefix("192.0.2.0/24"),     // documentation
		netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
		netip.MustParsePrefix("192.168.0.0/16"),   // private
		netip.MustParsePrefix("198.18.0.0/15"),    // benchmarking
		netip.MustParsePrefix("198.51.100.0/24"),  // documentation
		netip.MustParsePrefix("203.0.113.0/24"),   // documentation
		netip.MustParsePrefix("224.0.0.0/4"),      // multicast
		netip.MustParsePrefix("240.0.0.0/4"),      // reserved, broadcast
		netip.MustParsePrefix("168.63.129.16/32"), // Azure's host agent, in public space
	}

	special6 = []netip.Prefix{
		netip.MustParsePrefix("2001::/23"),     // protocol assignments: Teredo, ORCHID, benchmarking
		netip.MustParsePrefix("2001:db8::/32"), // documentation
		netip.MustParsePrefix("2002::/16"),     // 6to4
		netip.MustParsePrefix("3fff::/20"),     // documentation
	}
)
