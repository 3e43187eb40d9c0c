package main

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// serve starts a web that is closed when the test ends.
func serve(t *testing.T, o webtest.Options) *webtest.Web {
	t.Helper()
	web, err := webtest.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { web.Close() })
	return web
}

// on routes all requests to a virtual web.
func on(web *webtest.Web) stage.Network { return cockpit.On(web) }

// newCrawler locks the output directory and assembles a crawler.
func newCrawler(cfg cockpit.Config, web stage.Network) (*crawler, error) {
	dir, err := cfg.Claim()
	if err != nil {
		return nil, err
	}
	return openCrawler(dir, cfg, web)
}

// testConfig configures a crawl of a virtual web from the root of its first host.
func testConfig(t *testing.T, web *webtest.Web) cockpit.Config {
	t.Helper()
	cfg := cockpit.Config{
		Agent:       "spinneret",
		Out:         t.TempDir(),
		Delay:       20 * time.Millisecond,
		Backoff:     40 * time.Millisecond,
		Reach:       urlfilter.Any,
		Sitemaps:    true,
		Queue:       100_000,
		Concurrency: 16,
		Timeout:     10 * time.Second,
		MaxBody:     1 << 20,
		Bounds:      fetch.Loopback,
	}
	cfg.Filter.MaxDepth, cfg.Filter.Format.AnySuffix = -1, true
	for host := range web.Hosts() {
		cfg.Seeds = append(cfg.Seeds, host.URL())
		break
	}
	return cfg
}

// crawlWeb runs a crawl to its end.
func crawlWeb(t *testing.T, web *webtest.Web, cfg cockpit.Config) *crawler {
	t.Helper()
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	require.NoError(t, c.run(t.Context()))
	return c
}

// requested counts the requests for each URL except robots.txt.
func requested(web *webtest.Web) map[string]int {
	counts := map[string]int{}
	for _, r := range web.Log() {
		if !strings.Contains(r.Path, "robots") {
			counts[r.URL()]++
		}
	}
	return counts
}

func TestCrawlFetchesEveryAllowedPageOnce(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 1, Hosts: 36, Addrs: 15, Pages: 8, Traits: webtest.Mixed})
	cfg := testConfig(t, web)
	c := crawlWeb(t, web, cfg)

	want := web.Reachable()
	require.NotEmpty(t, want)
	got := requested(web)
	for url, n := range got {
		require.Equal(t, 1, n, "requests for %s", url)
	}
	maps.DeleteFunc(got, func(url string, _ int) bool { return !web.IsPage(url) })
	require.Equal(t, want, slices.Sorted(maps.Keys(got)))

	s := c.Tally.Sum()
	require.EqualValues(t, len(want), s.Fates[stage.Fetched])
	require.EqualValues(t, len(want), s.Pages)
	require.Zero(t, s.Waiting)
	require.Positive(t, s.Fates[stage.Redirected])
	require.Positive(t, s.Fates[stage.Disallowed])
	require.Positive(t, s.Fates[stage.RobotsUnreachable])
	require.Positive(t, s.Fates[stage.Refused])
	requireLedger(t, cfg.Out, s.Fates)
}

// requireLedger compares the ledger with the counts.
func requireLedger(t *testing.T, dir string, want map[stage.Fate]int64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, cockpit.LedgerName))
	require.NoError(t, err)
	got, urls := map[stage.Fate]int64{}, map[string]bool{}
	for text := range strings.Lines(string(text)) {
		var l cockpit.Line
		require.NoError(t, json.Unmarshal([]byte(text), &l), text)
		fate, url, why := l.Fate, l.URL, l.Why
		require.False(t, urls[url], "%s has two fates", url)
		urls[url] = true
		got[fate]++
		switch fate {
		case stage.Disallowed:
			require.Regexp(t, `^line \d+ of http://[^/]+/robots.txt: /`, why)
		case stage.Refused:
			require.Contains(t, why, "connection refused")
		case stage.Redirected:
			require.Contains(t, why, "http://")
		}
	}
	require.Equal(t, want, got)
}

// TestCrawlIsPolite checks the default delays in the server's log, in fake time. They are exact:
// the crawler counts them from the first byte of a response.
func TestCrawlIsPolite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := serve(t, webtest.Options{
			Seed: 2, Hosts: 24, Addrs: 9, Pages: 6, Network: memnet.New(),
			Traits: func(host int) webtest.Traits {
				traits := webtest.Mixed(host)
				traits.Robots.CrawlDelay *= 100 // to 10 s
				return traits
			},
		})
		cfg := politeConfig(t, web)
		crawlWeb(t, web, cfg)

		crawlDelay := map[string]time.Duration{}
		for host := range web.Hosts() {
			traits := webtest.Mixed(host.Index)
			if traits.Robots.Mode == webtest.RobotsRules {
				crawlDelay[host.Name] = 100 * traits.Robots.CrawlDelay
			}
		}
		log := web.Log()
		require.NotEmpty(t, log)
		require.Empty(t, webtest.Violations(log,
			func(host string) time.Duration { return max(cfg.Delay, crawlDelay[host]) },
			func(netip.Addr) time.Duration { return cfg.Delay },
		))
		agents := map[string]bool{}
		for _, r := range log {
			agents[r.UserAgent] = true
		}
		require.Len(t, agents, 1)
	})
}

func TestCrawlArchivesEveryResponse(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 3, Hosts: 6, Pages: 5, Traits: webtest.Mixed})
	cfg := testConfig(t, web)
	crawlWeb(t, web, cfg)

	want := map[string]int{}
	for _, r := range web.Log() {
		want[r.URL()]++
	}
	got := map[string]int{}
	client := &http.Client{Transport: &http.Transport{DialContext: web.Dial, DisableCompression: true}}
	for _, rec := range readArchive(t, cfg.Out) {
		if rec.kind != "response" {
			continue
		}
		got[rec.url]++
		if web.IsPage(rec.url) {
			require.Equal(t, served(t, client, rec.url), rec.page(t), rec.url)
		}
	}
	require.Equal(t, want, got)
}

func TestCrawlSurvivesHostileHosts(t *testing.T) {
	synctest.Test(t, surviveHostileHosts)
}

func surviveHostileHosts(t *testing.T) {
	web := serve(t, webtest.Options{Seed: 4, Hosts: 3, Pages: 5, Network: memnet.New(), Traits: func(host int) webtest.Traits {
		switch host {
		case 0:
			// Hosts with a long Retry-After have their own test.
			away := webtest.TrapTooMany | webtest.TrapUnavailable
			return webtest.Traits{Traps: webtest.TrapAll &^ webtest.TrapSession &^ away}
		case 1:
			return webtest.Traits{Traps: webtest.TrapSession}
		}
		return webtest.Traits{}
	}})
	cfg := politeConfig(t, web)
	cfg.MaxBody = 200_000
	cfg.Filter.MaxDepth = 12
	cfg.HostPages = 150
	c := crawlWeb(t, web, cfg)

	s := c.Tally.Sum()
	require.Zero(t, s.Waiting, "every URL has a fate")
	for fate, least := range map[stage.Fate]int64{
		stage.Cut:              4, // huge, endless, bomb, short
		stage.TimedOut:         1, // never answers
		stage.NotHTTP:          1,
		stage.Oversized:        1, // endless header
		stage.OddStatus:        1, // redirect without a Location
		stage.TooManyRedirects: 1,
		stage.HostFull:         1, // sessions without end
	} {
		require.GreaterOrEqual(t, s.Fates[fate], least, "%s in %v", fate, s.Fates)
	}
	require.Positive(t, s.Skipped[stage.TooManyLinks], "the calendar ends")
	require.Subset(t, slices.Collect(maps.Keys(requested(web))), web.Reachable(), "the good pages are there")
	readArchive(t, cfg.Out)
}

// TestCrawlObeysRetryAfter checks in the server's log that each Retry-After is obeyed.
func TestCrawlObeysRetryAfter(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) { sendAway(t, status, 20*time.Minute) })
	}
}

func sendAway(t *testing.T, status int, retry time.Duration) {
	traits := func(host int) webtest.Traits {
		if host == 1 {
			return webtest.Traits{}
		}
		return webtest.Traits{Throttle: webtest.Throttle{Every: 4, Status: status, RetryAfter: retry}}
	}
	web := serve(t, webtest.Options{
		Seed: 10, Hosts: 2, Pages: 8, Traits: traits, Network: memnet.New(),
	})
	cfg := politeConfig(t, web)
	cfg.Wait = 2 * retry // else the crawl ends without the host's other pages
	crawlWeb(t, web, cfg)
	last, sentAway := map[string]webtest.Request{}, 0
	for _, r := range web.Log() {
		if before := last[r.Host]; before.Status == status {
			sentAway++
			require.GreaterOrEqual(t, r.Time.Sub(before.Time), retry, "%s after %s", r.URL(), before.URL())
		}
		last[r.Host] = r
	}
	require.Positive(t, sentAway, "status %d", status)
}

func TestCrawlStopsAtThePageLimit(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 5, Hosts: 10, Pages: 10})
	cfg := testConfig(t, web)
	cfg.Pages = 17
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	require.ErrorIs(t, c.run(t.Context()), cockpit.ErrPageLimit)

	s := c.Tally.Sum()
	require.EqualValues(t, 17, s.Pages)
	require.Equal(t, s.Waiting, s.Fates[stage.LeftOver])
	require.Positive(t, s.Waiting)
}

// TestCrawlEndsCleanly interrupts a running crawl: the archive is valid, and contains all pages
// that count as fetched.
func TestCrawlEndsCleanly(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 6, Hosts: 20, Pages: 20})
	cfg := testConfig(t, web)
	cfg.Delay = time.Millisecond
	ctx, interrupt := context.WithCancel(t.Context())
	var dials atomic.Int64
	wrapped := on(web)
	dial := wrapped.Dial
	wrapped.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) == 10 {
			interrupt()
		}
		return dial(ctx, network, addr)
	}
	c, err := newCrawler(cfg, wrapped)
	require.NoError(t, err)
	require.ErrorIs(t, c.run(ctx), cockpit.ErrStopped)

	s, pages := c.Tally.Sum(), int64(0)
	for _, rec := range readArchive(t, cfg.Out) {
		if rec.kind == "response" && web.IsPage(rec.url) {
			pages++
		}
	}
	require.Equal(t, s.Pages, pages)
	require.Positive(t, s.Fates[stage.LeftOver])
}

func TestASecondCrawlNeedsNoDNS(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 11, Hosts: 12, Pages: 3})
	cfg := testConfig(t, web)
	cfg.Delay = time.Millisecond
	require.EqualValues(t, 12, crawlWeb(t, web, cfg).Resolver.Stats().Loads, "one lookup a host")
	cfg.Fresh = true
	require.Zero(t, crawlWeb(t, web, cfg).Resolver.Stats().Loads)
}

// TestOrderByRankFetchesTheSame: ranking changes only the order, whatever the traits of the hosts.
func TestOrderByRankFetchesTheSame(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 5, Hosts: 10, Pages: 12, Traits: func(host int) webtest.Traits {
		return webtest.Traits{Redirects: 0.2, Sitemap: webtest.Sitemap{Orphans: host % 3}, Refuse: host == 7}
	}})
	cfg := testConfig(t, web)
	cfg.Delay, cfg.Sitemaps = time.Millisecond, true
	found := crawlWeb(t, web, cfg).Tally.Sum().Fates
	cfg.Out, cfg.ByRank = t.TempDir(), true
	c := crawlWeb(t, web, cfg)
	require.Equal(t, found, c.Tally.Sum().Fates)
	require.Greater(t, found[stage.Fetched], int64(90))
	_, left := c.Order.Next()
	require.False(t, left)
}

// TestASecondCrawlKnowsTheRules: the rules and the sitemaps of each robots.txt are saved.
func TestASecondCrawlKnowsTheRules(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 11, Hosts: 6, Pages: 4, Traits: func(int) webtest.Traits {
		return webtest.Traits{Sitemap: webtest.Sitemap{Orphans: 2}}
	}})
	cfg := testConfig(t, web)
	cfg.Delay, cfg.Sitemaps = time.Millisecond, true
	rules := func() (n int) {
		for _, r := range web.Log() {
			if r.Path == "/robots.txt" {
				n++
			}
		}
		return n
	}
	first := crawlWeb(t, web, cfg).Tally.Sum().Fates
	require.Equal(t, 6, rules())
	require.Positive(t, first[stage.Listed])
	cfg.Fresh = true
	require.Equal(t, first, crawlWeb(t, web, cfg).Tally.Sum().Fates)
	require.Equal(t, 6, rules(), "no robots.txt was fetched again")
}

func TestUnreachableSeeds(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 7, Hosts: 2, Pages: 2, Traits: func(host int) webtest.Traits {
		return webtest.Traits{Refuse: host == 1}
	}})
	cfg := testConfig(t, web)
	cfg.BadSeeds = 3
	for host := range web.Hosts() {
		if host.Index == 1 {
			cfg.Seeds = append(cfg.Seeds, host.URL(), host.URL()+"other")
		}
	}
	cfg.Seeds = append(cfg.Seeds, "http://no-such-host.test/", "http://8.8.8.8/")
	s := crawlWeb(t, web, cfg).Tally.Sum()
	require.EqualValues(t, 3, s.Skipped[urlfilter.NotURL])
	require.GreaterOrEqual(t, s.Fates[stage.Refused], int64(2))
	require.EqualValues(t, 1, s.Fates[stage.UnknownHost])
	require.EqualValues(t, 1, s.Fates[stage.BlockedAddress])
	require.Positive(t, s.Fates[stage.Fetched])
}

func TestAnUnreachableRobotsForbidsTheHost(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 9, Hosts: 1, Traits: func(int) webtest.Traits {
		return webtest.Traits{Robots: webtest.Robots{Mode: webtest.RobotsTimeout}}
	}})
	cfg := testConfig(t, web)
	cfg.Timeout = 100 * time.Millisecond
	s := crawlWeb(t, web, cfg).Tally.Sum()
	require.Equal(t, map[stage.Fate]int64{stage.RobotsUnreachable: 1}, s.Fates)
	require.Len(t, web.Log(), 1)
}

func TestARedirectedSeedWidensTheScope(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 8, Hosts: 3, Pages: 4, Traits: func(host int) webtest.Traits {
		return webtest.Traits{Traps: webtest.TrapAway}
	}})
	cfg := testConfig(t, web)
	cfg.Reach = urlfilter.Host
	cfg.Seeds = []string{cfg.Seeds[0] + "trap/away"} // redirects to the next host
	crawlWeb(t, web, cfg)
	hosts := map[string]bool{}
	for _, r := range web.Log() {
		hosts[r.Host] = true
	}
	require.Len(t, hosts, 2, "redirects of other pages do not widen it")
}
