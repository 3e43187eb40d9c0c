package stage

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
)

// TestASocksProxyThatWorks: what such a proxy says of a server that it cannot reach is no outage here.
func TestASocksProxyThatWorks(t *testing.T) {
	for _, reply := range []int{1, 2, 3, 4, 5, 6, 7, 8, -1} { // -1 is none, as of ssh -D
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			b := make([]byte, 64)
			_, _ = io.ReadFull(c, b[:2])
			_, _ = io.ReadFull(c, b[:b[1]])
			_, _ = c.Write([]byte{5, 0})
			_, _ = io.ReadFull(c, b[:10])
			if reply > 0 {
				_, _ = c.Write([]byte{5, byte(reply), 0, 1, 0, 0, 0, 0, 0, 0})
			}
		}()
		client, err := fetch.New(fetch.Options{UserAgent: "testbot (bot@a.test)", Proxy: "socks5://" + l.Addr().String(),
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
			}})
		require.NoError(t, err)
		_, err = client.Do(t.Context(), fetch.Request{URL: "http://a.test/"})
		require.Error(t, err)
		const cannotConnect = 7 // such a proxy is of no use
		require.Equal(t, reply == cannotConnect, Attribute(err, netip.MustParseAddr("1.1.1.1")) == OurFault, "%d: %v", reply, err)
		require.Equal(t, reply == cannotConnect, Classify(nil, err) == Interrupted, "%d: %v", reply, err)
		require.NoError(t, l.Close())
	}
}
