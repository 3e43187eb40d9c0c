package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

func TestReach(t *testing.T) {
	tests := []struct {
		name  string
		addrs []string
		want  fetch.Reach // the strictest that allows them
	}{
		{"public", []string{"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255",
			"100.128.0.0", "126.255.255.255", "128.0.0.0", "172.15.255.255", "172.32.0.0",
			"192.0.1.0", "192.31.196.1", "198.17.255.255", "198.20.0.0", "223.255.255.255",
			"2001:200::", "2606:4700::1111", "2a00:1450:4001::1", "3ffe:ffff::1", "2003::1"}, fetch.Public},
		{"public, in a mapped form in use", []string{"::ffff:1.1.1.1", "64:ff9b::1.1.1.1"},
			fetch.Public},
		{"loopback", []string{"127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"},
			fetch.Loopback},
		{"this host", []string{"0.0.0.0", "0.255.255.255", "::"}, fetch.Anywhere},
		{"private", []string{"10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255",
			"192.168.0.0", "192.168.255.255", "fc00::", "fdff::1", "fec0::1"}, fetch.Anywhere},
		{"carrier-grade NAT", []string{"100.64.0.0", "100.127.255.255"}, fetch.Anywhere},
		{"link-local", []string{"169.254.0.1", "fe80::1", "fe80::1%eth0", "febf::1"}, fetch.Anywhere},
		{"cloud metadata", []string{"169.254.169.254", "192.0.0.192", "100.100.100.200",
			"168.63.129.16", "fd00:ec2::254"}, fetch.Anywhere},
		{"multicast and broadcast", []string{"224.0.0.1", "239.255.255.255", "240.0.0.1",
			"255.255.255.255", "ff02::1", "ff0e::1"}, fetch.Anywhere},
		{"documentation and benchmarking", []string{"192.0.2.1", "198.51.100.1", "203.0.113.1",
			"198.18.0.1", "198.19.255.255", "2001:db8::1", "3fff::1", "2001:2::1"}, fetch.Anywhere},
		{"6to4 and Teredo, whatever they carry", []string{"2002:101:101::1", "2002:7f00:1::1",
			"2001::1", "192.88.99.1"}, fetch.Anywhere},
		{"private, in a mapped form in use", []string{"::ffff:10.0.0.1",
			"::ffff:169.254.169.254", "64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1",
			"64:ff9b::169.254.169.254"}, fetch.Anywhere},
		{"local NAT64, IPv4-compatible, discard-only", []string{"64:ff9b:1::1.1.1.1", "::1.1.1.1",
			"100::1", "5f00::1", "4000::1"}, fetch.Anywhere},
		{"a public address with a zone", []string{"2606:4700::1111%eth0"}, fetch.Anywhere},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, a := range tt.addrs {
				addr := netip.MustParseAddr(a)
				for _, r := range []fetch.Reach{fetch.Public, fetch.Loopback, fetch.Anywhere} {
					want := r == tt.want || r == fetch.Anywhere
					require.Equal(t, want, r.Allows(addr), "%v.Allows(%v)", r, addr)
				}
			}
		})
	}
	require.False(t, fetch.Anywhere.Allows(netip.Addr{}), "the zero Addr is not an address")
}

var errDialed = errors.New("dialed")

// recordDial returns a Dial that fails and records the address.
func recordDial(dialed *[]string) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, _, addr string) (net.Conn, error) {
		*dialed = append(*dialed, addr)
		return nil, errDialed
	}
}

func TestOnlyAllowedAddressesAreDialed(t *testing.T) {
	tests := []struct {
		name  string
		url   string
		addrs []string // of the host
		want  []string // dialed
	}{
		{"a public name", "http://a.test/", []string{"1.1.1.1"}, []string{"1.1.1.1:80"}},
		{"a name with a private address", "http://a.test/", []string{"10.0.0.1"}, nil},
		{"private and public addresses", "https://a.test/", []string{"127.0.0.1", "::1", "1.1.1.1"},
			[]string{"1.1.1.1:443"}},
		{"mapped addresses", "http://a.test/", []string{"::ffff:127.0.0.1", "::ffff:1.1.1.1"},
			[]string{"1.1.1.1:80"}},
		{"four addresses are enough", "http://a.test:8080/",
			[]string{"1.1.1.1", "2606:4700::1", "10.0.0.1", "1.1.1.3", "1.1.1.4", "1.1.1.5"},
			[]string{"1.1.1.1:8080", "[2606:4700::1]:8080", "1.1.1.3:8080", "1.1.1.4:8080"}},
		{"an address", "http://127.0.0.1/", nil, nil},
		{"an address in an unusual form", "http://0x7f.1/", nil, nil},
		{"one number", "http://2130706433/", nil, nil},
		{"cloud metadata", "http://169.254.169.254/latest/meta-data/", nil, nil},
		{"an IPv6 address", "http://[::1]/", nil, nil},
		{"a mapped address", "http://[::ffff:127.0.0.1]/", nil, nil},
		{"a public address", "http://[2606:4700::1]:81/", nil, []string{"[2606:4700::1]:81"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var dialed []string
			c := newClient(t, fetch.Options{
				UserAgent: "testbot (+http://a.test/)",
				Resolve:   resolveTo(tt.addrs...),
				Dial:      recordDial(&dialed),
			})
			e := fails(t, c, tt.url)
			require.Equal(t, tt.want, dialed)
			if tt.want == nil {
				require.Equal(t, fetch.Blocked, e.Kind)
				require.False(t, e.Temporary())
				return
			}
			require.Equal(t, fetch.Connect, e.Kind)
			require.ErrorIs(t, e, errDialed)
			require.Equal(t, tt.want[0], e.Addr.String(), "the first address is reported")
		})
	}
}

// TestBlockedNamesTheAddress: resolvers return IPv4 addresses in the mapped form, which few
// recognize.
func TestBlockedNamesTheAddress(t *testing.T) {
	c := newClient(t, fetch.Options{UserAgent: "testbot (+http://a.test/)", Resolve: resolveTo("::ffff:10.0.0.1")})
	require.ErrorContains(t, fails(t, c, "http://a.test/"), "blocked: 10.0.0.1 is not a public address")
}

// DNS rebinding (a public address for the check and a private one for the connection) fails: each
// dial resolves once, and connects to the address that was checked.
func TestRebinding(t *testing.T) {
	var dialed []string
	answers := []string{"1.1.1.1", "127.0.0.1"}
	n := 0
	c := newClient(t, fetch.Options{
		UserAgent: "testbot (+http://a.test/)",
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			n++
			return resolveTo(answers[(n-1)%2])(ctx, host)
		},
		Dial: recordDial(&dialed),
	})
	require.Equal(t, fetch.Connect, fails(t, c, "http://a.test/").Kind)
	require.Equal(t, 1, n, "each dial resolves once")
	require.Equal(t, fetch.Blocked, fails(t, c, "http://a.test/").Kind)
	require.Equal(t, []string{"1.1.1.1:80"}, dialed)
}

func TestDeadAddressesAreSkipped(t *testing.T) {
	base := listen(t, says(ok+"\r\n"))
	addr := netip.MustParseAddrPort(strings.TrimPrefix(base, "http://"))
	c := newClient(t, fetch.Options{Resolve: resolveTo("127.0.0.99", "127.0.0.1")})
	require.Equal(t, addr, get(t, c, fmt.Sprintf("http://a.test:%d/", addr.Port())).Addr)
}
