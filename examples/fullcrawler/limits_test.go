package main

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
)

// TestWhatWaitsForTheQuotaIsCheckedAfterwards: a host is paused or denied while its page waits for the last page
// of -pages, which another host then fails to give.
func TestWhatWaitsForTheQuotaIsCheckedAfterwards(t *testing.T) {
	for _, by := range []string{"pause", "deny"} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
					if r.Host == "h2.test" { // whose page is next after that of h1
						time.Sleep(time.Second / 10)
					}
					switch {
					case r.URL.Path == "/robots.txt":
						http.NotFound(w, r)
					case r.Host == "h1.test":
						time.Sleep(time.Minute)
						w.WriteHeader(http.StatusInternalServerError)
					}
				}}
				cfg := siteConfig(t, "http://h1.test/", "http://h2.test/")
				cfg.Pages, cfg.Filter.Deny, cfg.Timeout = 1, new(urlfilter.List), 5*time.Minute
				cfg.Forever, cfg.Duration = true, 10*time.Minute
				web := site.network(t, apart("h1.test").String(), apart("h2.test").String())
				c, err := newCrawler(cfg, web)
				require.NoError(t, err)
				time.AfterFunc(20*time.Second, func() {
					if by == "pause" {
						c.Paused.Add("h2.test")
					} else {
						require.NoError(t, c.Filter.Deny.Reload(strings.NewReader("h2.test\n"), "x"))
					}
				})
				require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
				require.Len(t, site.requested("h1.test"), 2)
				require.Equal(t, []string{"http://h2.test/robots.txt"}, site.requested("h2.test"))
			})
		})
	}
}

// TestAPauseDuringALookup: the host of a robots.txt is paused while its address is looked up again.
func TestAPauseDuringALookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: http.NotFound}
		cfg := siteConfig(t, "http://h1.test/", "http://h1.test:8080/")
		cfg.Forever, cfg.Duration = true, time.Minute
		web := site.network(t, apart("h1.test").String())
		lookups, dials, dial := 0, 0, web.Dial
		web.Resolve = func(context.Context, string) ([]netip.Addr, time.Duration, error) {
			if lookups++; lookups > 1 {
				time.Sleep(20 * time.Second)
			}
			return []netip.Addr{apart("h1.test")}, time.Second, nil
		}
		web.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return dial(ctx, network, addr)
		}
		c, err := newCrawler(cfg, web)
		require.NoError(t, err)
		time.AfterFunc(10*time.Second, func() { c.Paused.Add("h1.test") })
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
		require.Greater(t, lookups, 1)
		require.Equal(t, 1, dials)
	})
}
