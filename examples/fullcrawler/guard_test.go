package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
)

// TestLivePageRefusesForeignRequests: over plain HTTP, browsers say where a request comes from only
// in Origin and Referer.
func TestLivePageRefusesForeignRequests(t *testing.T) {
	t.Parallel()
	c := crawledByRank(t)
	const here = "http://127.0.0.1:8080"
	for _, tt := range []struct {
		method, path, field, value string
		want                       int
	}{
		{"GET", "/api/status", "Origin", here, 200},
		{"GET", "/api/status", "Referer", here + "/", 200},
		{"GET", "/api/status", "Origin", "http://evil.test", 403},
		{"GET", "/api/status", "Origin", "null", 403},
		{"GET", "/api/status", "Referer", "http://evil.test/a", 403},
		{"GET", "/api/explain", "Referer", "http://127.0.0.1:8081/", 403},
		{"HEAD", "/api/explain", "Origin", "http://evil.test", 403},
		{"POST", "/api/pause?host=a", "Referer", "http://evil.test/", 403},
		{"POST", "/", "Referer", "http://evil.test/", 403},
		{"GET", "/", "Referer", "http://evil.test/", 200}, // a link
		{"GET", "/", "Origin", "http://evil.test", 403},
		{"GET", "/archive/", "Origin", "http://evil.test", 403},
		{"GET", "/debug/pprof/", "Origin", here, 404},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, here+tt.path, nil)
		r.Header.Set(tt.field, tt.value)
		w := httptest.NewRecorder()
		c.StatusHandler("127.0.0.1:8080").ServeHTTP(w, r)
		require.Equal(t, tt.want, w.Code, tt)
	}
}

// TestLivePageOptions: profiles have a flag of their own, and so have further names.
func TestLivePageOptions(t *testing.T) {
	t.Parallel()
	c := crawledByRank(t)
	require.Equal(t, 404, ask(t, c, "/debug/pprof/", "127.0.0.1").Code)
	require.Equal(t, 403, ask(t, c, "/metrics", "crawler:8080").Code)
	cfg, err := cockpit.ParseFlags([]string{"-pprof", "-listen-names", "crawler, Crawl.example",
		"http://127.0.0.1/"}, io.Discard)
	require.NoError(t, err)
	c.Cfg.Pprof, c.Cfg.ListenNames = cfg.Pprof, cfg.ListenNames
	require.Equal(t, 200, ask(t, c, "/debug/pprof/", "127.0.0.1").Code)
	for _, host := range []string{"crawler:8080", "crawl.example", "CRAWL.example:80"} {
		require.Equal(t, 200, ask(t, c, "/metrics", host).Code, host)
		require.Equal(t, 200, ask(t, c, "/archive/", host).Code, host)
	}
}

// TestLivePageNeedsATokenOffLoopback: a browser gets it once, from the address that is printed, and
// a monitoring system sends it.
func TestLivePageNeedsATokenOffLoopback(t *testing.T) {
	t.Parallel()
	c := crawledByRank(t)
	at, err := c.Listen("0.0.0.0:0")
	require.NoError(t, err)
	at = strings.Replace(at, "[::]", "127.0.0.1", 1)
	text, err := os.ReadFile(filepath.Join(c.Cfg.Out, cockpit.TokenName))
	require.NoError(t, err)
	token := strings.TrimSpace(string(text))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(path string, fields ...string) *http.Response {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, at+path, nil)
		require.NoError(t, err)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		resp, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp
	}
	for _, path := range []string{"", "?token=", "?token=x", "api/status", "metrics", "archive/", "archive/static/viewer.css"} {
		require.Equal(t, 401, get(path).StatusCode, path)
	}
	require.Equal(t, 404, get("archive/replay/guess/latest/http://a.test/").StatusCode)
	require.Equal(t, 200, get("metrics", "Authorization", "Bearer "+token).StatusCode)
	entered := get("?token=" + token)
	require.Equal(t, "/", entered.Header.Get("Location"))
	cookie := entered.Header.Get("Set-Cookie")
	require.Contains(t, cookie, "HttpOnly; SameSite=Strict")
	require.Len(t, entered.Header["Set-Cookie"], 2)
	require.Contains(t, entered.Header["Set-Cookie"][1], "Path=/archive/; HttpOnly; SameSite=Lax", "links in archived pages work")
	cookie, _, _ = strings.Cut(cookie, ";")
	for _, path := range []string{"", "api/status", "archive/"} {
		require.Equal(t, 200, get(path, "Cookie", cookie).StatusCode, path)
	}
	again, err := c.Listen("0.0.0.0:0")
	require.NoError(t, err)
	at = strings.Replace(again, "[::]", "127.0.0.1", 1)
	require.Equal(t, 200, get("metrics", "Authorization", "Bearer "+token).StatusCode, "after a restart")
}

// TestLivePageShowsTheArchiveAtItsAddresses: the page itself is there, and links to the archive.
func TestLivePageShowsTheArchiveAtItsAddresses(t *testing.T) {
	t.Parallel()
	c := crawledByRank(t)
	addrs, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addrs {
		host := net.JoinHostPort(a.(*net.IPNet).IP.String(), "8080")
		for _, path := range []string{"/", "/archive/"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			c.StatusHandler("0.0.0.0:8080").ServeHTTP(w, r)
			require.Equal(t, 200, w.Code, host+path)
		}
	}
}
