package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// TestDeadNameServersDelayNoOtherHost: a page links to a thousand names of one owner, and to as
// many of other owners, whose name servers never answer. The name servers of some more hosts stop
// answering during the crawl. One honest host still gets a request per delay, though its own name
// expires often and the limit on requests in flight is low.
func TestDeadNameServersDelayNoOtherHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages, lost = 60, 50
		honest, other := netip.MustParseAddr("127.9.9.1"), netip.MustParseAddr("127.9.9.2")
		var mu sync.Mutex
		var visits []time.Time
		site := &fakeSite{serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			var n int
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
			switch {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
				return
			case r.Host != "honest.org" && r.URL.Path == "/":
				for n := range 5 {
					fmt.Fprintf(w, "<a href=/%d>", n)
				}
				return
			case r.Host != "honest.org":
				return
			}
			mu.Lock()
			defer mu.Unlock()
			visits = append(visits, time.Now())
			fmt.Fprintf(w, "%d <a href=/%d>", n, (n+1)%pages)
			if n > 1 {
				return
			}
			for n := range lost {
				fmt.Fprintf(w, "<a href=http://lost%d.org/>", n)
			}
			for n := range 1000 {
				fmt.Fprintf(w, "<a href=http://h%d.dead.org/><a href=http://dead%[1]d.org/>", n)
			}
		}}
		wrapped := site.network(t, honest.String(), other.String())
		start := time.Now()
		wrapped.Resolve = func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
			switch {
			case host == "honest.org":
				return []netip.Addr{honest}, 7 * time.Second, nil
			case strings.HasPrefix(host, "lost") && time.Since(start) < 30*time.Second:
				return []netip.Addr{other}, 7 * time.Second, nil
			}
			<-ctx.Done()
			return nil, 0, context.Cause(ctx)
		}
		web := serve(t, webtest.Options{Hosts: 1, Pages: 1, Network: memnet.New()})
		cfg := politeConfig(t, web)
		cfg.Seeds, cfg.Concurrency, cfg.Reach, cfg.Wait = []string{"http://honest.org/"}, 4, urlfilter.Any, 0
		c, err := newCrawler(cfg, wrapped)
		require.NoError(t, err)
		time.AfterFunc(10*time.Second, func() {
			require.Contains(t, ask(t, c, "/api/explain?q=http://h1.dead.org/", "127.0.0.1:8080").Body.String(),
				"lookup unanswered since")
			require.Regexp(t, `\nspinneret_names_looked_up \d{4}\n`, ask(t, c, "/metrics", "127.0.0.1:8080").Body.String())
		})
		require.NoError(t, c.run(t.Context()))
		require.Len(t, visits, pages+1)
		for n, at := range visits[1:] {
			require.Equal(t, cfg.Delay, at.Sub(visits[n]), "visit %d", n+1)
		}
		fates := c.Tally.Sum().Fates
		require.GreaterOrEqual(t, fates[stage.Unresolved], int64(1000+125), fates, "an eighth of the free hosts of dead.org")
		require.NotEmpty(t, site.requested("lost"))
	})
}
