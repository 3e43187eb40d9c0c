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
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/scheduler"
)

// TestFewHostsDoNotStarveTheOthers: a few hosts with many known pages cannot fill the queue, whether
// they are big, slow or down. Once the first minutes are over, each of the others gets at least half
// of its fair share in every five minutes.
func TestFewHostsDoNotStarveTheOthers(t *testing.T) {
	const few, others, pages, minutes = 6, 20, 190, 15
	for name, odd := range map[string]http.HandlerFunc{
		"big": func(w http.ResponseWriter, r *http.Request) {},
		"slow": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "User-agent: *\nCrawl-delay: 600\n")
		},
		"down": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"failing": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var mu sync.Mutex
				shares := map[string]*[minutes/5 + 1]int{}
				site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
					var host int
					_, _ = fmt.Sscanf(r.Host, "h%d.", &host)
					switch {
					case host > 0 && host <= few && (name != "slow") != (r.URL.Path == "/robots.txt"):
						odd(w, r)
					case r.URL.Path == "/robots.txt":
						http.NotFound(w, r)
					case host == 0:
						for page := range 2 * pages {
							fmt.Fprintf(w, "<a href=http://h%d.test/%d>x</a>", page%few+1, page)
						}
						for n := range others {
							fmt.Fprintf(w, "<a href=http://h%d.test/>x</a>", few+1+n)
						}
					case host > few:
						for page := range pages {
							fmt.Fprintf(w, "<a href=/%d>x</a>", page)
						}
						mu.Lock()
						defer mu.Unlock()
						if shares[r.Host] == nil {
							shares[r.Host] = new([minutes/5 + 1]int)
						}
						shares[r.Host][int(time.Since(began)/(5*time.Minute))]++
					}
				}}
				var addrs []string
				for n := range 1 + few + others {
					addrs = append(addrs, apart(fmt.Sprintf("h%d.test", n)).String())
				}
				cfg := siteConfig(t, "http://h0.test/")
				cfg.Reach, cfg.Queue = urlfilter.Any, 200
				c, err := newCrawler(cfg, site.network(t, addrs...))
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), minutes*time.Minute)
				defer cancel()
				require.ErrorIs(t, c.run(ctx), cockpit.ErrStopped)
				require.Len(t, shares, others)
				for host, share := range shares {
					for _, n := range share[1 : minutes/5] {
						require.GreaterOrEqual(t, n, 30, "%s: %v", host, share)
					}
				}
			})
		})
	}
}

// TestAVisitThatEndsBarsNobody: a page that is due is not put off for a slot because a visit of its
// host ended after the table of hosts had last seen the clock.
func TestAVisitThatEndsBarsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {}}
		c, err := newCrawler(siteConfig(t, "http://a.test/"), site.network(t))
		require.NoError(t, err)
		defer func() { require.NoError(t, c.close()) }()
		c.Hosts.Advance(c.Clock.Now(), c.Pages.Now())
		time.Sleep(time.Second)
		c.visited("a.test", scheduler.Outcome{Took: time.Millisecond})
		require.Zero(t, c.Hosts.Take("a.test", netip.Addr{}, true).RetryAt)
	})
}

// TestSlowOwnersLeavePlaces: a dozen owners of many slow hosts leave places to the others.
func TestSlowOwnersLeavePlaces(t *testing.T) {
	const owners, slow, minutes = 12, 20, 5
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: func(host string) netip.Addr { return apart(host[strings.LastIndexByte(host, 'h'):]) }}
		site.serve = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			switch {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case r.URL.Path == "/":
				for n := range 100 {
					fmt.Fprintf(w, "<a href=/%d>x</a>", n)
				}
			case strings.HasPrefix(r.Host, "f-"):
				time.Sleep(29 * time.Second)
			}
		}
		seeds, addrs := []string{"http://h1.test/"}, []string{apart("h1.").String()}
		for n := range owners * slow {
			addrs = append(addrs, apart(fmt.Sprintf("h%d.", 100+n)).String())
			seeds = append(seeds, fmt.Sprintf("http://f-h%d.o%d.com/", 100+n, n/slow))
		}
		cfg := siteConfig(t, seeds...)
		cfg.Reach, cfg.Concurrency, cfg.Archive, cfg.Timeout = urlfilter.Host, 64, cockpit.NoArchive, 30*time.Second
		cfg.Duration = minutes * time.Minute
		c, err := newCrawler(cfg, site.network(t, addrs...))
		require.NoError(t, err)
		require.ErrorContains(t, c.run(t.Context()), "time limit")
		require.Greater(t, len(site.requested("http://h1.")), minutes*60/5*3/4)
	})
}
