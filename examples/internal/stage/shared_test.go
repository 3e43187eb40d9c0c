package stage

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSharedAddrs(t *testing.T) {
	s := NewSharedAddrs([]netip.Prefix{netip.MustParsePrefix("198.51.100.7/24"), netip.MustParsePrefix("2001:db8::/32")})
	for addr, shared := range map[string]bool{
		"198.51.100.1": true, "::ffff:198.51.100.1": true, "198.51.101.1": false,
		"2001:db8::1": true, "2001:db9::1": false,
	} {
		a := netip.MustParseAddr(addr)
		require.Equal(t, shared, s.Has(a), addr)
		require.Equal(t, !shared, s.Counted(a) == a, addr)
	}
	require.False(t, s.Has(netip.Addr{}))
	var none *SharedAddrs
	require.False(t, none.Has(netip.MustParseAddr("198.51.100.1")))
}
