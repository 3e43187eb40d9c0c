package stage

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSharedAddressesByEvidence: many unrelated hosts make an address shared; many hosts of one
// owner, or those of a small server, do not.
func TestSharedAddressesByEvidence(t *testing.T) {
	network, farm, small := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"),
		netip.MustParseAddr("192.0.2.3")
	s := NewSharedAddrs([]netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, DefaultSharedAfter)
	for n := range DefaultSharedAfter {
		require.False(t, s.Has(network), n)
		require.False(t, s.Saw(farm, fmt.Sprintf("h%d.farm.org", n), 1, false))
		changed := s.Saw(network, fmt.Sprintf("www.site%d.org", n), 1, false)
		require.Equal(t, n == DefaultSharedAfter-1, changed)
		s.Saw(network, fmt.Sprintf("shop.site%d.org", n), 1, false) // a domain counts once
	}
	for n := range DefaultSharedAfter - 1 {
		require.False(t, s.Saw(small, fmt.Sprintf("site%d.org", n), 1, false))
		require.False(t, s.Saw(small, fmt.Sprintf("dead%d.org", n), 1, true), "a failure is not evidence")
	}
	require.True(t, s.Has(network))
	require.True(t, s.Has(netip.AddrFrom16(network.As16())), "mapped into IPv6")
	require.Equal(t, netip.Addr{}, s.Counted(network))
	require.False(t, s.Has(farm))
	require.False(t, s.Has(small))
	require.Equal(t, small, s.Counted(small))
	require.True(t, s.Has(netip.MustParseAddr("198.51.100.7")), "by the operator's ranges")

	spread := netip.MustParseAddr("192.0.2.4")
	for n := range DefaultSharedAfter / spreadShare {
		require.False(t, s.Has(spread), n)
		s.Saw(spread, fmt.Sprintf("site%d.org", n), 2, false)
	}
	require.True(t, s.Has(spread), "fewer suffice if their names resolve to several addresses")
	never := NewSharedAddrs(nil, 0)
	for n := range 2 * DefaultSharedAfter {
		never.Saw(network, fmt.Sprintf("www.site%d.org", n), 2, false)
	}
	require.False(t, never.Has(network))
}

// TestFailingSharedAddressIsOneMachine, and remains one.
func TestFailingSharedAddressIsOneMachine(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.1")
	s := NewSharedAddrs(nil, 16)
	for n := range 16 {
		s.Saw(addr, fmt.Sprintf("site%d.org", n), 1, false)
	}
	for n := range 10 * troubleAnswers {
		s.Saw(addr, "site1.org", 1, n%(2*troubleShare) == 0)
		require.True(t, s.Has(addr), "some failures are those of single hosts")
	}
	for n := range 2 * troubleAnswers {
		s.Saw(addr, fmt.Sprintf("site%d.org", n%16), 1, n%(troubleShare-1) == 0)
	}
	require.False(t, s.Has(addr))
	for n := range 100 {
		require.False(t, s.Saw(addr, fmt.Sprintf("site%d.org", n), 1, false))
	}
	require.False(t, s.Has(addr))
}

// TestOneOwnerCannotDelayItsNeighbors: a farm whose names all fail says nothing about a network.
func TestOneOwnerCannotDelayItsNeighbors(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.1")
	for _, after := range []int{2, 16, DefaultSharedAfter} {
		s := NewSharedAddrs(nil, after)
		for n := range after {
			s.Saw(addr, fmt.Sprintf("site%d.org", n), 1, false)
		}
		require.True(t, s.Has(addr))
		for n := range 10 * troubleAnswers {
			require.False(t, s.Saw(addr, fmt.Sprintf("h%d.farm.org", n), 1, true))
			s.Saw(addr, fmt.Sprintf("site%d.org", n%after), 1, false)
		}
		require.True(t, s.Has(addr), after)
		for n := 0; s.Has(addr); n++ {
			require.Less(t, n, 2*troubleAnswers, "many owners are a machine in trouble")
			s.Saw(addr, fmt.Sprintf("site%d.org", n%after), 1, true)
		}
	}
}

// TestEvidenceIsBounded: evidence is dropped for other addresses, but decided ones are kept.
func TestEvidenceIsBounded(t *testing.T) {
	s := NewSharedAddrs(nil, 2)
	decided := netip.MustParseAddr("192.0.2.1")
	s.Saw(decided, "a.org", 1, false)
	s.Saw(decided, "b.org", 1, false)
	s.known += maxTenants - 10 // of addresses that would take long to fill
	addr := netip.MustParseAddr("10.0.0.0")
	for range 1000 {
		addr = addr.Next()
		s.Saw(addr, "a.org", 1, false)
		require.LessOrEqual(t, s.known, maxTenants)
	}
	require.LessOrEqual(t, len(s.tenants), 12)
	require.True(t, s.Has(decided))
}

// TestFreeNamesAreNotEvidence: with any number of them, an address stays one machine.
func TestFreeNamesAreNotEvidence(t *testing.T) {
	victim := netip.MustParseAddr("192.0.2.1")
	s := NewSharedAddrs(nil, DefaultSharedAfter)
	for _, names := range []string{
		"h%d.attacker.org", "a%d.github.io", "a%d.duckdns.org", "a%d.b%[1]d.blogspot.com", "a%d.uk.com",
		"a.b%d", "a%d.example", "a%d.localhost", "192.0.2.%d", "[2001:db8::%d]",
	} {
		for n := range 4 * DefaultSharedAfter {
			require.False(t, s.Saw(victim, fmt.Sprintf(names, n), 2, false), names)
		}
	}
	require.False(t, s.Has(victim))
	require.Equal(t, 2*5, s.known, "five owners, and all have names with several addresses")

	// Nor do they delay the neighbors at a shared address.
	for n := range DefaultSharedAfter {
		s.Saw(victim, fmt.Sprintf("site%d.org", n), 1, false)
	}
	require.True(t, s.Has(victim))
	for n := range 10 * troubleAnswers {
		require.False(t, s.Saw(victim, fmt.Sprintf("a%d.duckdns.org", n), 1, true))
	}
	require.True(t, s.Has(victim))
}
