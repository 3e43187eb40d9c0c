package fetch_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
)

// addresses starts a server for each address, which says its address and what it was asked for. It
// returns options with which a client reaches them.
func addresses(t *testing.T, kind string, addrs ...string) fetch.Options {
	servers := map[string]string{}
	for _, addr := range addrs {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s %s %s %d", addr, r.Host, r.RequestURI, r.ProtoMajor)
		}))
		switch kind {
		case "http":
			s.Start()
		case "h2":
			s.EnableHTTP2 = true
			fallthrough
		case "https":
			s.StartTLS()
		}
		t.Cleanup(s.Close)
		servers[addr] = s.Listener.Addr().String()
	}
	return fetch.Options{
		UserAgent: "testbot (bot@a.test)", Reach: fetch.Anywhere,
		TLSConfig: &tls.Config{InsecureSkipVerify: true},
		Resolve:   resolveTo(addrs[0]),
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr)
			return new(net.Dialer).DialContext(ctx, network, servers[host])
		},
	}
}

// A request goes to the address that was counted for it, over a connection to that address, whatever
// its name resolves to and whatever other connections there are.
func TestRequestAddr(t *testing.T) {
	first, second, third := "192.0.2.1", "192.0.2.2", "2001:db8::3"
	for _, kind := range []string{"http", "https", "h2"} {
		t.Run(kind, func(t *testing.T) {
			c := newClient(t, addresses(t, kind, first, second, third))
			scheme, proto := "https", 1
			if kind == "http" {
				scheme = "http"
			} else if kind == "h2" {
				proto = 2
			}
			for n, tt := range []struct {
				addr   string // "" for none
				host   string
				want   string
				reused bool
			}{
				{"", "a.test", first, false},
				{"", "a.test", first, true},
				{second, "a.test", second, false},
				{second, "a.test", second, true},
				{third, "a.test:8080", third, false},
				{first, "a.test", first, false}, // the connection without an address may be to another one
				{"", "a.test", first, true},
				{third, "a.test:8080", third, true},
				{second, "b.test", second, false},
			} {
				var addr netip.Addr
				if tt.addr != "" {
					addr = netip.MustParseAddr(tt.addr)
				}
				dialed := ""
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
					GetConn: func(hostPort string) { dialed = hostPort },
				})
				url := fmt.Sprintf("%s://%s/%d?q", scheme, tt.host, n)
				want := fmt.Sprintf("%s %s /%d?q %d", tt.want, tt.host, n, proto)
				r, err := c.Do(ctx, fetch.Request{URL: url, Addr: addr})
				require.NoError(t, err)
				require.Equal(t, want, string(r.Body))
				require.Equal(t, tt.reused, r.Reused, "%d", n)
				require.Equal(t, tt.want, r.Addr.Addr().String())
				require.Equal(t, url, r.URL)
				require.Contains(t, string(r.RequestHead), fmt.Sprintf("GET /%d?q HTTP/%d", n, proto))
				require.Contains(t, string(r.RequestHead), "\r\nHost: "+tt.host+"\r\n")
				require.True(t, strings.HasPrefix(dialed, tt.host), dialed)
			}
		})
	}
}

func TestAddrIsGuarded(t *testing.T) {
	c := newClient(t, fetch.Options{UserAgent: "testbot (bot@a.test)", Resolve: resolveTo("93.184.216.34")})
	_, err := c.Do(t.Context(), fetch.Request{URL: "http://a.test/", Addr: netip.MustParseAddr("10.0.0.1")})
	require.ErrorIs(t, err, fetch.Blocked)
	c = newClient(t, fetch.Options{})
	_, err = c.Do(t.Context(), fetch.Request{URL: "http://192.0.2.1/", Addr: netip.MustParseAddr("127.0.0.1")})
	require.ErrorIs(t, err, fetch.Blocked, "an address in a URL stays")
	_, err = c.Do(t.Context(), fetch.Request{URL: "http://[2001:db8::1]:80/", Addr: netip.MustParseAddr("127.0.0.1")})
	require.ErrorIs(t, err, fetch.Blocked)
	base := listen(t, says(ok+"\r\nhello"))
	r, err := c.Do(t.Context(), fetch.Request{URL: base})
	require.NoError(t, err)
	require.Equal(t, "hello", string(r.Body))
}
