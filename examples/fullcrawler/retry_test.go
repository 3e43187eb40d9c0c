package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/revisit"
)

// TestAResumedCrawlDoesNotWaitForHours: what a server has asked for in an earlier run decides whether to
// wait for its pages, as in that run.
func TestAResumedCrawlDoesNotWaitForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := 0
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			switch r.URL.Path {
			case "/robots.txt":
				http.NotFound(w, r)
				return
			case "/":
				for n := range 20 {
					fmt.Fprintf(w, "<a href=/%d>x</a>", n)
				}
			}
			if served++; served == 6 {
				w.Header().Set("Retry-After", "72000")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}}
		cfg := siteConfig(t, "http://h1.test/")
		cfg.Reach, cfg.Wait = urlfilter.Host, 3*time.Minute
		web := site.network(t, apart("h1.test").String())
		crawlSite(t, cfg, web)
		requests, start := len(site.requested("")), time.Now()
		crawlSite(t, cfg, web)
		require.Len(t, site.requested(""), requests)
		require.Less(t, time.Since(start), 2*cfg.Wait)
		time.Sleep(21 * time.Hour) // the scheduler spreads the hosts that ask for the same pause
		crawlSite(t, cfg, web)
		require.Len(t, site.requested(""), 1+21+1)
	})
}

// TestACrawlDoesNotWaitForHours for a seed that is asked again, a robots.txt of another port, pages that only
// strangers link to, or pages with hints, once their host has asked for a long pause.
func TestACrawlDoesNotWaitForHours(t *testing.T) {
	const links, hints = "<a href=http://h2.test/1>x</a><a href=http://h2.test/2>x</a>", 20
	for name, tt := range map[string]struct{ page, busy string }{
		"seed": {"", "h1.test/"}, "rules": {"", "h1.test/robots.txt"}, "strange": {links, "h2.test/1"},
		"port": {"<a href=/1>x</a><a href=https://h1.test/2>x</a>", "h1.test/1"}, "hints": {"", "h1.test/hinted/3"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var news atomic.Bool
				site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/html")
					switch {
					case r.Host+r.URL.Path == tt.busy && (name != "hints" || news.Load()):
						w.Header().Set("Retry-After", "72000")
						w.WriteHeader(http.StatusServiceUnavailable)
					case r.URL.Path == "/robots.txt" && name == "hints":
						fmt.Fprint(w, "Sitemap: http://h1.test/map.xml")
					case r.URL.Path == "/robots.txt":
						http.NotFound(w, r)
					case r.URL.Path == "/map.xml":
						w.Header().Set("Content-Type", "text/xml")
						at := time.Now()
						fmt.Fprintf(w, "<urlset><!-- %v -->", at)
						for n := 0; n < hints && news.Load(); n++ {
							fmt.Fprintf(w, "<url><loc>http://h1.test/hinted/%d</loc><lastmod>%s</lastmod></url>", n, at.Format(time.RFC3339))
						}
						fmt.Fprint(w, "</urlset>")
					case r.URL.Path == "/":
						fmt.Fprint(w, tt.page)
						for n := 0; n < hints && name == "hints"; n++ {
							fmt.Fprintf(w, "<a href=/hinted/%d>x</a>", n)
						}
					}
				}}
				cfg := siteConfig(t, "http://h1.test/")
				cfg.Wait, cfg.Policy = 3*time.Minute, sitemapsDaily{}
				web := site.network(t, apart("h1.test").String(), apart("h2.test").String())
				for range 3 {
					start := time.Now()
					crawlSite(t, cfg, web)
					require.Less(t, time.Since(start), 2*cfg.Wait)
					if name == "hints" {
						time.Sleep(day + time.Hour)
						news.Store(len(site.requested("/map.xml")) > 1)
					}
				}
			})
		})
	}
}

// TestHintsLeaveRoom: a sitemap that announces changes of all pages fills no more of the queue than other
// pages of its domain could.
func TestHintsLeaveRoom(t *testing.T) {
	const hints = 300
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			switch r.URL.Path {
			case "/robots.txt":
				fmt.Fprint(w, "Sitemap: http://h1.test/map.xml")
			case "/map.xml":
				w.Header().Set("Content-Type", "text/xml")
				at := time.Now()
				fmt.Fprintf(w, "<urlset><!-- %v -->", at)
				for n := range hints {
					fmt.Fprintf(w, "<url><loc>http://h1.test/%d</loc><lastmod>%s</lastmod></url>", n, at.Format(time.RFC3339))
				}
				fmt.Fprint(w, "</urlset>")
			}
		}}
		cfg := siteConfig(t, "http://h1.test/")
		cfg.Queue, cfg.Policy, cfg.Forever, cfg.Duration = 200, sitemapsDaily{}, true, 3*day
		c, err := newCrawler(cfg, site.network(t, apart("h1.test").String()))
		require.NoError(t, err)
		most := 0
		var watching sync.WaitGroup
		watching.Go(func() {
			time.Sleep(3337 * time.Millisecond) // so that it looks between the turns of the crawl, not within one
			for c.ending.Err() == nil {
				time.Sleep(10 * time.Second)
				most = max(most, len(c.Room))
			}
		})
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
		watching.Wait()
		require.Greater(t, len(site.requested("")), hints+20)
		require.LessOrEqual(t, most, 2+cfg.Queue/8)
	})
}

// TestWhatTheArchiveLacksIsFetchedAgain although it has not changed: the archive has lost it, or there was none.
func TestWhatTheArchiveLacksIsFetchedAgain(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			whole := 0
			site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/robots.txt":
					http.NotFound(w, r)
				case r.Header.Get("If-None-Match") != "":
					w.WriteHeader(http.StatusNotModified)
				default:
					whole++
					w.Header().Set("ETag", `"x"`)
					fmt.Fprint(w, "a page that never changes")
				}
			}}
			web := site.network(t, "127.9.9.9")
			cfg := siteConfig(t, "http://a.test/")
			if !lost {
				cfg.Archive = cockpit.NoArchive
			}
			crawlSite(t, cfg, web)
			if lost {
				files, err := filepath.Glob(filepath.Join(cfg.Out, "*.warc.gz"))
				require.NoError(t, err)
				require.NoError(t, os.Truncate(files[0], 0))
				run(t, "repair", "-out", cfg.Out)
			}
			cfg.Archive = ""
			for range 4 {
				time.Sleep(60 * day)
				crawlSite(t, cfg, web)
			}
			versions := versionsOf(t, cfg.Out, "http://a.test/")
			require.NotEmpty(t, versions)
			for _, v := range versions {
				require.NotZero(t, v.Content)
			}
			require.Equal(t, 2, whole, "once again")
		})
	}
}

// TestAHostThatWasDown for days is visited by short crawls once it is up: each of them ends before the back-off of
// that many failures would.
func TestAHostThatWasDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		site := &fakeSite{addr: loopback, serve: func(http.ResponseWriter, *http.Request) {
			if down.Load() {
				panic(http.ErrAbortHandler)
			}
		}}
		cfg := siteConfig(t, "http://a.test/")
		cfg.Policy, cfg.Wait = revisit.Every(day), 3*time.Minute
		web := site.network(t, "127.9.9.9")
		for n := range 14 {
			down.Store(0 < n && n < 7)
			before := len(site.requested(""))
			crawlSite(t, cfg, web)
			require.Greater(t, len(site.requested("")), before, n)
			time.Sleep(day + time.Hour)
			if n == 7 {
				time.Sleep(7 * day) // its page is retried then
			}
		}
	})
}
