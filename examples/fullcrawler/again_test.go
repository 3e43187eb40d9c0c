package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/revisit"
)

const day = 24 * time.Hour

// TestHintsForACrowdedHost: a sitemap says that a known page has changed. That is no new page, so it
// does not matter how many links of the host are known.
func TestHintsForACrowdedHost(t *testing.T) {
	for name, limit := range map[string]int{"with room": 0, "crowded": 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var modified atomic.Bool
				site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/robots.txt":
						fmt.Fprint(w, "Sitemap: http://a.test/map.xml")
					case "/map.xml":
						at := time.Now()
						fmt.Fprintf(w, "<urlset><!-- %v -->", at)
						if modified.Load() {
							fmt.Fprintf(w, "<url><loc>http://a.test/x3</loc><lastmod>%s</lastmod></url>", at.Format(time.RFC3339))
						}
						fmt.Fprint(w, "</urlset>")
					case "/":
						for n := range 60 {
							fmt.Fprintf(w, "<a href=/x%d>x</a>", n)
						}
					}
				}}
				cfg := siteConfig(t, "http://a.test/")
				cfg.HostPages, cfg.Policy = limit, sitemapsDaily{}
				web := site.network(t, "127.9.9.9")
				for range 2 {
					c := crawlSite(t, cfg, web)
					require.Equal(t, limit > 0, c.Hosts.IsCrowded("http://a.test/"))
					time.Sleep(day + time.Hour)
				}
				before := len(site.requested("/x3"))
				modified.Store(true)
				time.Sleep(2 * time.Second)
				pages := len(site.requested("/x"))
				crawlSite(t, cfg, web)
				require.Len(t, site.requested("/x3"), before+1)
				require.Len(t, site.requested("/x"), pages+1, "nothing else is due")
			})
		})
	}
}

// TestOffLeavesTheHistory of a page: once the host is on again, its pages are revisited like any others.
func TestOffLeavesTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conditional atomic.Int64
		site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") != "" {
				conditional.Add(1)
				w.WriteHeader(http.StatusNotModified)
			}
		}}
		cfg := siteConfig(t, "http://a.test/")
		cfg.Policy, cfg.OverrideFile, cfg.Overrides = sitemapsDaily{}, write(t, ""), &stage.Overrides{}
		web := site.network(t, "127.9.9.9")
		override := func(line string) { require.NoError(t, cfg.Overrides.Reload(strings.NewReader(line))) }
		for _, line := range []string{"", "", "a.test off", ""} {
			override(line)
			crawlSite(t, cfg, web)
			time.Sleep(101 * day)
		}
		require.EqualValues(t, 2, conditional.Load(), "its validators are known")
		pages := openPagesOf(t, cfg)
		page, err := pages.Find("http://a.test/")
		require.NoError(t, err)
		visits, _ := page.State.History.Visits()
		require.Equal(t, 2, visits, "the intervals between three visits")
		require.NoError(t, pages.Close())
	})
}

func openPagesOf(t *testing.T, cfg cockpit.Config) *stage.Pages {
	t.Helper()
	pages, err := stage.OpenPages(cfg.Out, cockpit.PagesOptions(cfg, stage.Clock{Began: time.Now(), Pace: 1}))
	require.NoError(t, err)
	return pages
}

// TestASeedThatRedirectsElsewhere: where a seed leads is in the scope for as long as it leads there.
func TestASeedThatRedirectsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to atomic.Value
		to.Store("http://parking.test")
		site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case r.Host == "a.test":
				http.Redirect(w, r, to.Load().(string), http.StatusFound)
			default:
				fmt.Fprintf(w, "<p>%s at %v<a href=/more>more</a>", r.Host, time.Now())
			}
		}}
		cfg := siteConfig(t, "http://a.test/")
		cfg.Reach, cfg.Policy = urlfilter.Host, revisit.Every(day)
		web := site.network(t, "127.9.9.9")
		for _, tt := range []struct {
			to              string
			parking, honest int
		}{
			{"http://parking.test", 2, 0},
			{"http://parking.test", 4, 0},
			{"http://honest.test", 6, 2}, // learned during that run
			{"http://honest.test", 6, 4},
			{"http://honest.test", 6, 6},
		} {
			to.Store(tt.to)
			crawlSite(t, cfg, web)
			time.Sleep(day + time.Hour)
			require.Len(t, pagesOf(site, "parking.test"), tt.parking)
			require.Len(t, pagesOf(site, "honest.test"), tt.honest)
		}
	})
}

// pagesOf returns the requests for pages of a host.
func pagesOf(site *fakeSite, host string) (urls []string) {
	for _, url := range site.requested(host) {
		if !strings.HasSuffix(url, "/robots.txt") {
			urls = append(urls, url)
		}
	}
	return urls
}

// TestAPauseOutlivesTheRun: a host that the operator has paused is not visited after a restart.
func TestAPauseOutlivesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
			}
		}}
		cfg := siteConfig(t, "http://h1.test/", "http://h2.test/")
		web := site.network(t, apart("h1.test").String(), apart("h2.test").String())
		post := func(c *crawler, path string) {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(url.Values{"host": {"h1.test"}}.Encode()))
			r.Host = "127.0.0.1"
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			answer := httptest.NewRecorder()
			c.StatusHandler("127.0.0.1:0").ServeHTTP(answer, r)
			require.Equal(t, http.StatusNoContent, answer.Code, answer.Body)
		}
		c, err := newCrawler(cfg, web)
		require.NoError(t, err)
		post(c, "/api/pause")
		require.NoError(t, c.close())
		c, err = newCrawler(cfg, web)
		require.NoError(t, err)
		time.AfterFunc(time.Hour, func() {
			require.Empty(t, pagesOf(site, "h1.test"))
			require.Len(t, pagesOf(site, "h2.test"), 1)
			post(c, "/api/resume")
		})
		require.NoError(t, c.run(t.Context()))
		require.Len(t, pagesOf(site, "h1.test"), 1)
		c, err = newCrawler(cfg, web)
		require.NoError(t, err)
		require.False(t, c.Paused.Has("h1.test"))
		require.NoError(t, c.close())
	})
}

// TestDamagedPauses: a start names the repair, which keeps those before the damage.
func TestDamagedPauses(t *testing.T) {
	cfg := siteConfig(t, "http://h1.test/")
	c, err := newCrawler(cfg, stage.Network{})
	require.NoError(t, err)
	require.NoError(t, c.close())
	data, err := stage.AppendEntries(nil, slices.Values([]string{"h1.test", "h2.test"}))
	require.NoError(t, err)
	file := filepath.Join(cfg.Out, cockpit.PausedName)
	require.NoError(t, os.WriteFile(file, append(data, "damage"...), 0o600))
	_, err = newCrawler(cfg, stage.Network{})
	require.ErrorContains(t, err, "fullcrawler repair -out "+cfg.Out)
	require.NotContains(t, err.Error(), "remove", "which would resume all hosts")
	run(t, "repair", "-out", cfg.Out)
	c, err = newCrawler(cfg, stage.Network{})
	require.NoError(t, err)
	require.True(t, c.Paused.Has("h1.test") && c.Paused.Has("h2.test"))
	require.NoError(t, c.close())
}

// TestASeedThatIsKnownBecomesOne at a restart and by a reload: its links count from there.
func TestASeedThatIsKnownBecomesOne(t *testing.T) {
	for _, reloaded := range []bool{false, true} {
		for _, archive := range []string{"gzip", cockpit.NoArchive} {
			synctest.Test(t, func(t *testing.T) {
				site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/html")
					switch r.URL.Path {
					case "/robots.txt":
						http.NotFound(w, r)
					case "/":
						fmt.Fprint(w, "<a href=/section/>s</a>")
					case "/section/":
						for n := range 10 {
							fmt.Fprintf(w, "<a href=/section/%d>s</a>", n)
						}
					}
				}}
				cfg := siteConfig(t, "http://h1.test/")
				cfg.Reach, cfg.Filter.MaxDepth, cfg.Archive = urlfilter.Host, 1, archive
				web := site.network(t, apart("h1.test").String())
				crawlSite(t, cfg, web)
				require.Len(t, site.requested("/section/"), 1)
				time.Sleep(time.Hour)
				if reloaded {
					cfg.SeedFile = filepath.Join(t.TempDir(), "seeds")
					require.NoError(t, os.WriteFile(cfg.SeedFile, []byte("http://h1.test/section/\n"), 0o600))
					cfg.Forever, cfg.Duration = true, 10*time.Minute
					c, err := newCrawler(cfg, web)
					require.NoError(t, err)
					time.AfterFunc(time.Minute, c.reload)
					require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
				} else {
					cfg.Seeds = append(cfg.Seeds, "http://h1.test/section/")
					crawlSite(t, cfg, web)
				}
				visits := 1 + 10
				if archive == cockpit.NoArchive {
					visits++ // its links are not known otherwise
				}
				require.Len(t, site.requested("/section/"), visits)
				requests := len(site.requested(""))
				crawlSite(t, siteAgain(cfg), web)
				require.Len(t, site.requested(""), requests, "nothing is done twice")
			})
		}
	}
}

func siteAgain(cfg cockpit.Config) cockpit.Config {
	cfg.Forever, cfg.Duration = false, 0
	return cfg
}

// TestStrangersDoNotMakePagesDeep: a page counts from its own site, however far away strangers have linked
// to it before.
func TestStrangersDoNotMakePagesDeep(t *testing.T) {
	for _, archive := range []string{"gzip", cockpit.NoArchive} {
		synctest.Test(t, func(t *testing.T) {
			site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				var n int
				_, section := fmt.Sscanf(r.URL.Path, "/section/%d", &n)
				depth, _ := strconv.Atoi(r.URL.Path[1:])
				switch {
				case r.URL.Path == "/robots.txt":
					http.NotFound(w, r)
				case r.Host == "h1.test" && depth < 3:
					fmt.Fprintf(w, "<a href=/%d>x</a>", depth+1)
				case r.Host == "h1.test":
					for n := range 20 {
						fmt.Fprintf(w, "<a href=http://h2.test/section/%d>s</a>", n)
					}
				case r.URL.Path == "/":
					for n := range 10 {
						fmt.Fprintf(w, "<a href=/filler/%d>s</a>", n)
					}
					fmt.Fprint(w, "<a href=/list>list</a>")
				case r.URL.Path == "/list":
					for n := range 20 {
						fmt.Fprintf(w, "<a href=/section/%d>s</a>", n)
					}
				case section == nil:
					for i := range 3 {
						fmt.Fprintf(w, "<a href=/article/%d-%d>a</a>", n, i)
					}
				}
			}}
			cfg := siteConfig(t, "http://h1.test/", "http://h2.test/")
			cfg.Reach, cfg.Filter.MaxDepth, cfg.Archive = urlfilter.Host, 4, archive
			crawlSite(t, cfg, site.network(t, apart("h1.test").String(), apart("h2.test").String()))
			require.Len(t, site.requested("/article/"), 60)
			require.LessOrEqual(t, len(site.requested("/section/")), 40)
			if archive == "gzip" {
				require.Len(t, site.requested("/section/"), 20)
			}
		})
	}
}

// TestAFarLinkToANearPage by a stranger, before a farther one of its own site, causes no visit: the page was nearer
// all the time.
func TestAFarLinkToANearPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			var n int
			if _, err := fmt.Sscanf(r.URL.Path, "/c%d", &n); err == nil && n < 13 {
				fmt.Fprintf(w, "<a href=/c%d>next</a>", n+1)
			}
			switch {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case r.URL.Path == "/":
				fmt.Fprint(w, "<a href=/page>x</a><a href=/c1>x</a><a href=http://h2.test/c1>x</a>")
			case r.Host == "h1.test" && n == 9, r.Host == "h2.test" && n == 12:
				fmt.Fprint(w, "<a href=http://h1.test/page>x</a>")
			case r.Host == "h1.test":
				time.Sleep(10 * time.Second) // the stranger is faster
			}
		}}
		cfg := siteConfig(t, "http://h1.test/")
		cfg.Archive, cfg.Filter.MaxDepth, cfg.Timeout = cockpit.NoArchive, 20, time.Minute
		crawlSite(t, cfg, site.network(t, apart("h1.").String(), apart("h2.").String()))
		require.Len(t, site.requested("h2.test/c13"), 1)
		require.Len(t, site.requested("h1.test/page"), 1)
	})
}

// TestALargerMaxBody: what was cut is requested in full, but not again and again what is still too long.
func TestALargerMaxBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := 0
		site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case r.URL.Path == "/" && r.Header.Get("If-None-Match") != "":
				w.WriteHeader(http.StatusNotModified)
			case r.URL.Path == "/":
				full++
				w.Header().Set("Content-Type", "text/html")
				w.Header().Set("Etag", `"1"`)
				fmt.Fprint(w, strings.Repeat("x ", 5000), "<a href=/behind>x</a>")
			}
		}}
		cfg := siteConfig(t, "http://a.test/")
		cfg.Policy = revisit.Every(day)
		web := site.network(t, "127.9.9.9")
		for n, most := range []int64{4000, 4000, 8000, 8000, 1 << 20, 1 << 20} {
			cfg.MaxBody = most
			crawlSite(t, cfg, web)
			require.Equal(t, 1+n/2, full)
			time.Sleep(day + time.Hour)
		}
		require.NotEmpty(t, site.requested("/behind"))
	})
}
