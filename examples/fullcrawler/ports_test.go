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

// dialed runs a crawl of one host and returns the times of all dials since its start, with their
// ports. refuse says which ones are refused.
func dialed(t *testing.T, change func(*cockpit.Config), refuse func(port string, n int) bool) (
	c *crawler, web *webtest.Web, ports []string, at []time.Duration,
) {
	web = serve(t, webtest.Options{Seed: 13, Hosts: 1, Pages: 6, Network: memnet.New()})
	cfg := politeConfig(t, web)
	change(&cfg)
	wrapped := on(web)
	dial, start := wrapped.Dial, time.Now()
	wrapped.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, _ := strings.Cut(addr, ":")
		ports, at = append(ports, port), append(at, time.Since(start))
		if refuse(port, len(ports)) {
			return nil, syscall.ECONNREFUSED
		}
		return dial(ctx, network, addr)
	}
	c, err := newCrawler(cfg, wrapped)
	require.NoError(t, err)
	require.NoError(t, c.run(t.Context()))
	return c, web, ports, at
}

// TestAClosedPortDoesNotSlowOthers: a closed port takes a turn of the host, but causes no back-off for the
// other one, whichever is visited first.
func TestAClosedPortDoesNotSlowOthers(t *testing.T) {
	const root = "h00000.vweb.test/"
	for _, seeds := range [][]string{
		{"http://" + root, "https://" + root}, {"https://" + root, "http://" + root},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, web, _, _ := dialed(t, func(cfg *cockpit.Config) { cfg.Seeds = seeds },
				func(port string, _ int) bool { return port == "443" })
			log := web.Log()
			require.Greater(t, len(log), 4)
			turns := 0
			for n, r := range log[1:] {
				pause := r.Time.Sub(log[n].Time)
				require.Contains(t, []time.Duration{5 * time.Second, 10 * time.Second}, pause, "%s after %s", r.Path, log[n].Path)
				turns += int(pause / (5 * time.Second))
			}
			require.LessOrEqual(t, turns, len(log))
			require.EqualValues(t, 1, c.Tally.Sum().Fates[stage.Refused])
		})
	}
}

// TestALostServerIsRetriedLessAndLess often: the pauses grow.
func TestALostServerIsRetriedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Longer than connections stay open, so that each request dials.
		_, _, _, at := dialed(t, func(cfg *cockpit.Config) { cfg.Delay, cfg.Wait = time.Minute, time.Hour },
			func(_ string, n int) bool { return n > 2 })
		require.Greater(t, len(at), 4)
		// At least 1, 2 and 4 minutes, a tenth more at most, and then the next turn of the host.
		require.Equal(t, []time.Duration{0, 1, 2, 4, 9}, minutes(at[:5]))
	})
}

func minutes(at []time.Duration) (rounded []time.Duration) {
	for _, d := range at {
		rounded = append(rounded, d/time.Minute)
	}
	return rounded
}
