package webtest

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/require"
)

func TestNetworkServesTheSameBytes(t *testing.T) {
	o := Options{Seed: 7, Hosts: 9, Addrs: 3, Pages: 20}
	first := everything(t, o)
	o.Network = memnet.New()
	require.Equal(t, first, everything(t, o))
}

// The delays of a web without sockets take fake time, exact to the nanosecond. The bubble would not
// end if a goroutine of the web were left.
func TestNetworkWaitsInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, Options{Hosts: 3, Addrs: 2, Network: memnet.New(), Traits: func(int) Traits {
			return Traits{Latency: Latency{Median: time.Hour}}
		}})
		c := client(t, w)
		before := time.Now()
		var want, got []netip.Addr
		for h := range w.Hosts() {
			require.Equal(t, 200, get(t, c, h.URL()).status)
			want = append(want, h.Addr)
		}
		require.Equal(t, 3*time.Hour, time.Since(before))
		for _, r := range w.Log() {
			got = append(got, r.Addr)
		}
		require.Equal(t, want, got, "each request has the address at which it arrived")
		require.Equal(t, got[0], got[2], "three hosts share two addresses")
	})
}
