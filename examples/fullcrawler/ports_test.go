package main

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// dialled runs a crawl of one host and returns when connections to it were asked for, by port, from
// its start. refuse says which are refused.
func dialled(t *testing.T, change func(*cockpit.Config), refuse func(port string, n int) bool) (
	c *crawler, web *webtest.Web, ports []string, at []time.Duration,
) {
	web = serve(t, webtest.Options{Seed: 13, Hosts: 1, Pages: 6, Network: memnet.New()})
	cfg := politeConfig(t, web)
	change(&cfg)
	under := on(web)
	dial, start := under.Dial, time.Now()
	under.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, _ := strings.Cut(addr, ":")
		ports, at = append(ports, port), append(at, time.Since(start))
		if refuse(port, len(ports)) {
			return nil, syscall.ECONNREFUSED
		}
		return dial(ctx, network, addr)
	}
	c, err := newCrawler(cfg, under)
	require.NoError(t, err)
	require.NoError(t, c.run(t.Context()))
	return c, web, ports, at
}

// A port where nobody listens does not slow the pages of another one, whichever comes first.
func TestAClosedPortIsNotHeldAgainstTheOthers(t *testing.T) {
	const root = "h00000.vweb.test/"
	for _, seeds := range [][]string{
		{"http://" + root, "https://" + root}, {"https://" + root, "http://" + root},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, web, _, _ := dialled(t, func(cfg *cockpit.Config) { cfg.Seeds = seeds },
				func(port string, _ int) bool { return port == "443" })
			log := web.Log()
			require.Greater(t, len(log), 4)
			for n, r := range log[1:] {
				require.Equal(t, 5*time.Second, r.Time.Sub(log[n].Time), "%s after %s", r.Path, log[n].Path)
			}
			require.EqualValues(t, 1, c.Tally.Sum().Fates[stage.Refused])
		})
	}
}

// A server that was there and is gone is left alone for longer and longer.
func TestAServerThatIsGoneIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Longer than connections are kept, so that each request dials.
		_, _, _, at := dialled(t, func(cfg *cockpit.Config) { cfg.Delay = time.Minute },
			func(_ string, n int) bool { return n > 2 })
		require.Greater(t, len(at), 4)
		require.Equal(t, []time.Duration{0, 1, 2, 4, 8}, minutes(at[:5]))
	})
}

func minutes(at []time.Duration) (rounded []time.Duration) {
	for _, d := range at {
		rounded = append(rounded, d/time.Minute)
	}
	return rounded
}
