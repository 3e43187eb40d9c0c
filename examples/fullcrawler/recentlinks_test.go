package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// linkPool returns links of all kinds that the filters or the canonical form treat differently.
func linkPool() (links []string) {
	for _, host := range []string{"a.org", "b.org", "c.org", "d.org", "off.org", "shallow.org"} {
		for n := range 30 {
			links = append(links, fmt.Sprintf("http://%s/%d", host, n), fmt.Sprintf("http://%s/deny/%d", host, n),
				fmt.Sprintf("HTTP://%s/%%7e%d?utm_source=x", host, n))
		}
		links = append(links, "http://"+host+"/x/y/x/y/x/y/x/y", "http://"+host+"/?"+strings.Repeat("p&", 40),
			"http://"+host+"/skip", "http://"+host+"/"+strings.Repeat("long", 700))
	}
	return append(links, "mailto:x", "http://", "#top", "http://no.suffix/")
}

// A lockstep feeds the same input to several crawlers, which differ in their cache of recent links.
type lockstep struct {
	t        *testing.T
	crawlers []*crawler
}

func newLockstep(t *testing.T, caches ...*dedupe.LinkCache) *lockstep {
	web := serve(t, webtest.Options{Hosts: 1, Pages: 1})
	l := &lockstep{t: t}
	for _, links := range caches {
		cfg := testConfig(t, web)
		cfg.Reach, cfg.ByRank, cfg.HostPages, cfg.Filter.MaxDepth = urlfilter.Host, true, 12, 4
		cfg.Filter.Format.AnySuffix, cfg.Filter.Deny = false, new(urlfilter.List)
		cfg.Seeds = []string{"http://a.org/", "http://b.org/", "http://off.org/", "http://shallow.org/"}
		cfg.DenyFile, cfg.SeedFile, cfg.OverrideFile = write(t, ""), write(t, ""), write(t, "")
		require.NoError(t, cfg.ReadDeny())
		require.NoError(t, cfg.ReadOverrides())
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		c.recent.links = links
		c.Hosts.Strangers = 1 << 30 // what counts as one depends on which links are known by now
		c.seed()
		l.crawlers = append(l.crawlers, c)
	}
	return l
}

func (l *lockstep) each(do func(c *crawler)) {
	for _, c := range l.crawlers {
		do(c)
	}
}

// visit passes the links of one page to each crawler.
func (l *lockstep) visit(it stage.Item, links []string) {
	body := "<a href='" + strings.Join(links, "'><a href='") + "'>"
	l.each(func(c *crawler) {
		it.Visit = &stage.Visit{}
		c.extract(it, &fetch.Response{
			URL: it.URL, Body: []byte(body), Header: http.Header{"Content-Type": {"text/html"}},
		})
	})
}

// list adds a line to a file, and makes each crawler reload its files.
func (l *lockstep) list(file func(cockpit.Config) string, line string) {
	l.each(func(c *crawler) {
		f, err := os.OpenFile(file(c.Cfg), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(l.t, err)
		_, err = fmt.Fprintln(f, line)
		require.NoError(l.t, err)
		require.NoError(l.t, f.Close())
		c.reload()
	})
}

// requireEqual compares the counts and the known pages of the crawlers.
func (l *lockstep) requireEqual() {
	want := map[string]string{}
	for i, c := range l.crawlers {
		_, err := c.commit()
		require.NoError(l.t, err)
		_, counts, _ := strings.Cut(fmt.Sprintf("%+v", c.Tally.Sum()), " ") // after the time it took
		got := map[string]string{"": fmt.Sprint(counts, c.Hosts.Count(), c.Hosts.Largest(), c.Order.Top(1<<20))}
		for page, err := range c.Pages.All() {
			require.NoError(l.t, err)
			got[page.Item.URL] = fmt.Sprintf("%+v", page)
		}
		if i == 0 {
			want = got
			continue
		}
		require.Equal(l.t, want, got, "crawler %d", i)
	}
}

// TestRecentLinksChangeNothing: without the cache, the crawl is the same.
func TestRecentLinksChangeNothing(t *testing.T) {
	l := newLockstep(t, nil, dedupe.NewLinkCache(16), dedupe.NewLinkCache(0))
	pool, random := linkPool(), rand.New(rand.NewPCG(34, 0))
	changes := map[int]func(){
		200: func() { l.list(func(cfg cockpit.Config) string { return cfg.DenyFile }, "/deny/") },
		300: func() { l.list(func(cfg cockpit.Config) string { return cfg.OverrideFile }, "off.org off") },
		400: func() { l.list(func(cfg cockpit.Config) string { return cfg.OverrideFile }, "shallow.org depth=2") },
		500: func() { l.list(func(cfg cockpit.Config) string { return cfg.SeedFile }, "http://c.org/") },
		550: func() {
			l.each(func(c *crawler) { c.redirect(stage.Item{URL: "http://a.org/", Visit: &stage.Visit{}}, "http://d.org/") })
		},
	}
	for step := range 600 {
		if change := changes[step]; change != nil {
			change()
		}
		links := make([]string, 40)
		for i := range links {
			links[i] = pool[random.IntN(len(pool))]
		}
		url := fmt.Sprintf("http://%c.org/%d", 'a'+random.IntN(3), random.IntN(30))
		l.visit(stage.Item{URL: url, Depth: random.IntN(5)}, links)
		if step%50 == 0 {
			l.requireEqual()
		}
	}
	l.requireEqual()
	s := l.crawlers[0].Tally.Sum()
	for _, why := range []stage.Reason{
		urlfilter.UnknownSuffix, urlfilter.TooLong, urlfilter.Repeating, urlfilter.ManyParams, stage.TooManyLinks,
		stage.OutOfScope, stage.Denied, stage.SwitchedOff, stage.CrowdedHost,
	} {
		require.Positive(t, s.Skipped[why], why)
	}
	for _, c := range l.crawlers {
		require.NoError(t, c.close())
	}
}

// TestACrawlWithoutRecentLinks crawls one web with the cache and without it.
func TestACrawlWithoutRecentLinks(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 3, Hosts: 12, Pages: 20, Traits: func(host int) webtest.Traits {
		return webtest.Traits{Redirects: 0.1, Sitemap: webtest.Sitemap{Orphans: host % 3}}
	}})
	results := map[bool]string{}
	for _, cached := range []bool{true, false} {
		cfg := testConfig(t, web)
		cfg.Delay = time.Millisecond
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		if !cached {
			c.recent.links = nil
		}
		require.NoError(t, c.run(t.Context()))
		_, counts, _ := strings.Cut(fmt.Sprintf("%+v", c.Tally.Sum()), " ")
		results[cached] = fmt.Sprint(counts, slices.Sorted(maps.Keys(fatesOf(t, cfg.Out))))
	}
	require.Equal(t, results[false], results[true])
}

// fatesOf returns the lines of a ledger without their times.
func fatesOf(t *testing.T, dir string) map[string]bool {
	fates := map[string]bool{}
	for _, text := range slices.DeleteFunc(lines(t, dir), func(l string) bool { return l == "" }) {
		var l cockpit.Line
		require.NoError(t, json.Unmarshal([]byte(text), &l), text)
		fates[fmt.Sprint(l.URL, l.Fate, l.Why)] = true
	}
	return fates
}
