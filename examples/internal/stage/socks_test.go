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
	for reply, want := range map[int]Fault{
		1: TheirFault, 2: TheirFault, 3: TheirFault, 4: TheirFault, 5: TheirFault, 6: TheirFault, 7: OurFault, 8: TheirFault,
		-1: UnclearFault, // as ssh -D does
	} {
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
		require.Equal(t, want, Attribute(err, netip.MustParseAddr("1.1.1.1")), "%d: %v", reply, err)
		if want != OurFault {
			require.NotEqual(t, Interrupted, Classify(nil, err), "%d: %v", reply, err)
		}
		require.NoError(t, l.Close())
	}
}
