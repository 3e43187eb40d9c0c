package webtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A web over TLS has the same pages, at https URLs, and over HTTP/2 for clients that offer it.
func TestWebOverTLS(t *testing.T) {
	for _, network := range []bool{false, true} {
		o := Options{Hosts: 8, Addrs: 2, Pages: 5, TLS: true, Traits: func(host int) Traits {
			return Traits{Sitemap: Sitemap{Orphans: 2, Index: host == 1}, Robots: Robots{Mode: RobotsMode(host % 2 * 5)}}
		}}
		if network {
			o.Network = memnet.New()
		}
		w := start(t, o)
		c := w.Client()
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		t.Cleanup(c.CloseIdleConnections)
		plain := start(t, Options{Hosts: 8, Addrs: 2, Pages: 5, Traits: o.Traits})
		require.Equal(t, plain.Reachable(), secureLess(w.Reachable()))
		got := map[string]bool{}
		for h := range w.Hosts() {
			require.Equal(t, "https://"+h.Name+"/", h.URL())
			for url := range h.Pages() {
				require.True(t, w.IsPage(url))
				page := get(t, c, url)
				require.Equal(t, 200, page.status, url)
				require.NotContains(t, page.body, "http://h")
				got[url] = true
			}
			for url := range h.Orphans() {
				require.Equal(t, 200, get(t, c, url).status)
			}
			require.NotContains(t, get(t, c, h.URL()+"robots.txt").body, "http://")
			require.NotContains(t, get(t, c, h.URL()+"sitemap.xml").body, "http://h")
			_, err := c.Get("http://" + h.Name + "/x?y")
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
		for _, url := range w.Reachable() {
			require.True(t, got[url], url)
		}
		for _, r := range w.Log() {
			require.Equal(t, o.TLS, r.Proto == "HTTP/2.0")
			require.Equal(t, o.TLS, strings.HasPrefix(r.URL(), "https://"))
		}
	}
}

func secureLess(urls []string) []string {
	urls = slices.Clone(urls)
	for i, url := range urls {
		urls[i] = strings.Replace(url, "https://", "http://", 1)
	}
	return urls
}

// Clients that verify certificates reject an unknown authority, and idle connections do not outlive
// the web.
func TestTLSIsReal(t *testing.T) {
	w, err := Start(Options{Hosts: 1, TLS: true})
	require.NoError(t, err)
	stranger := &http.Client{Transport: &http.Transport{DialContext: w.Dial}}
	_, err = stranger.Get("https://h00000.vweb.test/")
	require.ErrorContains(t, err, "certificate")
	_, err = w.Client().Get("https://other.test/")
	require.Error(t, err)
	silent, err := w.Dial(t.Context(), "tcp", "h00000.vweb.test:443")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = silent.Read(make([]byte, 1))
	require.Error(t, err)
	require.NoError(t, silent.Close())
	w = start(t, Options{Hosts: 1})
	_, err = w.Dial(t.Context(), "tcp", "h00000.vweb.test:443")
	require.Error(t, err, "no TLS unless requested")
	require.Nil(t, w.Roots())
}

// Traps also work over HTTP/2, where a stream replaces a connection.
func TestTrapsOverHTTP2(t *testing.T) {
	w := start(t, Options{Hosts: 1, TLS: true, Traits: func(int) Traits { return Traits{Traps: TrapAll} }})
	c := w.Client()
	t.Cleanup(c.CloseIdleConnections)
	for _, path := range []string{"garbage", "headers"} {
		_, err := c.Get("https://h00000.vweb.test/trap/" + path)
		require.Error(t, err, path)
	}
	resp, err := c.Get("https://h00000.vweb.test/trap/short")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "HTTP/2.0", resp.Proto)
}

// A handler over HTTP/2 is not tied to its connection, but to the web.
func TestCloseWaitsForHandlersOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, closed := make(chan struct{}), make(chan error, 1)
		w, err := Start(Options{TLS: true, Network: memnet.New(), Handlers: map[string]http.Handler{
			"a.test": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }),
		}})
		require.NoError(t, err)
		c := w.Client()
		defer c.CloseIdleConnections()
		go func() {
			_, err := c.Get("https://a.test/")
			assert.Error(t, err)
		}()
		synctest.Wait()
		require.Len(t, w.Log(), 1)
		require.Equal(t, "HTTP/2.0", w.Log()[0].Proto)
		go func() { closed <- w.Close() }()
		synctest.Wait()
		early := len(closed)
		close(release)
		require.Zero(t, early, "a handler runs")
		require.NoError(t, <-closed)
	})
}

// The caller's own hosts are logged like any other, and the traits of the web apply to them.
func TestHandlers(t *testing.T) {
	w := start(t, Options{
		Hosts: 1, Pages: 2,
		Handlers: map[string]http.Handler{
			"b.test": http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Method, r.URL) }),
			"a.test": http.NotFoundHandler(),
			"c.test": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		},
		Traits: func(host int) Traits {
			if host == 2 {
				return Traits{Throttle: Throttle{Every: 2}}
			}
			return Traits{}
		},
	})
	var names []string
	for h := range w.Hosts() {
		names = append(names, h.Name)
	}
	require.Equal(t, []string{"h00000.vweb.test", "a.test", "b.test", "c.test"}, names)
	c := client(t, w)
	require.Equal(t, "GET/x?y", get(t, c, "http://b.test/x?y").body)
	require.Equal(t, 429, get(t, c, "http://b.test/x").status)
	require.Equal(t, 404, get(t, c, "http://a.test/robots.txt").status)
	require.Equal(t, 200, get(t, c, "http://c.test/").status)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://b.test/", strings.NewReader("x"))
	require.NoError(t, err)
	resp, err := c.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
	var log []string
	for _, r := range w.Log() {
		log = append(log, fmt.Sprint(r.Method, " ", r.URL(), " ", r.Status))
	}
	require.Equal(t, []string{"GET http://b.test/x?y 200", "GET http://b.test/x 429", "GET http://a.test/robots.txt 404",
		"GET http://c.test/ 200", "POST http://b.test/ 200"}, log)
	require.Len(t, start(t, Options{Handlers: map[string]http.Handler{"a.test": http.NotFoundHandler()}}).hosts, 1)
}

func TestTwoHostsOfOneName(t *testing.T) {
	for _, name := range []string{"H00000.vweb.test", "A.test"} {
		_, err := Start(Options{Hosts: 1, Network: memnet.New(), Handlers: map[string]http.Handler{
			name: http.NotFoundHandler(), "a.test": http.NotFoundHandler(),
		}})
		require.ErrorContains(t, err, "one name", name)
	}
}

// A name can have several addresses or none, and they can change.
func TestLookups(t *testing.T) {
	private := netip.MustParseAddr("10.0.0.1")
	failure := errors.New("server misbehaving")
	w := start(t, Options{Hosts: 2, Traits: func(host int) Traits {
		if host == 1 {
			return Traits{}
		}
		return Traits{Lookup: func(n int) ([]netip.Addr, error) {
			switch n {
			case 1:
				return nil, nil
			case 2:
				return nil, failure
			case 3:
				return []netip.Addr{}, nil
			}
			return []netip.Addr{private}, nil
		}}
	}})
	own := w.hosts[0].Addr
	for n, want := range [][]netip.Addr{{own}, nil, {}, {private}, {private}} {
		addrs, err := w.Resolve(t.Context(), "H00000.vweb.test.")
		require.Equal(t, n == 1, errors.Is(err, failure), "%d", n)
		require.Equal(t, want, addrs)
	}
	addrs, err := w.Resolve(t.Context(), "h00001.vweb.test")
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{w.hosts[1].Addr}, addrs)
	_, err = w.Dial(t.Context(), "tcp", "h00000.vweb.test:80")
	require.Error(t, err, "the web has no listener at that address")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.Resolve(ctx, "h00001.vweb.test")
	require.ErrorIs(t, err, context.Canceled)
	var unknown *net.DNSError
	_, err = w.Resolve(t.Context(), "other.test")
	require.ErrorAs(t, err, &unknown)
}

func TestDisallowed(t *testing.T) {
	w := start(t, Options{Hosts: 3, Pages: 20, Traits: func(host int) Traits {
		return Traits{Robots: Robots{Mode: map[int]RobotsMode{1: RobotsError, 2: RobotsMissing}[host], Disallow: []string{"/p"}}}
	}})
	c := client(t, w)
	var want []string
	for h := range w.Hosts() {
		get(t, c, h.URL()+"robots.txt")
		for url := range h.Pages() {
			get(t, c, url)
			_, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
			closed := strings.HasPrefix(path, "private/") || strings.HasPrefix(path, "p")
			if h.Index == 1 || h.Index == 0 && closed {
				want = append(want, url)
			}
		}
	}
	var got []string
	for _, r := range w.Disallowed() {
		got = append(got, r.URL())
	}
	require.Equal(t, want, got)
	require.Greater(t, len(got), 20)
}
