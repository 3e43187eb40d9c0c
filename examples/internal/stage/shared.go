package stage

import (
	"net/netip"
	"slices"
)

// SharedAddrs are ranges of addresses that unrelated hosts share, such as those of a content delivery
// network. Each of these hosts has its own delay, and the address has none. Only the operator says which
// they are: whoever owns names can let any number of them resolve to somebody else's server, so what
// answers there is no evidence. A nil one has none. Its methods are safe for concurrent use.
type SharedAddrs struct {
	ranges map[netip.Prefix]bool
	bits   []int // that the ranges have
}

// NewSharedAddrs returns the ranges as a table.
func NewSharedAddrs(ranges []netip.Prefix) *SharedAddrs {
	s := &SharedAddrs{ranges: map[netip.Prefix]bool{}}
	for _, r := range ranges {
		s.ranges[r.Masked()] = true
		if !slices.Contains(s.bits, r.Bits()) {
			s.bits = append(s.bits, r.Bits())
		}
	}
	return s
}

// Has reports whether an address is shared.
func (s *SharedAddrs) Has(addr netip.Addr) bool {
	if s == nil {
		return false
	}
	addr = addr.Unmap()
	for _, bits := range s.bits {
		if r, err := addr.Prefix(bits); err == nil && s.ranges[r] {
			return true
		}
	}
	return false
}

// Counted returns the address if its hosts share a delay, and the zero Addr if they do not.
func (s *SharedAddrs) Counted(addr netip.Addr) netip.Addr {
	if s.Has(addr) {
		return netip.Addr{}
	}
	return addr
}
