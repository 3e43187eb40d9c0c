package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// TestHostsOfOneGroupShareADelay: with -group domain these are the hosts of a domain, with a file
// those on one line, and without the flag none.
func TestHostsOfOneGroupShareADelay(t *testing.T) {
	one := func(host string) string { return host }
	for name, tt := range map[string]struct {
		group   string
		groupOf func(host string) string
	}{
		"none":   {"", one},
		"domain": {"domain", func(string) string { return "vweb.test" }}, // all hosts of the web are below it
		"file": {write(t, "# two owners\nh00000.vweb.test h00001.vweb.test h00002.vweb.test\n"+
			"h00003.vweb.test\th00004.vweb.test # the last line\n"), func(host string) string {
			switch {
			case host <= "h00002.vweb.test":
				return "first"
			case host <= "h00004.vweb.test":
				return "second"
			}
			return host
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := serve(t, webtest.Options{Seed: 2, Hosts: 7, Addrs: 7, Pages: 4, Network: memnet.New()})
				cfg := politeConfig(t, web)
				flags, err := cockpit.ParseFlags([]string{"-group", tt.group, "http://127.0.0.1/"}, io.Discard)
				require.NoError(t, err)
				cfg.Group = flags.Group
				crawlWeb(t, web, cfg)
				requireAllPages(t, web)
				last := map[string]time.Time{} // by group
				var lastOfAll time.Time
				early := 0
				for _, r := range web.Log() {
					group := tt.groupOf(r.Host)
					if at, before := last[group]; before {
						require.GreaterOrEqual(t, r.Time.Sub(at), cfg.Delay, r.Host)
					}
					if !lastOfAll.IsZero() && r.Time.Sub(lastOfAll) < cfg.Delay {
						early++
					}
					last[group], lastOfAll = r.Time, r.Time
				}
				require.Equal(t, len(last) == 1, early == 0, "groups do not wait for each other")
			})
		})
	}
}

// TestOverrides: they apply to a host and its subdomains, and are reloaded.
func TestOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var n int
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<a href=/%d>", min(n+1, 3))
		})
		web := serve(t, webtest.Options{
			Seed: 2, Hosts: 4, Addrs: 4, Pages: 6, Network: memnet.New(),
			Handlers: map[string]http.Handler{"chain.test": chain},
		})
		cfg := politeConfig(t, web)
		cfg.Seeds = append(cfg.Seeds, "http://chain.test/0")
		cfg.OverrideFile = filepath.Join(t.TempDir(), "overrides")
		text := "h00001.vweb.test off # its owner asked\nh00002.vweb.test delay=30s\nchain.test depth=1\n"
		require.NoError(t, os.WriteFile(cfg.OverrideFile, []byte(text), 0o666))
		require.NoError(t, cfg.ReadOverrides())
		c := crawlWeb(t, web, cfg)
		require.Positive(t, c.Tally.Sum().Skipped[stage.SwitchedOff])
		require.Positive(t, c.Tally.Sum().Skipped[stage.TooManyLinks])
		slow := 0
		for _, r := range web.Log() {
			require.NotEqual(t, "h00001.vweb.test", r.Host)
			if r.Host == "chain.test" {
				require.Contains(t, []string{"/robots.txt", "/0", "/1"}, r.Path)
			}
			if r.Host == "h00002.vweb.test" {
				slow++
			}
		}
		require.Greater(t, slow, 2)
		require.Empty(t, webtest.Violations(web.Log(), func(host string) time.Duration {
			if host == "h00002.vweb.test" {
				return 30 * time.Second
			}
			return cfg.Delay
		}, func(netip.Addr) time.Duration { return cfg.Delay }))

		require.NoError(t, os.WriteFile(cfg.OverrideFile, nil, 0o666))
		require.NoError(t, cfg.ReadOverrides())
		crawlWeb(t, web, cfg) // the excluded links are checked again
		requireAllPages(t, web)
	})
}

// TestASharedAddressHasNoDelay if the operator says that it is one. Others count as one server, whose
// hosts share the delay.
func TestASharedAddressHasNoDelay(t *testing.T) {
	const hosts = 24
	for _, shared := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := webtest.Options{Network: memnet.New(), Addrs: 1, Handlers: map[string]http.Handler{}}
			var seeds []string
			for n := range hosts {
				name := fmt.Sprintf("site%d.org", n)
				seeds = append(seeds, "http://"+name+"/")
				o.Handlers[name] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/html")
					if r.URL.Path == "/" {
						_, _ = io.WriteString(w, "<a href=/1><a href=/2><a href=/3>")
					}
				})
			}
			web := serve(t, o)
			cfg := politeConfig(t, web)
			cfg.Seeds = seeds
			if shared {
				cfg.Shared = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
			c := crawlWeb(t, web, cfg)
			require.EqualValues(t, 4*hosts, c.Tally.Sum().Fates[stage.Fetched])
			hosts := func(string) time.Duration { return cfg.Delay }
			require.Empty(t, webtest.Violations(web.Log(), hosts, func(netip.Addr) time.Duration { return 0 }))
			early := webtest.Violations(web.Log(), hosts, func(netip.Addr) time.Duration { return cfg.Delay })
			require.Equal(t, shared, len(early) > 0, "%d early requests to the address", len(early))
			addr := web.Log()[0].Addr
			require.Equal(t, shared, c.Polite.Shared.Has(addr))
		})
	}
}

// TestAFreshPageIsNotRevisited before its max-age has passed.
func TestAFreshPageIsNotRevisited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Cache-Control", "max-age=14400")
			_, _ = io.WriteString(w, r.URL.Path)
		})
		web := serve(t, webtest.Options{
			Network: memnet.New(), Handlers: map[string]http.Handler{"a.test": handler},
		})
		cfg := politeConfig(t, web)
		cfg.Forever, cfg.Duration = true, 13*time.Hour
		var err error
		cfg.Policy, err = cockpit.ParsePolicy("1h", 0, time.Hour, time.Hour)
		require.NoError(t, err)
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
		pages := 0
		for _, r := range web.Log() {
			if r.Path == "/" {
				pages++
			}
		}
		require.Equal(t, 4, pages, "at 0, 4, 8 and 12 hours")
	})
}

// TestAPausedHostGetsNoRequests until the operator resumes it. Cross-site requests cannot pause it.
func TestAPausedHostGetsNoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := serve(t, webtest.Options{Seed: 2, Hosts: 2, Addrs: 2, Pages: 5, Network: memnet.New()})
		cfg := politeConfig(t, web)
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		post := func(path string, headers ...string) int {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080"+path, nil)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := httptest.NewRecorder()
			c.StatusHandler("127.0.0.1:8080").ServeHTTP(w, r)
			return w.Code
		}
		const host = "h00000.vweb.test"
		require.Equal(t, 403, post("/api/pause?host="+host, "Sec-Fetch-Site", "cross-site"))
		require.Equal(t, 403, post("/api/pause?host="+host, "Origin", "http://evil.test"))
		require.False(t, c.Paused.Has(host))
		require.Equal(t, 204, post("/api/pause?host="+host, "Origin", "http://127.0.0.1:8080"))
		go func() {
			time.Sleep(time.Hour)
			require.Empty(t, web.Log(), "its only seed is there")
			require.Equal(t, 204, post("/api/resume?host="+host))
		}()
		require.NoError(t, c.run(t.Context()))
		requireAllPages(t, web)
	})
}

// TestPausedHostsAreShown on the live page, which is where they are resumed, whatever they have in the queue.
func TestPausedHostsAreShown(t *testing.T) {
	web := serve(t, webtest.Options{Seed: 2, Hosts: 1, Pages: 1})
	c, err := newCrawler(testConfig(t, web), on(web))
	require.NoError(t, err)
	defer c.close()
	for n := range 300 {
		require.NoError(t, c.Polite.Enqueue(stage.Item{URL: fmt.Sprintf("http://h%03d.test/", n)}, netip.Addr{}))
	}
	for _, host := range []string{"h299.test", "visited.test"} {
		c.Paused.Add(host)
	}
	answer := httptest.NewRecorder()
	c.StatusHandler("127.0.0.1:0").ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/status", nil))
	var status cockpit.Status
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &status))
	var paused []string
	for _, row := range status.HostTable {
		if row.Paused {
			paused = append(paused, row.Host)
		}
	}
	require.Equal(t, []string{"h299.test", "visited.test"}, paused)
	require.Len(t, status.HostTable, 202)
}

// signingKey is the example key of RFC 9421.
const signingKey = "-----BEGIN PRIVATE KEY-----\n" +
	"MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"

// TestNetworkFlags: valid values reach the configuration, invalid ones give a one-line error.
func TestNetworkFlags(t *testing.T) {
	key := write(t, signingKey)
	ranges := write(t, "192.0.2.0/24 # a CDN\n\n2001:db8::/32\n")
	groups := write(t, "a.example b.example\nc.example\n")
	cfg, err := cockpit.ParseFlags([]string{
		"-header", "Accept-Language: de", "-header", "X-A: b", "-http1", "-proxy", "socks5://127.0.0.1:9",
		"-dns", "192.0.2.1,192.0.2.2:5353", "-identity", key, "-shared", ranges, "-group", groups,
		"-contact", "https://me.example/bot", "x.example",
	}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, http.Header{"Accept-Language": {"de"}, "X-A": {"b"}}, cfg.Header)
	require.True(t, cfg.HTTP1)
	require.Equal(t, "socks5://127.0.0.1:9", cfg.Proxy)
	require.Len(t, cfg.NameServers, 2)
	require.NotNil(t, cfg.Identity)
	require.Len(t, cfg.Shared, 2)
	require.Equal(t, "a.example", cfg.Group("www.b.example"))
	require.Empty(t, cfg.Group("d.example"))
	for _, tt := range [][]string{
		{"-header", "nothing"}, {"-header", "Authorization: x"}, {"-dns", "name"}, {"-identity", ranges}, {"-identity", key + "x"},
		{"-identity", key}, {"-identity", key, "-contact", "me@a.example"},
		{"-identity", key, "-contact", "https://me.example/", "-identity-form", "x"},
		{"-shared", groups}, {"-overrides", groups}, {"-group", key + "x"},
	} {
		_, err := cockpit.ParseFlags(append(tt, "http://127.0.0.1/"), io.Discard)
		require.Error(t, err, tt)
		require.Equal(t, 0, strings.Count(err.Error(), "\n"), err)
	}
}

// TestSignals: the sites' signals are recorded with each fate, and obeyed if the operator says so.
func TestSignals(t *testing.T) {
	files := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/robots.txt":
			_, _ = io.WriteString(w, "User-agent: *\nAllow: /\nContent-Usage: /art/ train-ai=n\n")
		case "/":
			_, _ = io.WriteString(w, "<a href=/art/1>1</a><a href=/header>2</a>")
		case "/header":
			w.Header().Set("Content-Usage", "train-ai=n, search=y")
			_, _ = io.WriteString(w, "<a href=/behind>")
		}
	}
	for _, respect := range [][]string{nil, {"train-ai"}} {
		synctest.Test(t, func(t *testing.T) {
			web := serve(t, webtest.Options{
				Network: memnet.New(), Handlers: map[string]http.Handler{"a.test": http.HandlerFunc(files)},
			})
			cfg := politeConfig(t, web)
			cfg.Respect = respect
			s := crawlWeb(t, web, cfg).Tally.Sum()
			text, err := os.ReadFile(filepath.Join(cfg.Out, cockpit.LedgerName))
			require.NoError(t, err)
			require.Contains(t, string(text), `"signals":"train-ai=n"`)
			require.Contains(t, string(text), `"signals":"search=y train-ai=n"`)
			got := requested(web)
			require.Equal(t, respect == nil, got["http://a.test/art/1"] == 1)
			require.Equal(t, respect == nil, got["http://a.test/behind"] == 1)
			kept, stated := 0, map[string]string{}
			for _, rec := range readArchive(t, cfg.Out) {
				if rec.kind == "response" && rec.url != "http://a.test/robots.txt" {
					kept++
				}
				if rec.kind == "metadata" {
					stated[rec.url] = string(rec.block)
				}
			}
			if respect == nil {
				require.Equal(t, 4, kept)
				require.Equal(t, map[string]string{
					"http://a.test/art/1":  "ai-preferences: train-ai=n\r\n",
					"http://a.test/header": "ai-preferences: search=y train-ai=n\r\n",
				}, stated)
				require.Zero(t, s.Fates[stage.Disallowed])
				return
			}
			require.Equal(t, 1, kept)
			require.EqualValues(t, 2, s.Fates[stage.Disallowed])
		})
	}
}

// TestExplainTellsWhyAVisitFailed, and when in real time.
func TestExplainTellsWhyAVisitFailed(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 2, Hosts: 1, Pages: 2,
		Traits: func(int) webtest.Traits { return webtest.Traits{Refuse: true} }})
	cfg := testConfig(t, web)
	cfg.Pace = 5000
	crawlWeb(t, web, cfg)
	status, output := run(t, "explain", cfg.Seeds[0], "-out", cfg.Out)
	require.Zero(t, status)
	require.Regexp(t, `(?m)^failures +1 in a row\nlatest +`+time.Now().Format("2006-01-02")+`.* connection refused`, output)
	require.Regexp(t, `(?m)^due +`+time.Now().Format("2006-01-"), output, "not by the clock of the pages")
}

// TestTheSummaryCountsDuePages by when they are due.
func TestTheSummaryCountsDuePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := serve(t, webtest.Options{Seed: 2, Hosts: 3, Addrs: 3, Pages: 8, Network: memnet.New(),
			Traits: func(host int) webtest.Traits { return webtest.Traits{Refuse: host == 2} }})
		cfg := politeConfig(t, web)
		var err error
		cfg.Policy, err = cockpit.ParsePolicy("100h", 0, time.Hour, 1000*time.Hour)
		require.NoError(t, err)
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		var output strings.Builder
		require.NoError(t, c.Conclude(&output, c.run(t.Context())))
		got := c.Tally.Sum().Fates[stage.Fetched]
		require.Positive(t, got)
		next := regexp.MustCompile(`(?m)^due next +(\d+) within an hour, (\d+) more within a day, (\d+) more within a week, (\d+) later$`)
		counts := next.FindStringSubmatch(output.String())
		require.NotNil(t, counts, output.String())
		numbers := make([]int64, len(counts)-1)
		for i := range numbers {
			numbers[i], err = strconv.ParseInt(counts[i+1], 10, 64)
			require.NoError(t, err)
		}
		require.Equal(t, c.Tally.Sum().Fates[stage.Refused], numbers[0]+numbers[1], "retries of the host that is down, one after the other")
		require.InDelta(t, got, numbers[2], 2, "each page is visited again after 100 hours: %d", numbers)
	})
}
