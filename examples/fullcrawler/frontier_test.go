package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/spinneret-go/spinneret/revisit"
)

// loopback is the address of all hosts of a fakeSite.
func loopback(string) netip.Addr { return netip.MustParseAddr("127.9.9.9") }

// apart gives each host of a fakeSite, such as h17.test, an address of its own.
func apart(host string) netip.Addr {
	var n int
	_, _ = fmt.Sscanf(host, "h%d.", &n)
	return netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)})
}

// siteConfig configures a polite crawl of a fakeSite.
func siteConfig(t *testing.T, seeds ...string) cockpit.Config {
	cfg := politeConfig(t, serve(t, webtest.Options{Hosts: 1, Pages: 1, Network: memnet.New()}))
	cfg.Seeds = seeds
	return cfg
}

// crawlSite runs a crawl of a fakeSite.
func crawlSite(t *testing.T, cfg cockpit.Config, web stage.Network) *crawler {
	t.Helper()
	c, err := newCrawler(cfg, web)
	require.NoError(t, err)
	require.NoError(t, c.run(t.Context()))
	return c
}

// TestAllSeedsAreVisited: a crawl does not end while pages wait for room, however little there is.
func TestAllSeedsAreVisited(t *testing.T) {
	const hosts = 40
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
			}
		}}
		var seeds, addrs []string
		for n := range hosts {
			host := fmt.Sprintf("h%d.test", n)
			seeds, addrs = append(seeds, "http://"+host+"/"), append(addrs, apart(host).String())
		}
		cfg := siteConfig(t, seeds...)
		cfg.Queue = 4
		c := crawlSite(t, cfg, site.network(t, addrs...))
		require.EqualValues(t, hosts, c.Tally.Sum().Pages)
		require.Zero(t, c.Pages.Stats().Due)
	})
}

// TestDisallowedPagesTakeNoPlace: the page limit of a host is for pages that can be fetched.
func TestDisallowedPagesTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			var page int
			_, _ = fmt.Sscanf(r.URL.Path, "/wiki/%d", &page)
			switch {
			case r.URL.Path == "/robots.txt":
				fmt.Fprint(w, "User-agent: *\nDisallow: /edit/\n")
			case page < 200:
				fmt.Fprintf(w, "<p>page %d <a href=/wiki/%d>next</a> <a href=/wiki/%d>x</a>", page, page+1, page+2)
				for n := range 9 {
					fmt.Fprintf(w, "<a href=/edit/%d/%d>edit</a>", page, n)
				}
			}
		}}
		cfg := siteConfig(t, "http://a.test/wiki/0")
		cfg.HostPages = 50
		c := crawlSite(t, cfg, site.network(t, "127.9.9.9"))
		require.EqualValues(t, 50, c.Tally.Sum().Pages)
		require.Empty(t, site.requested("/edit/"))
	})
}

// TestADenialStopsQueuedPages: what waits in the queue is checked again right before its request.
func TestADenialStopsQueuedPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				for n := range 100 {
					fmt.Fprintf(w, "<a href=/%d>x</a>", n)
				}
			}
		}}
		cfg := siteConfig(t, "http://a.test/")
		cfg.Overrides = &stage.Overrides{}
		c, err := newCrawler(cfg, site.network(t, "127.9.9.9"))
		require.NoError(t, err)
		var before int
		time.AfterFunc(2*time.Minute, func() {
			before = len(site.requested(""))
			_ = cfg.Overrides.Reload(strings.NewReader("a.test off"))
		})
		require.NoError(t, c.run(t.Context()))
		require.Greater(t, before, 10)
		require.LessOrEqual(t, len(site.requested("")), before+1)
		require.Greater(t, c.Tally.Sum().Fates[stage.Unwanted], int64(50))
	})
}

// TestRobotsLeadNowhereElse: the redirect of a robots.txt is followed to the robots.txt of another
// host, unless the operator has barred that, and to nothing else there.
func TestRobotsLeadNowhereElse(t *testing.T) {
	for name, tt := range map[string]struct {
		to, off, deny string
		want          bool
	}{
		"the robots.txt of another host": {to: "http://b.test/robots.txt", want: true},
		"another page of its own":        {to: "http://a.test/rules.txt", want: true},
		"a page of another host":         {to: "http://b.test/vote?for=a"},
		"a host that is off":             {to: "http://b.test/robots.txt", off: "b.test off"},
		"a host that is denied":          {to: "http://b.test/robots.txt", deny: "b.test"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
					if r.Host == "a.test" && r.URL.Path == "/robots.txt" {
						http.Redirect(w, r, tt.to, http.StatusFound)
						return
					}
					fmt.Fprint(w, "User-agent: *\nAllow: /\n")
				}}
				cfg := siteConfig(t, "http://a.test/")
				cfg.Reach, cfg.Overrides = urlfilter.Host, &stage.Overrides{}
				require.NoError(t, cfg.Overrides.Reload(strings.NewReader(tt.off)))
				cfg.Filter.Deny = new(urlfilter.List)
				require.NoError(t, cfg.Filter.Deny.Reload(strings.NewReader(tt.deny), "deny"))
				c := crawlSite(t, cfg, site.network(t, "127.9.9.9"))
				require.Equal(t, tt.want, len(site.requested(tt.to)) == 1)
				require.Equal(t, tt.want, c.Tally.Sum().Pages == 1)
				if !tt.want {
					require.Empty(t, site.requested("b.test"))
					require.EqualValues(t, 1, c.Tally.Sum().Fates[stage.RobotsUnreachable])
				}
			})
		})
	}
}

// TestManyRobotsLeadToOneHost: a farm cannot have one host asked for its robots.txt without end.
func TestManyRobotsLeadToOneHost(t *testing.T) {
	const farm = 3 * maxForeignRules / 2
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" && r.Host != "h9999.test" {
				http.Redirect(w, r, "http://h9999.test/robots.txt", http.StatusFound)
			}
		}}
		var seeds []string
		addrs := []string{apart("h9999.test").String()}
		for n := range farm {
			host := fmt.Sprintf("h%d.test", n)
			seeds, addrs = append(seeds, "http://"+host+"/"), append(addrs, apart(host).String())
		}
		crawlSite(t, siteConfig(t, seeds...), site.network(t, addrs...))
		require.Len(t, site.requested("h9999.test"), maxForeignRules)
	})
}

// TestRobotsLeadToTheSameHost with a dot at the end of its name: it is paused, or wants a long delay.
func TestRobotsLeadToTheSameHost(t *testing.T) {
	for _, paused := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var times []time.Time
			site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasPrefix(r.Host, "h9."):
					times = append(times, time.Now())
					fmt.Fprint(w, "User-agent: *\nCrawl-delay: 60\n")
				case r.URL.Path == "/robots.txt":
					http.Redirect(w, r, "http://h9.test./robots.txt", http.StatusFound)
				}
			}}
			cfg := siteConfig(t, "http://h9.test/", "http://h1.test/", "http://h2.test/")
			cfg.Duration = time.Hour
			c, err := newCrawler(cfg, site.network(t, apart("h9.").String(), apart("h1.").String(), apart("h2.").String()))
			require.NoError(t, err)
			if paused {
				c.Paused.Add("h9.test")
				require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
				require.Empty(t, times)
				return
			}
			require.NoError(t, c.run(t.Context()))
			require.Len(t, times, 4)
			for n, at := range times[2:] { // the first two are before its rules are known
				require.GreaterOrEqual(t, at.Sub(times[n+1]), time.Minute, n)
			}
		})
	}
}

// TestAServerThatWasDown is asked again by the next command, with -fresh and without.
func TestAServerThatWasDown(t *testing.T) {
	for name, fresh := range map[string]bool{"the same command": false, "-fresh": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var up atomic.Bool
				site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/robots.txt" {
						http.NotFound(w, r)
					}
				}}
				web := site.network(t, "127.9.9.9")
				dial := web.Dial
				web.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if !up.Load() {
						return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
					}
					return dial(ctx, network, addr)
				}
				cfg := siteConfig(t, "http://a.test/")
				c := crawlSite(t, cfg, web)
				require.ErrorIs(t, c.silence(), errNoAnswer)
				up.Store(true)
				time.Sleep(time.Minute)
				cfg.Fresh = fresh
				c = crawlSite(t, cfg, web)
				require.EqualValues(t, 1, c.Tally.Sum().Pages)
				require.NoError(t, c.silence())
			})
		})
	}
}

// TestStrangersDoNotRemoveASite: another site lists thousands of pages that do not exist before the
// site's own are known. They take an eighth of its limit.
func TestStrangersDoNotRemoveASite(t *testing.T) {
	const limit, own, made = 80, 60, 3000
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			var page int
			_, err := fmt.Sscanf(r.URL.Path, "/p%d", &page)
			switch {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case r.Host == "h1.test" && page < made/100:
				fmt.Fprintf(w, "<p>%d<a href=/p%d>next</a>", page, page+1)
				for n := range 100 {
					fmt.Fprintf(w, "<a href=http://h2.test/made-up/%d-%d>x</a>", page, n)
				}
			case r.Host == "h1.test":
				fmt.Fprint(w, "<p><a href=http://h2.test/>the site</a>")
			case r.URL.Path == "/":
				fmt.Fprint(w, "<p><a href=/p0>first</a>")
			case err == nil && page < own:
				fmt.Fprintf(w, "<p>page %d <a href=/p%d>next</a>", page, page+1)
			default:
				http.NotFound(w, r)
			}
		}}
		cfg := siteConfig(t, "http://h1.test/p0")
		cfg.HostPages, cfg.Reach, cfg.Filter.MaxDepth = limit, urlfilter.Any, -1
		crawlSite(t, cfg, site.network(t, apart("h1.test").String(), apart("h2.test").String()))
		require.Len(t, site.requested("h2.test/p"), own+1, "and the one that is missing")
		require.LessOrEqual(t, len(site.requested("made-up")), limit/8)
	})
}

// TestStrangersMakeNoTraps: however many links of other sites there are, a site's own pattern is no
// trap because of what they point to.
func TestStrangersMakeNoTraps(t *testing.T) {
	const own = 200
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			var page int
			_, err := fmt.Sscanf(r.URL.Path, "/item/%d", &page)
			switch {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case r.Host == "h1.test":
				fmt.Fprint(w, "<p><a href=http://h2.test/>the site</a>")
				for n := range 500 {
					fmt.Fprintf(w, "<a href=http://h2.test/item/%d>x</a>", 10_000+n)
				}
			case err == nil && page < own:
				fmt.Fprintf(w, "<p>item %d", page)
			case err == nil:
				fmt.Fprint(w, "<p>there is no such item")
			default:
				for n := range own {
					fmt.Fprintf(w, "<p><a href=/item/%d>%d</a>", n, n)
				}
			}
		}}
		cfg := siteConfig(t, "http://h1.test/")
		cfg.Traps, cfg.Reach, cfg.HostPages = 30, urlfilter.Any, 4000
		crawlSite(t, cfg, site.network(t, apart("h1.test").String(), apart("h2.test").String()))
		requests := map[string]bool{}
		for _, url := range site.requested("/item/") {
			requests[url] = true
		}
		for n := range own {
			require.Contains(t, requests, fmt.Sprintf("http://h2.test/item/%d", n))
		}
	})
}

// TestSeedsWithADot at the end of the host's name, and those that lead to one, are in the scope, also after a restart.
func TestSeedsWithADot(t *testing.T) {
	for _, seed := range []string{"http://a.test./", "http://r.test/"} {
		t.Run(seed, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				s := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Path == "/robots.txt":
						http.NotFound(w, r)
					case r.Host == "r.test":
						http.Redirect(w, r, "http://a.test./", http.StatusFound)
					case r.URL.Path == "/":
						n++
						fmt.Fprintf(w, "<a href=/1><a href=/n%d>", n)
					}
				}}
				cfg := siteConfig(t, seed)
				cfg.Reach, cfg.Policy = urlfilter.Host, revisit.Every(day)
				web := s.network(t, loopback("").String())
				for range 3 {
					crawlSite(t, cfg, web)
					time.Sleep(day + time.Hour)
				}
				require.NotEmpty(t, s.requested("http://a.test/1"))
				require.Greater(t, len(s.requested("http://a.test/n")), 3)
			})
		})
	}
}
