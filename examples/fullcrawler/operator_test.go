package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/revisit"
)

// TestASecondReloadHidesNothing: the pages have to be rewritten for a shorter list, and until that is done
// the list may be reloaded again.
func TestASecondReloadHidesNothing(t *testing.T) {
	web := serve(t, webtest.Options{Seed: 4, Hosts: 3, Pages: 6})
	cfg := testConfig(t, web)
	cfg.Filter.Deny = new(urlfilter.List)
	cfg.DenyFile, cfg.Reach = write(t, "h00002.vweb.test\n"), urlfilter.Host
	require.NoError(t, cfg.ReadDeny())
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	defer c.close()
	hide, err := c.Show(nil, io.Discard)
	require.NoError(t, err)
	defer hide()
	saved := func() string {
		text, err := os.ReadFile(filepath.Join(cfg.Out, cockpit.FiltersName))
		require.NoError(t, err)
		return string(text)
	}
	before := saved()
	require.NoError(t, os.WriteFile(cfg.DenyFile, nil, 0o600))
	for range 2 {
		c.reload()
		require.ErrorIs(t, c.ended(), cockpit.ErrReopen)
		require.Equal(t, before, saved())
	}
}

// reloading runs the program's loop, and reloads the lists after an hour and after two.
func reloading(t *testing.T, site *fakeSite, cfg cockpit.Config, first, second func()) {
	defer func(web stage.Network, signals chan os.Signal) { machine, hangups = web, signals }(machine, hangups)
	machine = site.network(t, apart("h1.test").String(), apart("h2.test").String())
	hangups = make(chan os.Signal, 1)
	for n, change := range []func(){first, second} {
		time.AfterFunc(time.Duration(n+1)*time.Hour, func() {
			change()
			hangups <- syscall.SIGHUP
		})
	}
	start := time.Now()
	require.NoError(t, crawl(t.Context(), cfg, io.Discard, io.Discard))
	require.GreaterOrEqual(t, time.Since(start), cfg.Duration)
}

// TestASeedIsDeniedAtFirst: it is visited once the deny list lets it pass.
func TestASeedIsDeniedAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(http.ResponseWriter, *http.Request) {}}
		cfg := siteConfig(t, "http://h1.test/")
		cfg.Filter.Deny, cfg.Forever, cfg.Duration = new(urlfilter.List), true, 5*time.Hour
		cfg.DenyFile, cfg.SeedFile = write(t, "h2.test\n"), write(t, "")
		require.NoError(t, cfg.ReadDeny())
		reloading(t, site, cfg,
			func() { require.NoError(t, os.WriteFile(cfg.SeedFile, []byte("http://h2.test/\n"), 0o600)) },
			func() { require.NoError(t, os.WriteFile(cfg.DenyFile, nil, 0o600)) })
		require.Len(t, pagesOf(site, "h2.test"), 1)
	})
}

// TestABadListEndsNoCrawl that starts over because another list has become wider.
func TestABadListEndsNoCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<a href=http://h2.test/>x</a><a href=/1>x</a>")
		}}
		cfg := siteConfig(t, "http://h1.test/")
		cfg.Filter.Deny, cfg.Overrides = new(urlfilter.List), new(stage.Overrides)
		cfg.DenyFile, cfg.OverrideFile = write(t, "h2.test\n"), write(t, "h1.test off\n")
		require.NoError(t, errors.Join(cfg.ReadDeny(), cfg.ReadOverrides()))
		cfg.Forever, cfg.Duration = true, 5*time.Hour
		reloading(t, site, cfg,
			func() { require.NoError(t, os.WriteFile(cfg.DenyFile, []byte("a b\n"), 0o600)) },
			func() { require.NoError(t, os.WriteFile(cfg.OverrideFile, nil, 0o600)) })
		require.Len(t, pagesOf(site, "h1.test"), 2)
		require.Empty(t, site.requested("h2.test"), "the list that was read before holds")
	})
}

// TestAHangupAtTheStart tells that a list cannot be read, while the crawl gets the terminal on which it is told.
func TestAHangupAtTheStart(t *testing.T) {
	web := serve(t, webtest.Options{Hosts: 1, Pages: 1})
	machine = on(web)
	t.Cleanup(func() { machine = stage.Network{} })
	for range 5 {
		cfg := testConfig(t, web)
		cfg.DenyFile = filepath.Join(cfg.Out, "none")
		hangups := make(chan os.Signal, 1)
		hangups <- syscall.SIGHUP
		_, err := crawlOnce(t.Context(), cfg, nil, hangups, io.Discard, io.Discard)
		require.NoError(t, err)
	}
}

// TestHealthDuringACommand: a supervisor must not take a long check for the crawl.
func TestHealthDuringACommand(t *testing.T) {
	cfg, _ := crawlForgettable(t)
	for command, want := range map[string]int{"check": 1, "crawl": 0} {
		d, err := cockpit.OpenDirectory(cfg.Out, command)
		require.NoError(t, err)
		status, output := run(t, "health", "-out", cfg.Out)
		require.Equal(t, want, status, output)
		require.Contains(t, output, command)
		require.NoError(t, d.Close())
	}
}

// TestHealthOfAKilledCrawl: something else answers where its live page was.
func TestHealthOfAKilledCrawl(t *testing.T) {
	cfg, _ := crawlForgettable(t)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer other.Close()
	holder, err := json.Marshal(map[string]any{"pid": 1 << 22, "command": "crawl", "page": other.URL + "/"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Out, "crawl.holder"), holder, 0o600))
	status, output := run(t, "health", "-out", cfg.Out)
	require.Equal(t, 1, status, output)
}

// TestAClockThatDoesNotKnowTheTime: a machine boots without a battery. All visits would be in the future.
func TestAClockThatDoesNotKnowTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in the year 2000
		s := twoNeighbors()
		web := s.network(t, loopback("").String())
		cfg := siteConfig(t, "http://a.test/")
		crawlSite(t, cfg, web)
		began := filepath.Join(cfg.Out, cockpit.BeganName)
		require.NoError(t, os.WriteFile(began, []byte("2026-11-01T00:00:00Z 1\n"), 0o600))
		_, err := newCrawler(cfg, web)
		require.ErrorContains(t, err, "set the clock")
	})
}

// TestAChainThatLeadsToASite does not count against the redirects of that site.
func TestAChainThatLeadsToASite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			n := 0
			switch _, _ = fmt.Sscanf(r.URL.Path, "/%d", &n); {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case r.Host == "good.org":
				fmt.Fprint(w, "<a href=http://evil.com/1><a href=http://loop.net/1>")
			case r.Host == "evil.com" && n < 10:
				http.Redirect(w, r, fmt.Sprint("/", n+1), http.StatusFound)
			case r.Host == "evil.com":
				http.Redirect(w, r, "http://victim.de/", http.StatusFound)
			case r.Host == "loop.net":
				http.Redirect(w, r, fmt.Sprint("/", n+1), http.StatusFound)
			case r.Host == "victim.de":
				http.Redirect(w, r, "http://www.victim.de/home", http.StatusFound)
			default:
				fmt.Fprint(w, "<a href=/more>")
			}
		}}
		cfg := siteConfig(t, "http://good.org/")
		cfg.Reach, cfg.Filter.MaxDepth = urlfilter.Any, -1
		crawlSite(t, cfg, s.network(t, loopback("").String()))
		require.Len(t, s.requested("http://www.victim.de/more"), 1)
		require.Len(t, s.requested("http://loop.net/"), 12, "with its robots.txt")
	})
}

// TestSlowHostsOfOneOwner: their visits do not take the places of all others.
func TestSlowHostsOfOneOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow, honest, pages = 300, 5, 60
		addr := func(host string) netip.Addr {
			if strings.HasSuffix(host, ".com") {
				return apart(host)
			}
			return apart("h" + strings.TrimPrefix(strings.Replace(host, "good", "20", 1), "h"))
		}
		s := &fakeSite{addr: addr, serve: func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case strings.HasSuffix(r.Host, "evil.com"):
				time.Sleep(20 * time.Second)
				fmt.Fprint(w, "<a href=", r.URL.Path, "1>")
			case r.URL.Path == "/":
				for n := range pages {
					fmt.Fprintf(w, "<a href=/%d>", n)
				}
			}
		}}
		var seeds, addrs []string
		for n := range slow {
			seeds = append(seeds, fmt.Sprintf("http://h%d.evil.com/", n))
			addrs = append(addrs, apart(fmt.Sprintf("h%d.", n)).String())
		}
		for n := range honest {
			host := fmt.Sprintf("good%02d.org", n)
			seeds, addrs = append(seeds, "http://"+host+"/"), append(addrs, addr(host).String())
		}
		cfg := siteConfig(t, seeds...)
		cfg.Concurrency, cfg.Duration = 32, 5*time.Minute
		c, err := newCrawler(cfg, s.network(t, addrs...))
		require.NoError(t, err)
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
		most := int(cfg.Duration / cfg.Delay)
		require.Greater(t, len(s.requested(".org/")), honest*most*9/10)
		require.Greater(t, len(s.requested("evil.com/")), slow*3/2, "it gets what others leave")
	})
}

// TestSitemapsThatStrangersName are at most as many as their links to a host.
func TestSitemapsThatStrangersName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages, made = 30, 100
		s := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			evil := strings.HasSuffix(r.Host, "evil.com")
			switch {
			case r.URL.Path == "/robots.txt" && evil:
				for n := range made {
					fmt.Fprintf(w, "Sitemap: http://h99.victim.de/%s/%d.xml\n", r.Host, n)
				}
			case r.URL.Path == "/" && r.Host == "h99.victim.de":
				for n := range pages {
					fmt.Fprintf(w, "<a href=/%d>", n)
				}
			case strings.HasSuffix(r.URL.Path, ".xml"), r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			}
		}}
		seeds, addrs := []string{"http://h99.victim.de/"}, []string{apart("h99.").String()}
		for n := range 4 {
			host := fmt.Sprintf("h%d.evil.com", n)
			seeds, addrs = append(seeds, "http://"+host+"/"), append(addrs, apart(host).String())
		}
		cfg := siteConfig(t, seeds...)
		cfg.Sitemaps, cfg.HostPages = true, 40
		crawlSite(t, cfg, s.network(t, addrs...))
		require.Len(t, s.requested("http://h99.victim.de/"), pages+2+cfg.HostPages/8)
	})
}

// TestRobotsWithinASite: www.victim.de may have the rules of victim.de, however many strangers lead there.
func TestRobotsWithinASite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/robots.txt" && r.Host != "h201.victim.de":
				http.Redirect(w, r, "http://h201.victim.de/robots.txt", http.StatusFound)
			case r.Host == "h200.victim.de":
				fmt.Fprint(w, "<a href=/page>")
			}
		}}
		seeds, addrs := []string{}, []string{apart("h200.").String(), apart("h201.").String()}
		for n := range maxForeignRules + 10 {
			host := fmt.Sprintf("h%d.evil.com", n)
			seeds, addrs = append(seeds, "http://"+host+"/"), append(addrs, apart(host).String())
		}
		cfg := siteConfig(t, seeds...)
		web := s.network(t, addrs...)
		crawlSite(t, cfg, web)
		cfg.Seeds = append(cfg.Seeds, "http://h200.victim.de/")
		crawlSite(t, cfg, web)
		require.Len(t, s.requested("http://h200.victim.de/page"), 1)
	})
}

// TestALongerDelayCountsAtOnce, also for pages that are in the queue already.
func TestALongerDelayCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Time
		s := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			times = append(times, time.Now())
			switch r.URL.Path {
			case "/robots.txt":
				http.NotFound(w, r)
			case "/":
				for n := range 20 {
					fmt.Fprintf(w, "<a href=/%d>", n)
				}
			}
		}}
		cfg := siteConfig(t, "http://a.test/")
		cfg.OverrideFile = write(t, "b.test delay=1s\n")
		require.NoError(t, cfg.ReadOverrides())
		c, err := newCrawler(cfg, s.network(t, loopback("").String()))
		require.NoError(t, err)
		hide, err := c.Show(nil, io.Discard)
		require.NoError(t, err)
		defer hide()
		began := time.Now()
		changed := time.AfterFunc(10*cfg.Delay, func() {
			require.NoError(t, os.WriteFile(cfg.OverrideFile, []byte("a.test delay=1h\n"), 0o600))
			c.reload()
		})
		defer changed.Stop()
		require.NoError(t, c.run(t.Context()))
		require.Len(t, times, 22)
		for n, at := range times[1:] {
			if times[n].After(began.Add(11 * cfg.Delay)) {
				require.GreaterOrEqual(t, at.Sub(times[n]), time.Hour, n)
			}
		}
	})
}

// TestASeedThatLeadsElsewhereEachTime does not lead the crawl through the web, neither by itself nor by a new
// page of its own each time, nor after a restart.
func TestASeedThatLeadsElsewhereEachTime(t *testing.T) {
	for _, direct := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			visits := 0
			s := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
				n := 0
				_, _ = fmt.Sscanf(r.URL.Path, "/x%d", &n)
				switch {
				case r.URL.Path == "/robots.txt":
					http.NotFound(w, r)
				case r.Host == "seed.test" && n > 0:
					http.Redirect(w, r, fmt.Sprintf("http://v%d.test/", n), http.StatusFound)
				case r.Host == "seed.test" && direct:
					visits++
					http.Redirect(w, r, fmt.Sprintf("http://v%d.test/", visits), http.StatusFound)
				case r.Host == "seed.test":
					visits++
					http.Redirect(w, r, fmt.Sprintf("/x%d", visits), http.StatusFound)
				}
			}}
			cfg := siteConfig(t, "http://seed.test/")
			cfg.Reach, cfg.Policy, cfg.Forever, cfg.Duration = urlfilter.Host, revisit.Every(time.Hour), true, 4*time.Hour+10*time.Minute
			web := s.network(t, loopback("").String())
			for first := 1; first < 8; first = visits + 1 {
				c, err := newCrawler(cfg, web)
				require.NoError(t, err)
				require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
				require.Greater(t, visits, first+2)
				for n := first + 1; n <= visits; n++ {
					require.Empty(t, s.requested(fmt.Sprintf("http://v%d.test/", n)))
				}
			}
			require.NotEmpty(t, s.requested("http://v1.test/"))
		})
	}
}

// TestResultsThatCannotBeWritten are no success.
func TestResultsThatCannotBeWritten(t *testing.T) {
	cfg, _ := crawlForgettable(t)
	for _, args := range [][]string{{"check"}, {"explain", "http://a.test/"}, {"version"}} {
		args = append(args, "-out", cfg.Out)
		if args[0] == "version" {
			args = args[:1]
		}
		require.Equal(t, 1, command(t.Context(), args, failingWriter{}, io.Discard), args)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// TestMadeUpHostsBarNoOthers: a stranger names hosts of a domain that are not there, before its own page leads
// to those that are.
func TestMadeUpHostsBarNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			switch r.Host + r.URL.Path {
			case "evil.com/":
				for n := range 1500 {
					fmt.Fprintf(w, "<a href=http://no%d.victim.de/>", n)
				}
			case "www.victim.de/":
				fmt.Fprint(w, "<a href=/1>")
			case "www.victim.de/1":
				for n := range 5 {
					fmt.Fprintf(w, "<a href=http://dept%d.victim.de/>", n)
				}
			default:
				http.NotFound(w, r)
			}
		}}
		cfg := siteConfig(t, "http://evil.com/", "http://www.victim.de/")
		cfg.Reach, cfg.Filter.MaxDepth = urlfilter.Any, -1
		crawlSite(t, cfg, s.network(t, loopback("").String()))
		require.Len(t, s.requested("http://dept"), 5*2, "with their rules")
	})
}

// TestRulesDoNotLeadToForbiddenPages, not even of the same site.
func TestRulesDoNotLeadToForbiddenPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			switch r.Host + r.URL.Path {
			case "h200.uni.edu/robots.txt":
				http.Redirect(w, r, "http://h201.uni.edu/private/delete?all=1", http.StatusFound)
			case "h201.uni.edu/robots.txt":
				fmt.Fprint(w, "User-agent: *\nDisallow: /private/\n")
			case "h201.uni.edu/":
				fmt.Fprint(w, "<a href=http://h200.uni.edu/>")
			}
		}}
		cfg := siteConfig(t, "http://h201.uni.edu/")
		cfg.Reach, cfg.Filter.MaxDepth = urlfilter.Any, -1
		crawlSite(t, cfg, s.network(t, apart("h200.").String(), apart("h201.").String()))
		require.NotEmpty(t, s.requested("http://h200.uni.edu/robots.txt"))
		require.Empty(t, s.requested("/private/"))
	})
}

// TestStrangersNameFewHostsOfAnOwner: one page of a stranger names thousands of hosts below a wildcard in
// somebody else's DNS, all at his server, which has its own pages to give.
func TestStrangersNameFewHostsOfAnOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var honest []time.Duration
		madeup := 0
		site := &fakeSite{addr: func(host string) netip.Addr {
			if strings.HasSuffix(host, "victim.org") {
				return netip.MustParseAddr("127.2.2.2")
			}
			return netip.MustParseAddr("127.1.1.1")
		}, serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if r.Host == "www.victim.org" {
				honest = append(honest, time.Since(start))
			} else if strings.HasSuffix(r.Host, "victim.org") {
				madeup++
			}
			switch {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case r.Host == "evil.com":
				for n := range 6000 {
					fmt.Fprintf(w, "<a href=http://x%d.victim.org/>x</a>", n)
				}
			case r.Host == "www.victim.org":
				for n := range 300 {
					fmt.Fprintf(w, "<a href=/p%d>x</a>", n)
				}
			}
		}}
		cfg := siteConfig(t, "http://www.victim.org/", "http://evil.com/")
		cfg.Reach, cfg.Delay, cfg.Duration = urlfilter.Any, 5*time.Second, 12*time.Hour
		c, err := newCrawler(cfg, site.network(t, "127.1.1.1", "127.2.2.2"))
		require.NoError(t, err)
		require.NoError(t, c.run(t.Context()))
		require.Greater(t, len(honest), 300)
		require.Less(t, honest[len(honest)-1], time.Hour)
		require.LessOrEqual(t, madeup, 300)
	})
}
