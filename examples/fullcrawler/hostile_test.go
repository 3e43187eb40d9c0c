package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter/trap"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// A fakeSite answers for every host name, for behavior that webtest does not have.
type fakeSite struct {
	addr  func(host string) netip.Addr
	serve http.HandlerFunc

	mu  sync.Mutex
	log []string // URLs, in the order of the requests
}

// network starts the site on some addresses.
func (s *fakeSite) network(t *testing.T, addrs ...string) stage.Network {
	t.Helper()
	mem := memnet.New()
	serveOn(t, mem, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.log = append(s.log, "http://"+r.Host+r.URL.RequestURI())
		s.mu.Unlock()
		s.serve(w, r)
	}), addrs...)
	return stage.Network{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
			return []netip.Addr{s.addr(host)}, time.Hour, nil
		},
		Dial: mem.Dial,
	}
}

// serveOn serves on some addresses until the test ends, and then waits for slow answers, as they must not
// outlive their bubble.
func serveOn(t *testing.T, mem *memnet.Network, handler http.Handler, addrs ...string) {
	t.Helper()
	var answering atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answering.Add(1)
		defer answering.Add(-1)
		handler.ServeHTTP(w, r)
	})}
	for _, addr := range addrs {
		l, err := mem.Listen(addr + ":80")
		require.NoError(t, err)
		go func() { _ = server.Serve(l) }()
	}
	t.Cleanup(func() {
		server.Close()
		for range 600 {
			if answering.Load() > 0 {
				time.Sleep(100 * time.Millisecond)
			}
		}
	})
}

// requested returns the requested URLs that contain a text.
func (s *fakeSite) requested(part string) (urls []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, url := range s.log {
		if strings.Contains(url, part) {
			urls = append(urls, url)
		}
	}
	return urls
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // a Buffer never fails
	_ = w.Close()
	return b.String()
}

// TestRobotsThatCannotBeReadForbid: whatever the encoding of a robots.txt that forbids everything,
// it is obeyed, or its server is not visited.
func TestRobotsThatCannotBeReadForbid(t *testing.T) {
	const forbids = "User-agent: *\nDisallow: /\n"
	long := strings.Repeat("# nothing here\n", 2000)
	for name, tt := range map[string]struct {
		coding, body string
		want         stage.Fate
	}{
		"plain":                           {"", forbids, stage.Disallowed},
		"corrupt gzip":                    {"gzip", gzipped(forbids)[:20] + "xxxxxxxxxxxx", stage.RobotsUnreachable},
		"not gzip":                        {"gzip", forbids, stage.RobotsUnreachable},
		"gzip twice":                      {"gzip, gzip", gzipped(gzipped(forbids)), stage.RobotsUnreachable},
		"an unknown coding":               {"compress", forbids, stage.RobotsUnreachable},
		"a bomb":                          {"gzip", gzipped(strings.Repeat("\n", 400_000) + forbids), stage.RobotsUnreachable},
		"longer than -max-body":           {"", long + forbids, stage.Disallowed},
		"longer than the parser reads":    {"", forbids + strings.Repeat(long, 20), stage.Disallowed},
		"longer in gzip than -max-body":   {"gzip", gzipped(long + forbids), stage.Disallowed},
		"shorter than its Content-Length": {"short", forbids, stage.RobotsUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := &fakeSite{
					addr: func(string) netip.Addr { return netip.MustParseAddr("127.9.9.9") },
					serve: func(w http.ResponseWriter, r *http.Request) {
						switch {
						case r.URL.Path != "/robots.txt":
							fmt.Fprint(w, "<a href=/more>")
							return
						case tt.coding == "short":
							w.Header().Set("Content-Length", "1000")
						case tt.coding != "":
							w.Header().Set("Content-Encoding", tt.coding)
						}
						fmt.Fprint(w, tt.body)
					},
				}
				web := serve(t, webtest.Options{Hosts: 1, Pages: 1, Network: memnet.New()})
				cfg := politeConfig(t, web)
				cfg.Seeds, cfg.MaxBody = []string{"http://a.test/"}, 5000
				c, err := newCrawler(cfg, site.network(t, "127.9.9.9"))
				require.NoError(t, err)
				require.NoError(t, c.run(t.Context()))
				fates := c.Tally.Sum().Fates
				if tt.want == stage.Disallowed {
					require.Equal(t, map[stage.Fate]int64{tt.want: 1}, fates)
				}
				require.Zero(t, fates[stage.Fetched], "%v", fates)
				for _, url := range site.requested("") {
					require.Equal(t, "http://a.test/robots.txt", url)
				}
			})
		})
	}
}

// TestAFarmOnOneAddressLeavesRoomForOthers: a few pages with links to thousands of names, all on
// one address, do not delay the visits to other hosts.
func TestAFarmOnOneAddressLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages, names, links = 6, 200, 2000
		site := &fakeSite{
			addr: func(host string) netip.Addr {
				if strings.HasPrefix(host, "good") {
					return netip.MustParseAddr("127.9.9.1")
				}
				return netip.MustParseAddr("127.9.9.9")
			},
			serve: func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/robots.txt":
					http.NotFound(w, r)
				case r.Host == "farm.test" && r.URL.Path == "/":
					for n := range pages {
						fmt.Fprintf(w, "<a href=/%d>", n)
					}
				case r.Host == "farm.test":
					for n := range links {
						fmt.Fprintf(w, "<a href=http://n%d-farm%d.test%s/%d>", n%names, n%names, r.URL.Path, n)
					}
					for n := range 10 {
						if r.URL.Path == "/5" {
							fmt.Fprintf(w, "<a href=http://good%d.test/>", n)
						}
					}
				}
			},
		}
		web := serve(t, webtest.Options{Hosts: 1, Pages: 1, Network: memnet.New()})
		cfg := politeConfig(t, web)
		cfg.Seeds, cfg.Sitemaps, cfg.Queue = []string{"http://farm.test/"}, false, 3000
		cfg.Duration = 3 * time.Hour
		c, err := newCrawler(cfg, site.network(t, "127.9.9.1", "127.9.9.9"))
		require.NoError(t, err)
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
		visits := site.requested("http://good")
		require.Len(t, visits, 20, "each robots.txt and each page")
		require.Greater(t, len(site.requested("-farm")), 1000, "the farm is crawled, too")
		require.Zero(t, c.Tally.Sum().Fates[stage.HostFull])
	})
}

// TestLinksOfAnEndlessHostAreDropped beyond a multiple of its page limit.
func TestLinksOfAnEndlessHostAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const links = 3000
		site := &fakeSite{
			addr: func(string) netip.Addr { return netip.MustParseAddr("127.9.9.9") },
			serve: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/robots.txt" {
					http.NotFound(w, r)
					return
				}
				for n := range links {
					fmt.Fprintf(w, "<a href=%s/%d>", strings.TrimSuffix(r.URL.Path, "/"), n)
				}
			},
		}
		web := serve(t, webtest.Options{Hosts: 1, Pages: 1, Network: memnet.New()})
		cfg := politeConfig(t, web)
		cfg.Seeds, cfg.HostPages, cfg.Filter.MaxDepth = []string{"http://a.test/"}, 200, 5
		c, err := newCrawler(cfg, site.network(t, "127.9.9.9"))
		require.NoError(t, err)
		require.NoError(t, c.run(t.Context()))
		s := c.Tally.Sum()
		require.EqualValues(t, 200, s.Fates[stage.Fetched])
		require.EqualValues(t, 201, len(site.requested("")))
		require.Greater(t, s.Skipped[stage.CrowdedHost], int64(100*links))
		require.Less(t, c.Pages.Stats().Records, int64(2*links), "the links of one page, and a few more")
		ledger := fatesIn(t, cfg.Out)
		require.EqualValues(t, c.Pages.Stats().Records-200, ledger[stage.HostFull])
		require.Zero(t, s.Waiting)
	})
}

// TestLinksThatDifferInTrackingAreOne: but a redirect to a session is followed, and with -as-found
// all links are followed.
func TestLinksThatDifferInTrackingAreOne(t *testing.T) {
	simplified := []string{
		"http://a.test/", "http://a.test/?PHPSESSID=0123456789abcdef0123", "http://a.test/blog/", "http://a.test/~x",
	}
	for asFound, want := range map[bool][]string{
		false: simplified,
		true: append([]string{
			"http://a.test/%7ex", "http://a.test/blog/?gclid=2", "http://a.test/blog/?utm_source=1",
		}, simplified...),
	} {
		synctest.Test(t, func(t *testing.T) {
			site := &fakeSite{
				addr: func(string) netip.Addr { return netip.MustParseAddr("127.9.9.9") },
				serve: func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Path == "/robots.txt":
						http.NotFound(w, r)
					case r.URL.Path == "/" && r.URL.RawQuery == "":
						http.Redirect(w, r, "/?PHPSESSID=0123456789abcdef0123", http.StatusFound)
					default:
						fmt.Fprint(w, "<a href=/blog/><a href=/blog/?utm_source=1><a href=/blog/?gclid=2><a href=/~x><a href=/%7ex>")
					}
				},
			}
			web := serve(t, webtest.Options{Hosts: 1, Pages: 1, Network: memnet.New()})
			cfg := politeConfig(t, web)
			cfg.Seeds, cfg.AsFound = []string{"http://a.test/"}, asFound
			c, err := newCrawler(cfg, site.network(t, "127.9.9.9"))
			require.NoError(t, err)
			require.NoError(t, c.run(t.Context()))
			visits := slices.DeleteFunc(site.requested("a.test"), func(url string) bool {
				return strings.HasSuffix(url, "robots.txt")
			})
			require.ElementsMatch(t, want, visits)
		})
	}
}

// TestAnEndlessCalendar has a page for each month, which differ only in the month and link to the
// next one. Similar URLs with distinct pages are fetched.
func TestAnEndlessCalendar(t *testing.T) {
	const pages = 300
	for repeats, want := range map[int]int{0: pages, 20: 0} {
		synctest.Test(t, func(t *testing.T) {
			site := &fakeSite{
				addr: func(string) netip.Addr { return netip.MustParseAddr("127.9.9.9") },
				serve: func(w http.ResponseWriter, r *http.Request) {
					n, err := strconv.Atoi(path.Base(r.URL.Path))
					switch {
					case r.URL.Path == "/robots.txt" || r.URL.Path != "/" && err != nil:
						http.NotFound(w, r)
						return
					case strings.HasPrefix(r.URL.Path, "/news/"):
						fmt.Fprintf(w, "<p>about %s<p>", strings.Repeat("x", n))
					case strings.HasPrefix(r.URL.Path, "/calendar/"):
						fmt.Fprintf(w, "<p>%d May %d: no events<p><a href=/calendar/%d>", n, n, n+1)
					}
					fmt.Fprintf(w, "<a href=/news/%d><a href=/calendar/1>", n+1)
				},
			}
			web := serve(t, webtest.Options{Hosts: 1, Pages: 1, Network: memnet.New()})
			cfg := politeConfig(t, web)
			cfg.Seeds, cfg.Traps, cfg.Texts = []string{"http://a.test/"}, repeats, true
			cfg.Pages, cfg.Filter.MaxDepth = pages, -1
			c, err := newCrawler(cfg, site.network(t, "127.9.9.9"))
			require.NoError(t, err)
			require.ErrorIs(t, c.run(t.Context()), cockpit.ErrPageLimit)
			calendar := 0
			for _, url := range site.requested("a.test") {
				if strings.Contains(url, "/calendar/") {
					calendar++
				}
			}
			if want == 0 {
				require.InDelta(t, repeats, calendar, 10, "plus a few probes")
				require.Positive(t, c.Tally.Sum().Skipped[trap.Trap])
			} else {
				require.Greater(t, calendar, pages/3)
			}
		})
	}
}

// TestStrangersCannotHideAHost: another site links to a hundred items that a shop does not have.
// The shop answers 200 with the same text for all of them. Its own items are still fetched.
func TestStrangersCannotHideAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const missing, items, repeats, late = 120, 20, 100, 150
		site := &fakeSite{
			addr: func(host string) netip.Addr {
				return netip.MustParseAddr(map[string]string{"stranger.org": "127.9.9.8", "shop.org": "127.9.9.9"}[host])
			},
			serve: func(w http.ResponseWriter, r *http.Request) {
				n, err := strconv.Atoi(path.Base(r.URL.Path))
				w.Header().Set("Content-Type", "text/html")
				switch {
				case r.URL.Path == "/robots.txt":
					http.NotFound(w, r)
				case r.Host == "stranger.org" && n < late:
					fmt.Fprintf(w, "%d <a href=/%d>", n, n+1)
					for i := range missing {
						fmt.Fprintf(w, "<a href=http://shop.org/item/%d>", 1000+i)
					}
				case r.Host == "stranger.org":
					fmt.Fprint(w, "<a href=http://shop.org/catalog>")
				case err == nil && n >= 1000:
					fmt.Fprint(w, "no such item")
				case err == nil:
					fmt.Fprintf(w, "item %d", n)
				default:
					for n := range items {
						fmt.Fprintf(w, "<a href=/item/%d>", n)
					}
				}
			},
		}
		web := serve(t, webtest.Options{Hosts: 1, Pages: 1, Network: memnet.New()})
		cfg := politeConfig(t, web)
		cfg.Seeds, cfg.Traps, cfg.Reach = []string{"http://stranger.org/"}, repeats, urlfilter.Any
		cfg.Filter.MaxDepth = -1
		c, err := newCrawler(cfg, site.network(t, "127.9.9.8", "127.9.9.9"))
		require.NoError(t, err)
		require.NoError(t, c.run(t.Context()))
		require.Len(t, site.requested("/item/1"), missing+11, "the missing ones, 1, and 10 to 19")
		for n := range items {
			require.Contains(t, site.requested(""), fmt.Sprintf("http://shop.org/item/%d", n))
		}
	})
}
