package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// crawledByRank returns a finished crawl whose files are open again.
func crawledByRank(t *testing.T) *crawler {
	web := serve(t, webtest.Options{Seed: 4, Hosts: 5, Pages: 6, Traits: func(host int) webtest.Traits {
		return webtest.Traits{Refuse: host == 3}
	}})
	cfg := testConfig(t, web)
	cfg.ByRank = true
	crawlWeb(t, web, cfg)
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.close()) })
	return c
}

func ask(t *testing.T, c *crawler, target, host string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	r.Host = host
	w := httptest.NewRecorder()
	c.StatusHandler("127.0.0.1:8080").ServeHTTP(w, r)
	return w
}

func TestLivePageReports(t *testing.T) {
	t.Parallel()
	c := crawledByRank(t)
	const here = "127.0.0.1:8080"
	page := ask(t, c, "/", here)
	require.Equal(t, 200, page.Code)
	require.Contains(t, page.Body.String(), `id="explain"`)
	require.Contains(t, page.Header().Get("Content-Security-Policy"), "default-src 'self'")
	for _, file := range []string{"/app.js", "/style.css"} {
		require.Equal(t, 200, ask(t, c, file, here).Code, file)
	}
	require.NotEqual(t, 200, ask(t, c, "/../main.go", here).Code)
	require.Equal(t, 404, ask(t, c, "/main.go", here).Code)

	var s cockpit.Status
	require.NoError(t, json.Unmarshal(ask(t, c, "/api/status", here).Body.Bytes(), &s))
	require.Equal(t, 5, s.Hosts)
	require.Equal(t, "pages known", s.Flow[1].Name)
	require.Greater(t, s.Flow[1].Count, int64(20))

	var facts []cockpit.Fact
	answer := ask(t, c, "/api/explain?q="+c.Cfg.Seeds[0], here).Body.Bytes()
	require.NoError(t, json.Unmarshal(answer, &facts))
	text := string(answer)
	for _, want := range []string{"last visit", "due", "allows it", "127.16.0.1", "changed"} {
		require.Contains(t, text, want)
	}
	name := strings.TrimSuffix(strings.TrimPrefix(c.Cfg.Seeds[0], "http://"), "/")
	require.Contains(t, ask(t, c, "/api/explain?q="+name, here).Body.String(), "last visit",
		"a bare name is looked up with http, too")
	require.Contains(t, ask(t, c, "/api/explain?q=mailto:me", here).Body.String(), "error")

	metrics := ask(t, c, "/metrics", here).Body.String()
	require.Contains(t, metrics, "\nspinneret_hosts_known 5\n")
	for _, want := range []string{"memory_bytes ", "heap_bytes ", "disk_free_bytes ", "first_byte_seconds ", "build_info{version="} {
		require.Contains(t, metrics, "\nspinneret_"+want)
	}
	for line := range strings.Lines(metrics) {
		require.Regexp(t, `^(# (HELP|TYPE) spinneret_\w+ .+|spinneret_\w+(\{\w+=".+"\})? [\d.e+-]+)\n$`, line)
	}
}

func TestLivePageRefusesOtherHostNames(t *testing.T) {
	t.Parallel()
	c := crawledByRank(t)
	for host, want := range map[string]int{
		"127.0.0.1:8080": 200, "localhost:8080": 200, "[::1]:8080": 200, "127.0.0.1": 200,
		"[::1]":        200,
		"evil.example": 403, "evil.example:8080": 403, "localhost.evil.example": 403,
	} {
		require.Equal(t, want, ask(t, c, "/api/status", host).Code, host)
	}
	require.ErrorContains(t, cockpit.CheckListen(":8080"), "address")
	require.ErrorContains(t, cockpit.CheckListen("8080"), "8080")
	require.NoError(t, cockpit.CheckListen("127.0.0.1:0"))
	require.NoError(t, cockpit.CheckListen(""))
}

// TestLivePageInABrowser loads the page in headless Chromium, if installed: it shows the crawler's
// state, and logs nothing to the console.
func TestLivePageInABrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here: apt-get install chromium")
	}
	t.Parallel()
	c := crawledByRank(t)
	at, err := c.Listen("127.0.0.1:0")
	require.NoError(t, err)
	look := func(args ...string) (dom, console string) {
		args = append(args, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync",
			"--user-data-dir="+t.TempDir(), "--virtual-time-budget=3000", "--enable-logging=stderr", at)
		cmd := exec.CommandContext(t.Context(), browser, args...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		require.NoError(t, cmd.Run(), &errs)
		for line := range strings.Lines(errs.String()) {
			if strings.Contains(line, "CONSOLE") {
				console += line
			}
		}
		return out.String(), console
	}
	dom, console := look("--dump-dom")
	require.Empty(t, console)
	require.Contains(t, dom, "crawling for")
	require.Contains(t, dom, "pages known")
	require.Contains(t, dom, "No host has pages in the queue.")
	require.Less(t, strings.Index(dom, "Explain</h2>"), strings.Index(dom, "Now</h2>"),
		"in a narrow window, it comes before all the tiles")
	for _, size := range []string{"1200,1400", "380,1400"} {
		picture := filepath.Join(t.TempDir(), "page.png")
		_, console := look("--window-size="+size, "--screenshot="+picture)
		require.Empty(t, console)
		f, err := os.Open(picture)
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, f)
		require.NoError(t, errors.Join(err, f.Close()))
		require.Greater(t, n, int64(10_000))
	}
}

// TestLivePageShowsTheArchive as replay does, below its own path, during the crawl.
func TestLivePageShowsTheArchive(t *testing.T) {
	t.Parallel()
	c := crawledByRank(t)
	const here = "127.0.0.1:8080"
	start := ask(t, c, "/archive/", here)
	require.Equal(t, 200, start.Code)
	require.Contains(t, start.Body.String(), "The archive of this crawl")
	view := ask(t, c, "/archive/view/latest/"+c.Cfg.Seeds[0], here)
	require.Equal(t, 200, view.Code)
	require.Contains(t, view.Body.String(), `src="/archive/replay/`)
	_, err := c.Store.Append(archive.Capture{URL: "http://new.test/", Time: time.Now(),
		Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), Body: []byte("<p>new")})
	require.NoError(t, err)
	require.Equal(t, 200, ask(t, c, "/archive/view/latest/http://new.test/", here).Code)
	require.Equal(t, 404, ask(t, c, "/archive/view/latest/http://none.test/", here).Code)
	require.NotEqual(t, 200, ask(t, c, "/archive/", "evil.test").Code)
}

// TestPausesNameHosts: what is no host is refused, and a host has one form.
func TestPausesNameHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: loopback, serve: http.NotFound}
		c, err := newCrawler(siteConfig(t, "http://h1.test/"), site.network(t, loopback("").String()))
		require.NoError(t, err)
		tell := func(do, host string) int {
			r := httptest.NewRequest(http.MethodPost, "/api/"+do+"?host="+url.QueryEscape(host), nil)
			r.Host = "127.0.0.1:8080"
			w := httptest.NewRecorder()
			c.StatusHandler("127.0.0.1:8080").ServeHTTP(w, r)
			return w.Code
		}
		for _, wrong := range []string{"", "http://h1.test/", "h1.test:8080", "h1.test/x", "a@h1.test"} {
			require.Equal(t, http.StatusBadRequest, tell("pause", wrong), wrong)
		}
		for text, host := range map[string]string{"H1.test": "h1.test", "::1": "::1", "[::1]": "::1"} {
			require.Equal(t, http.StatusNoContent, tell("pause", text))
			require.True(t, c.Paused.Has(host), text)
			require.Equal(t, http.StatusNoContent, tell("resume", text))
			require.False(t, c.Paused.Has(host), text)
		}
		require.NoError(t, c.run(t.Context()))
	})
}

// TestVisitNow visits a page at once that is due in weeks, adds one that is not known, and obeys the lists.
func TestVisitNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
			}
		}}
		cfg := siteConfig(t, "http://h1.test/")
		cfg.Filter.Deny = new(urlfilter.List)
		require.NoError(t, cfg.Filter.Deny.Reload(strings.NewReader("http://h3.test/secret\n"), "deny"))
		cfg.Reach = urlfilter.Host
		cfg.Forever, cfg.Duration = true, 2*time.Hour
		c, err := newCrawler(cfg, site.network(t, apart("h1.test").String(), apart("h2.test").String()))
		require.NoError(t, err)
		visit := func(q string) string {
			r := httptest.NewRequest(http.MethodPost, "/api/visit?q="+url.QueryEscape(q), nil)
			r.Host = "127.0.0.1"
			w := httptest.NewRecorder()
			c.StatusHandler("127.0.0.1:0").ServeHTTP(w, r)
			return w.Body.String()
		}
		time.AfterFunc(time.Hour, func() {
			require.Len(t, pagesOf(site, "h1.test"), 1)
			require.Contains(t, visit("h1.test"), "next turn")
			require.Contains(t, visit("http://h1.test/"), "on its way")
			require.Contains(t, visit("http://h2.test/new"), "new seed")
			require.Contains(t, visit("http://h3.test/secret"), "no: ")
			require.Equal(t, stage.OutOfScope, c.Filter.Check(stage.Item{URL: "http://h3.test/"}))
			require.Contains(t, visit("mailto:me"), "error")
		})
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
		require.Len(t, pagesOf(site, "h1.test"), 2)
		require.Len(t, pagesOf(site, "h2.test"), 1)
	})
}
