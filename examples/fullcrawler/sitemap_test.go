package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/spinneret-go/spinneret/revisit"
)

// mapped gives every second host a sitemap, and every fourth one an index of sitemaps.
func mapped(host int) webtest.Traits {
	if host%2 == 1 {
		return webtest.Traits{}
	}
	return webtest.Traits{Sitemap: webtest.Sitemap{Orphans: 5, Index: host%4 == 0}}
}

// politeConfig configures a crawl with the command's default delays. It is for use in a bubble: in
// real time it would take too long.
func politeConfig(t *testing.T, web *webtest.Web) cockpit.Config {
	cfg := testConfig(t, web)
	cfg.Delay, cfg.Backoff = 5*time.Second, 0
	return cfg
}

// TestSitemapsLeadToTheirPages crawls in fake time: each page that a sitemap lists of its own host
// is fetched exactly once, with the usual delays, and pages of other hosts are not.
func TestSitemapsLeadToTheirPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := serve(t, webtest.Options{
			Seed: 12, Hosts: 8, Addrs: 3, Pages: 12, Traits: mapped, Network: memnet.New(),
		})
		cfg := politeConfig(t, web)
		c := crawlWeb(t, web, cfg)

		seeds, sitemaps := slices.Clone(cfg.Seeds), 0
		var orphans []string
		for host := range web.Hosts() {
			orphans = slices.AppendSeq(orphans, host.Orphans())
			if s := mapped(host.Index).Sitemap; s.Orphans > 0 {
				seeds = slices.AppendSeq(seeds, host.Pages())
				sitemaps++
				if s.Index {
					sitemaps += 2
				}
			}
		}
		want := append(web.Reachable(seeds...), orphans...)
		require.Len(t, orphans, 4*5)
		require.Greater(t, len(want), len(web.Reachable()), "some pages are only in sitemaps")
		got := requested(web)
		for url, n := range got {
			require.Equal(t, 1, n, "requests for %s", url)
		}
		maps.DeleteFunc(got, func(url string, _ int) bool { return strings.Contains(url, "/sitemap") })
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(got)))
		require.Empty(t, webtest.Violations(web.Log(),
			func(string) time.Duration { return cfg.Delay },
			func(netip.Addr) time.Duration { return cfg.Delay }))

		s := c.Tally.Sum()
		require.EqualValues(t, sitemaps, s.Fates[stage.Listed])
		require.EqualValues(t, len(want), s.Fates[stage.Fetched])
		require.EqualValues(t, 4, s.Skipped[stage.OtherServer], "each lists one page of another host")
		requireLedger(t, cfg.Out, s.Fates)
	})
}

// TestSitemapsWithinLimits varies the limits of crawls of one host.
func TestSitemapsWithinLimits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*cockpit.Config)
		listed int64
		orphan bool // at least one is fetched
	}{
		{"default", func(*cockpit.Config) {}, 3, true},
		{"disabled by flag", func(c *cockpit.Config) { c.Sitemaps = false }, 0, false},
		{"only the seeds", func(c *cockpit.Config) { c.Reach = urlfilter.Page }, 0, false},
		{"depth 1", func(c *cockpit.Config) { c.Filter.MaxDepth = 1 }, 3, true},
		{"only a directory", func(c *cockpit.Config) {
			c.Reach, c.Seeds = urlfilter.Prefix, []string{c.Seeds[0] + "orphan/0.html"}
		}, 3, true},
		{"depth 0", func(c *cockpit.Config) { c.Filter.MaxDepth = 0 }, 3, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := serve(t, webtest.Options{
					Seed: 12, Hosts: 2, Pages: 5, Traits: mapped, Network: memnet.New(),
				})
				cfg := politeConfig(t, web)
				cfg.Reach = urlfilter.Host
				tt.change(&cfg)
				s := crawlWeb(t, web, cfg).Tally.Sum()
				require.Equal(t, tt.listed, s.Fates[stage.Listed], "%v", s.Fates)
				orphan := false
				for url := range requested(web) {
					require.True(t, strings.HasPrefix(url, "http://h00000."), url)
					orphan = orphan || strings.Contains(url, "/orphan/")
				}
				require.Equal(t, tt.orphan, orphan)
				require.Zero(t, s.Waiting)
			})
		})
	}
}

// site serves files as the host a.test, and crawls it from its root.
func site(t *testing.T, files map[string]string, change func(*cockpit.Config)) (*crawler, map[string]int) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a.test"), 0o777))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.test", name), []byte(text), 0o666))
	}
	web := serve(t, webtest.Options{Static: dir, Network: memnet.New()})
	cfg := politeConfig(t, web)
	change(&cfg)
	return crawlWeb(t, web, cfg), requested(web)
}

func TestInvalidSitemaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, got := site(t, map[string]string{
			"robots.txt": "User-agent: *\nDisallow: /closed\nSitemap: /other.html\nSitemap: /none.xml\n" +
				"Sitemap: http://a.test/closed.xml\nSitemap: http://b.test/elsewhere.xml\nSitemap: /half.xml\n",
			"index.html": "<a href=other.html>", "other.html": "<!doctype html><a href=no.html>",
			"half.xml": "<urlset><url><loc>http://a.test/last.html</loc></url><url",
		}, func(cfg *cockpit.Config) { cfg.Reach = urlfilter.Host })
		s := c.Tally.Sum()
		require.Equal(t, map[stage.Fate]int64{
			stage.Fetched: 2, stage.Listed: 1, stage.Disallowed: 1, stage.ClientError: 3,
		}, s.Fates)
		require.EqualValues(t, 1, s.Skipped[stage.OutOfScope])
		require.Equal(t, map[string]int{
			"http://a.test/": 1, "http://a.test/other.html": 1, "http://a.test/none.xml": 1,
			"http://a.test/half.xml": 1, "http://a.test/last.html": 1, "http://a.test/no.html": 1,
		}, got)
	})
}

// TestPagesListedAsSitemaps: whoever names the pages of others as sitemaps hides nothing, whichever is
// read first.
func TestPagesListedAsSitemaps(t *testing.T) {
	const victims, articles = 5, 4
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			switch {
			case r.URL.Path == "/robots.txt" && r.Host == "h1.test":
				for n := range victims {
					fmt.Fprintf(w, "Sitemap: http://h%d.test/\n", n+10)
				}
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case r.Host == "h2.test" && r.URL.Path == "/":
				fmt.Fprint(w, "<a href=/list>list</a>")
			case r.Host == "h2.test":
				for n := range victims {
					fmt.Fprintf(w, "<a href=http://h%d.test/>s</a>", n+10)
				}
			case r.Host != "h1.test" && r.URL.Path == "/":
				for n := range articles {
					fmt.Fprintf(w, "<a href=/article/%d>a</a>", n)
				}
			}
		}}
		cfg := siteConfig(t, "http://h1.test/", "http://h2.test/")
		cfg.Reach, cfg.Pages = urlfilter.Any, 3+victims*(1+articles)
		addrs := []string{apart("h1.test").String(), apart("h2.test").String()}
		for n := range victims {
			addrs = append(addrs, apart(fmt.Sprintf("h%d.test", n+10)).String())
		}
		c, err := newCrawler(cfg, site.network(t, addrs...))
		require.NoError(t, err)
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrPageLimit)
		require.Len(t, site.requested("/article/"), victims*articles)
		require.Zero(t, c.Tally.Sum().Fates[stage.NoSitemap])
	})
}

// TestResourcesOfStyleSheets: a style sheet is a page whose resources are its links.
func TestResourcesOfStyleSheets(t *testing.T) {
	files := map[string]string{
		"index.html": "<link rel=stylesheet href=s.css><style>b{background:url(b.png)}</style>",
		"s.css":      "@import 't.css'; a{background:url(a.png)}", "t.css": "", "a.png": "", "b.png": "",
	}
	for _, resources := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			_, got := site(t, files, func(cfg *cockpit.Config) { cfg.Resources = resources })
			want := map[string]int{"http://a.test/": 1}
			for name := range files {
				if resources && name != "index.html" {
					want["http://a.test/"+name] = 1
				}
			}
			require.Equal(t, want, got)
		})
	}
}

// TestSitemapsAreSwitchedOff between two runs: known ones are not requested, until they are switched on again.
func TestSitemapsAreSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/robots.txt":
				fmt.Fprint(w, "Sitemap: http://a.test/map.xml")
			case "/map.xml":
				fmt.Fprint(w, "<urlset><url><loc>http://a.test/x</loc></url></urlset>")
			}
		}}
		cfg := siteConfig(t, "http://a.test/")
		cfg.Policy = revisit.Every(day)
		web := site.network(t, "127.9.9.9")
		for _, step := range []struct {
			on    bool
			reads int
		}{{true, 1}, {false, 1}, {false, 1}, {true, 2}} {
			cfg.Sitemaps = step.on
			crawlSite(t, cfg, web)
			require.Len(t, site.requested("/map.xml"), step.reads)
			time.Sleep(day + time.Hour)
		}
		require.Len(t, site.requested("/x"), 4)
	})
}
