package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/spinneret-go/spinneret/revisit"
)

// TestManyRunsAreOneCrawl stops a crawl repeatedly in fake time. Together the runs fetch each page
// once, as one run would, and obey every delay across the stops.
func TestManyRunsAreOneCrawl(t *testing.T) {
	for name, change := range map[string]func(cfg *cockpit.Config){
		"in order of discovery": func(*cockpit.Config) {},
		"by rank":               func(cfg *cockpit.Config) { cfg.ByRank = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { crawlInParts(t, change) })
		})
	}
}

func crawlInParts(t *testing.T, change func(cfg *cockpit.Config)) {
	retry := 10 * time.Minute
	web := serve(t, webtest.Options{
		Seed: 3, Hosts: 6, Addrs: 3, Pages: 12, Network: memnet.New(), Traits: func(host int) webtest.Traits {
			switch host {
			case 1:
				return webtest.Traits{Robots: webtest.Robots{CrawlDelay: time.Minute}}
			case 2:
				return webtest.Traits{Throttle: webtest.Throttle{Every: 5, Status: 429, RetryAfter: retry}}
			}
			return webtest.Traits{Redirects: 0.2}
		},
	})
	cfg := politeConfig(t, web)
	change(&cfg)
	runs := 0
	for err := errors.New("begin"); err != nil; runs++ {
		cfg.Pages = int64(3 + runs%7)
		c, opening := newCrawler(cfg, on(web))
		require.NoError(t, opening)
		if err = c.run(t.Context()); err != nil {
			require.ErrorIs(t, err, cockpit.ErrPageLimit)
		}
		require.Less(t, runs, 100, "the crawl does not end")
	}
	require.Greater(t, runs, 5)
	got := requested(web)
	sentAway := map[string]int{}
	last := map[string]webtest.Request{}
	for _, r := range web.Log() {
		if r.Status == 429 {
			sentAway[r.URL()]++
		}
		host, _ := web.Host(r.Host)
		least := 5 * time.Second
		switch before := last[r.Host]; {
		case host.Index == 1:
			least = time.Minute
		case before.Status == 429:
			least = retry
		}
		if before, ok := last[r.Host]; ok && !strings.Contains(before.Path, "robots") {
			require.GreaterOrEqual(t, r.Time.Sub(before.Time), least, "%s after %s", r.URL(), before.URL())
		}
		last[r.Host] = r
	}
	for url, n := range got {
		require.LessOrEqual(t, n, 1+sentAway[url], "requests for %s", url)
	}
	require.NotEmpty(t, sentAway)
	if cfg.ByRank {
		requireRanked(t, web, cfg)
	}
	maps.DeleteFunc(got, func(url string, _ int) bool { return !web.IsPage(url) })
	for _, url := range web.Reachable() {
		delete(got, url)
	}
	require.Empty(t, got)
}

// requireRanked requires that the saved order has all pages that any run fetched.
func requireRanked(t *testing.T, web *webtest.Web, cfg cockpit.Config) {
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	defer c.close()
	ranked := map[string]bool{}
	for _, page := range c.Order.Top(1000) {
		ranked[page.URL] = true
	}
	for _, r := range web.Log() {
		if r.Status == 200 && web.IsPage(r.URL()) {
			require.Contains(t, ranked, r.URL())
		}
	}
}

// TestVisitsAreOnTime crawls for twelve hours of fake time, in four runs.
func TestVisitsAreOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := serve(t, webtest.Options{Seed: 9, Hosts: 4, Pages: 8, Network: memnet.New()})
		cfg := politeConfig(t, web)
		cfg.Forever, cfg.Sitemaps, cfg.Policy = true, false, revisit.Every(time.Hour)
		start := time.Now()
		for range 4 {
			cfg.Duration = 3 * time.Hour
			c, err := newCrawler(cfg, on(web))
			require.NoError(t, err)
			require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
		}
		visits := visitsOf(web)
		require.Len(t, visits, len(web.Reachable()))
		for url, all := range visits {
			require.InDelta(t, time.Since(start).Hours(), len(all), 2, url)
			for i := 1; i < len(all); i++ {
				require.InDelta(t, 60, all[i].at.Sub(all[i-1].at).Minutes(), 6, url)
			}
		}
		requirePauses(t, web.Log(), cfg.Delay)
	})
}

// TestHintsBringVisitsForward crawls a web whose sitemaps report changes: pages are visited early,
// and nearly always have changed.
func TestHintsBringVisitsForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		month := stage.Clock{Began: time.Now(), Pace: 10_000} // in four minutes
		web := serve(t, webtest.Options{
			Seed: 21, Hosts: 10, Pages: 10, Network: memnet.New(), Now: month.Now, Traits: func(int) webtest.Traits {
				return webtest.Traits{
					Change:  webtest.Change{Mean: 5 * 24 * time.Hour},
					Sitemap: webtest.Sitemap{Orphans: 4},
				}
			},
		})
		cfg := testConfig(t, web)
		cfg.Pace, cfg.Forever, cfg.Duration = month.Pace, true, 4*time.Minute
		cfg.Policy = sitemapsDaily{}
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
		clock, err := stage.OpenClock(filepath.Join(cfg.Out, cockpit.BeganName), 0)
		require.NoError(t, err)
		pages, err := stage.OpenPages(cfg.Out, cockpit.PagesOptions(cfg, clock))
		require.NoError(t, err)
		visits, changes := 0, 0
		for known, err := range pages.All() {
			require.NoError(t, err)
			if known.Item.LastMod != 0 && known.Item.Sitemap == nil {
				n, found := known.State.History.Visits()
				visits, changes = visits+n, changes+found
			}
		}
		require.NoError(t, pages.Close())
		require.Greater(t, changes, 20)
		t.Log(visits, changes)
		s := c.Tally.Sum()
		require.EqualValues(t, s.Waiting, s.Fates[stage.LeftOver])
	})
}

// sitemapsDaily visits everything daily at first, and every 100 days what did not change. So it
// visits sitemaps daily: some of their pages change nearly every day.
type sitemapsDaily struct{}

func (sitemapsDaily) Next(h revisit.History) time.Duration {
	if visits, changes := h.Visits(); visits > 0 && changes == 0 {
		return 100 * 24 * time.Hour
	}
	return 24 * time.Hour
}

// TestALimitIsNoLoss continues a crawl after its disk and memory limits were reached: no page is
// missing.
func TestALimitIsNoLoss(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 5, Hosts: 10, Pages: 10})
	cfg := testConfig(t, web)
	cfg.Delay, cfg.MinFree = time.Millisecond, 1<<62
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	require.ErrorIs(t, c.OverLimit(), cockpit.ErrDiskLimit)
	c.Cfg.MinFree = 0
	require.NoError(t, c.OverLimit())
	runtime.GC()
	fullFor := 0
	c.Cfg.Memory = 1000
	for range cockpit.MemoryChecks - 1 {
		require.NoError(t, c.OverMemory(&fullFor), "large pages exceed the limit briefly")
	}
	err = c.OverMemory(&fullFor)
	require.ErrorIs(t, err, cockpit.ErrMemoryLimit)
	require.True(t, cockpit.Paused(err))
	c.Cfg.Memory = 1 << 50
	require.NoError(t, c.OverMemory(&fullFor))
	require.Zero(t, fullFor, "the count starts again")
	cfg.MinFree = 0
	c.stop = func(error) {}
	require.NoError(t, c.close())

	crawlWeb(t, web, cfg)
	got := requested(web)
	maps.DeleteFunc(got, func(url string, _ int) bool { return !web.IsPage(url) })
	require.Equal(t, web.Reachable(), slices.Sorted(maps.Keys(got)))
	again, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	defer again.close()
	_, err = newCrawler(cfg, on(web))
	require.ErrorIs(t, err, cockpit.ErrHeld, "two crawlers in one directory")
	require.ErrorContains(t, err, fmt.Sprint("process ", os.Getpid()))
}
