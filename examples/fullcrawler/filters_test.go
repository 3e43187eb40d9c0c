package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/spinneret-go/spinneret/revisit"
)

// deny gives cfg a deny list.
func deny(t *testing.T, cfg *cockpit.Config, lines ...string) {
	t.Helper()
	cfg.DenyFile = write(t, strings.Join(lines, "\n"))
	cfg.Filter.Deny = new(urlfilter.List)
	require.NoError(t, cfg.ReadDeny())
}

// TestWiderFiltersReachKnownPages runs a crawl with each narrower filter, and then without it. The
// second run fetches the remaining pages, and fetches no page again that the archive has.
func TestWiderFiltersReachKnownPages(t *testing.T) {
	for name, narrow := range map[string]func(*testing.T, *cockpit.Config){
		"scope": func(_ *testing.T, cfg *cockpit.Config) { cfg.Reach = urlfilter.Host },
		"depth": func(_ *testing.T, cfg *cockpit.Config) { cfg.Filter.MaxDepth = 1 },
		"include": func(_ *testing.T, cfg *cockpit.Config) {
			cfg.Filter.Include = []*regexp.Regexp{regexp.MustCompile("h00001")}
		},
		"exclude": func(_ *testing.T, cfg *cockpit.Config) {
			cfg.Filter.Exclude = []*regexp.Regexp{regexp.MustCompile("h0000[12]")}
		},
		"deny":       func(t *testing.T, cfg *cockpit.Config) { deny(t, cfg, "h00001.vweb.test", "h00002.vweb.test") },
		"host pages": func(_ *testing.T, cfg *cockpit.Config) { cfg.HostPages = 2 },
		"pages of hosts": func(t *testing.T, cfg *cockpit.Config) {
			cfg.Overrides = new(stage.Overrides)
			require.NoError(t, cfg.Overrides.Reload(strings.NewReader("vweb.test pages=2")))
		},
	} {
		for _, kept := range []string{"", cockpit.NoArchive} {
			t.Run(name+" "+kept, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					web := serve(t, webtest.Options{
						Seed: 50, Hosts: 4, Pages: 6, Network: memnet.New(), Traits: func(int) webtest.Traits {
							return webtest.Traits{Redirects: 0.2}
						},
					})
					cfg := politeConfig(t, web)
					cfg.Archive, cfg.Sitemaps = kept, false
					narrowed := cfg
					narrow(t, &narrowed)
					crawlWeb(t, web, narrowed)
					before := requested(web)
					require.Less(t, len(before), len(web.Reachable()))

					crawlWeb(t, web, narrowed)
					require.Equal(t, before, requested(web), "the same filters change nothing")
					crawlWeb(t, web, cfg)
					requireAllPages(t, web)
					again := requested(web)
					if kept == "" {
						for url, n := range again {
							require.Equal(t, 1, n, url)
						}
					}
					crawlWeb(t, web, narrowed)
					crawlWeb(t, web, narrowed)
					require.Equal(t, again, requested(web), "narrower filters cause no requests")
				})
			})
		}
	}
}

// TestDeniedPagesComeBack: known pages that were denied are due when they no longer are.
func TestDeniedPagesComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := serve(t, webtest.Options{Seed: 51, Hosts: 3, Pages: 6, Network: memnet.New()})
		cfg := politeConfig(t, web)
		cfg.Pages = 3
		c, err := newCrawler(cfg, on(web)) // leaves many known pages unvisited
		require.NoError(t, err)
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrPageLimit)
		cfg.Pages = 0
		denied := cfg
		deny(t, &denied, "*")
		s := crawlWeb(t, web, denied).Tally.Sum()
		require.Positive(t, s.Fates[stage.Unwanted])
		crawlWeb(t, web, cfg)
		requireAllPages(t, web)
	})
}

// TestALiftedLineConcernsFewPages: without an archive, pages are fetched again for their links. Those
// that had no link that the line denied are not.
func TestALiftedLineConcernsFewPages(t *testing.T) {
	links := map[string]string{
		"/": "<a href=/1><a href=/2><a href=/3>", "/1": "<a href=http://lifted.test/>", "/2": "<a href=http://denied.test/>",
		"/3": "<a href=/><a href=http://except.denied.test/><a href=http://lifted.test/deep/>",
	}
	for name, tt := range map[string]struct {
		lines []string
		again []string // pages of a.test
		found []string // of the other hosts
	}{
		"one of two":    {[]string{"denied.test"}, []string{"/1", "/3"}, []string{"http://lifted.test/", "http://lifted.test/deep/"}},
		"an exception":  {[]string{"denied.test", "lifted.test", "+except.denied.test"}, []string{"/1", "/2", "/3"}, []string{"http://except.denied.test/"}},
		"what is known": {[]string{"denied.test", "http://lifted.test/deep"}, []string{"/1", "/3"}, []string{"http://lifted.test/"}},
		"nothing":       {[]string{"denied.test", "lifted.test"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/robots.txt" {
						http.NotFound(w, r)
						return
					}
					if r.Host == "a.test" {
						fmt.Fprint(w, links[r.URL.Path])
					}
				}}
				web := s.network(t, loopback("").String())
				cfg := siteConfig(t, "http://a.test/")
				cfg.Archive = cockpit.NoArchive
				deny(t, &cfg, "denied.test", "# a comment", "  lifted.test  ", "unused.test")
				crawlSite(t, cfg, web)
				require.Len(t, s.requested("http://a.test/"), 5)
				deny(t, &cfg, append(tt.lines, "unused.test")...)
				crawlSite(t, cfg, web)
				deny(t, &cfg, tt.lines...) // a line that denied nothing
				crawlSite(t, cfg, web)
				var again, found []string
				for _, url := range s.requested("")[5:] {
					if path, own := strings.CutPrefix(url, "http://a.test"); own {
						again = append(again, path)
					} else if !strings.HasSuffix(url, "/robots.txt") {
						found = append(found, url)
					}
				}
				require.ElementsMatch(t, tt.again, again)
				require.ElementsMatch(t, tt.found, found)
			})
		})
	}
}

func TestWider(t *testing.T) {
	base := cockpit.Filters{
		Scope: urlfilter.Host, Depth: 5, HostPages: 100, Include: []string{"a"}, Exclude: []string{"b"},
		Deny: []string{"c.test", "+d.c.test"}, Hosts: []string{"e.test depth=2"},
	}
	for name, tt := range map[string]struct {
		change func(*cockpit.Filters)
		want   bool
	}{
		"the same":                    {func(*cockpit.Filters) {}, false},
		"a wider scope":               {func(f *cockpit.Filters) { f.Scope = urlfilter.Domain }, true},
		"a narrower scope":            {func(f *cockpit.Filters) { f.Scope = urlfilter.Page }, false},
		"a greater depth":             {func(f *cockpit.Filters) { f.Depth = 6 }, true},
		"any depth":                   {func(f *cockpit.Filters) { f.Depth = -1 }, true},
		"a smaller depth":             {func(f *cockpit.Filters) { f.Depth = 4 }, false},
		"seeds only":                  {func(f *cockpit.Filters) { f.Depth = 0 }, false},
		"more pages of a host":        {func(f *cockpit.Filters) { f.HostPages = 101 }, true},
		"any number of pages":         {func(f *cockpit.Filters) { f.HostPages = 0 }, true},
		"fewer pages":                 {func(f *cockpit.Filters) { f.HostPages = 9 }, false},
		"one more pattern to include": {func(f *cockpit.Filters) { f.Include = []string{"a", "x"} }, true},
		"no pattern to include":       {func(f *cockpit.Filters) { f.Include = nil }, true},
		"another pattern to include":  {func(f *cockpit.Filters) { f.Include = []string{"x"} }, true},
		"one more pattern to exclude": {func(f *cockpit.Filters) { f.Exclude = []string{"b", "x"} }, false},
		"no pattern to exclude":       {func(f *cockpit.Filters) { f.Exclude = nil }, true},
		"one more denied":             {func(f *cockpit.Filters) { f.Deny = append(slices.Clone(f.Deny), "x") }, false},
		"one less denied":             {func(f *cockpit.Filters) { f.Deny = f.Deny[1:] }, true},
		"one more exception":          {func(f *cockpit.Filters) { f.Deny = append(slices.Clone(f.Deny), "+x") }, true},
		"one less exception":          {func(f *cockpit.Filters) { f.Deny = f.Deny[:1] }, false},
		"a host without its override": {func(f *cockpit.Filters) { f.Hosts = nil }, true},
		"one more override":           {func(f *cockpit.Filters) { f.Hosts = append(slices.Clone(f.Hosts), "me.test depth=2") }, false},
		"an override below another":   {func(f *cockpit.Filters) { f.Hosts = append(slices.Clone(f.Hosts), "www.e.test delay=1s") }, false},
		"a wider one below another":   {func(f *cockpit.Filters) { f.Hosts = append(slices.Clone(f.Hosts), "www.e.test depth=3") }, true},
		"an override with a delay":    {func(f *cockpit.Filters) { f.Hosts = []string{"e.test delay=1s depth=2"} }, false},
		"a narrower override":         {func(f *cockpit.Filters) { f.Hosts = []string{"e.test depth=1 pages=9"} }, false},
		"a host that is off":          {func(f *cockpit.Filters) { f.Hosts = []string{"e.test off"} }, false},
		"a wider override":            {func(f *cockpit.Filters) { f.Hosts = []string{"e.test depth=3"} }, true},
		"resources":                   {func(f *cockpit.Filters) { f.Resources = true }, true},
		"sitemaps":                    {func(f *cockpit.Filters) { f.Sitemaps = true }, true},
		"private addresses":           {func(f *cockpit.Filters) { f.AnyAddress = true }, true},
		"unsimplified links":          {func(f *cockpit.Filters) { f.AsFound = true }, true},
	} {
		f := base
		tt.change(&f)
		require.Equal(t, tt.want, f.Wider(base), name)
		file := filepath.Join(t.TempDir(), cockpit.FiltersName)
		require.NoError(t, f.Write(file))
		read, known, err := cockpit.ReadFilters(file)
		require.NoError(t, err)
		require.True(t, known)
		require.Equal(t, f, read)
	}
}

// TestLongListsAreCompared in little time, at each start and reload.
func TestLongListsAreCompared(t *testing.T) {
	var f cockpit.Filters
	for n := range 80_000 {
		f.Deny = append(f.Deny, fmt.Sprintf("h%06d.example", n))
		if n < 8000 {
			f.Hosts = append(f.Hosts, fmt.Sprintf("h%06d.example pages=9", n))
		}
	}
	began := time.Now()
	require.False(t, f.Wider(f))
	require.True(t, cockpit.Filters{Hosts: f.Hosts}.Wider(f))
	require.Less(t, time.Since(began), 10*time.Second)
}

// TestACrawlDelayIsLifted: a robots.txt has a long Crawl-delay, and a day later none.
func TestACrawlDelayIsLifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a.test")
		require.NoError(t, os.Mkdir(dir, 0o777))
		file := func(name, text string) {
			at := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(at, []byte(text), 0o666))
			require.NoError(t, os.Chtimes(at, time.Now(), time.Now())) // by the bubble's clock
		}
		file("robots.txt", "User-agent: *\nCrawl-delay: 600\n")
		file("index.html", "<a href=1.html></a><a href=2.html></a>")
		file("1.html", "one")
		file("2.html", "two")
		web := serve(t, webtest.Options{Static: filepath.Dir(dir), Network: memnet.New()})
		cfg := politeConfig(t, web)
		crawlWeb(t, web, cfg)
		require.Equal(t, []time.Duration{10 * time.Minute, 10 * time.Minute}, pauses(web.Log()[1:]))

		time.Sleep(25 * time.Hour)
		seen := len(web.Log())
		file("robots.txt", "User-agent: *\nDisallow: /closed\n")
		for n := range 3 {
			file(string(rune('3'+n))+".html", "more")
		}
		cfg.Seeds = append(cfg.Seeds, "http://a.test/3.html", "http://a.test/4.html", "http://a.test/5.html")
		crawlWeb(t, web, cfg)
		require.Contains(t, web.Log()[seen].Path, "robots.txt")
		for _, pause := range pauses(web.Log()[seen+1:]) {
			require.Equal(t, cfg.Delay, pause)
		}
	})
}

func pauses(log []webtest.Request) (pauses []time.Duration) {
	for i := 1; i < len(log); i++ {
		pauses = append(pauses, log[i].Time.Sub(log[i-1].Time))
	}
	return pauses
}

// TestThePageLimitCountsPages, not redirects and errors.
func TestThePageLimitCountsPages(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 52, Hosts: 8, Pages: 12, Traits: func(int) webtest.Traits {
		return webtest.Traits{Redirects: 0.6}
	}})
	cfg := testConfig(t, web)
	cfg.Pages, cfg.Delay = 25, time.Millisecond
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	require.ErrorIs(t, c.run(t.Context()), cockpit.ErrPageLimit)
	s := c.Tally.Sum()
	require.EqualValues(t, 25, s.Pages)
	require.Positive(t, s.Fates[stage.Redirected])
	pages := requested(web)
	maps.DeleteFunc(pages, func(url string, _ int) bool { return !web.IsPage(url) })
	require.Len(t, pages, 25)
}

// TestALostLogEndsNoCrawl that starts over because a list has become wider. Once it can be opened, it is.
func TestALostLogEndsNoCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(http.ResponseWriter, *http.Request) {}}
		cfg := siteConfig(t, "http://h1.test/", "http://h2.test/")
		deny(t, &cfg, "h2.test")
		dir := filepath.Join(t.TempDir(), "log")
		cfg.LogFile, cfg.Forever, cfg.Duration = filepath.Join(dir, "log"), true, 5*time.Hour
		require.NoError(t, os.Mkdir(dir, 0o777))
		reloading(t, site, cfg, func() {
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.WriteFile(cfg.DenyFile, nil, 0o600))
		}, func() { require.NoError(t, os.Mkdir(dir, 0o777)) })
		require.Len(t, pagesOf(site, "h2.test"), 1)
		text, err := os.ReadFile(cfg.LogFile)
		require.NoError(t, err)
		require.Contains(t, string(text), "reloaded")
	})
}

// TestWiderFiltersWhileAPageFails: its links are checked again when it is back, as the archive has an error last.
func TestWiderFiltersWhileAPageFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool
		site := &fakeSite{addr: loopback, serve: func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/robots.txt", fails.Load():
				http.NotFound(w, r)
			case r.URL.Path == "/":
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<a href=/private/1>x</a>")
			}
		}}
		cfg := siteConfig(t, "http://a.test/")
		cfg.Policy = revisit.Every(day)
		deny(t, &cfg, "http://a.test/private/")
		web := site.network(t, "127.9.9.9")
		for _, down := range []bool{false, true, true} {
			if fails.Swap(down) && down {
				deny(t, &cfg)
			}
			crawlSite(t, cfg, web)
			require.Empty(t, site.requested("/private"))
			time.Sleep(3 * day)
		}
		fails.Store(false)
		crawlSite(t, cfg, web)
		require.Len(t, site.requested("/private"), 1)
	})
}
