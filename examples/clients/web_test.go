package clients

import (
	"crypto/tls"
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// delay is the minimum time between two requests to a host or an address: scheduler's default.
const delay = 5 * time.Second

// traits returns the traits of a web in which every other host has something that clients get
// wrong. All are slow enough for requests to overlap.
func traits(host int) webtest.Traits {
	t := webtest.Traits{
		Gzip: true, Redirects: 0.1, Latency: webtest.Latency{Median: 50 * time.Millisecond, Sigma: 1},
	}
	switch host % 8 {
	case 1:
		t.Robots.CrawlDelay = 12 * time.Second
	case 3:
		t.Robots.Mode = webtest.RobotsRedirectHost
	case 5:
		t.Robots.Mode = webtest.RobotsError
	case 7:
		t.Robots.Disallow = []string{"/a", "/b", "/c"}
	}
	return t
}

// startWeb starts a web inside a synctest bubble.
func startWeb(t *testing.T, o webtest.Options) *webtest.Web {
	t.Helper()
	o.Network = memnet.New()
	web, err := webtest.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, web.Close()) })
	return web
}

// plain returns the default transport of the clients.
func plain(t *testing.T, web *webtest.Web) http.RoundTripper {
	transport := &http.Transport{DialContext: web.Dial}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// polite returns the layers above a web.
func polite(t *testing.T, web *webtest.Web) http.RoundTripper {
	t.Helper()
	kept, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kept.Close()) })
	return politeInto(t, web, kept)
}

// politeInto returns the layers above a web and an archive.
func politeInto(t *testing.T, web *webtest.Web, kept *archive.Archive) http.RoundTripper {
	t.Helper()
	transport, err := layers(guards(web), kept)
	require.NoError(t, err)
	t.Cleanup((&http.Client{Transport: transport}).CloseIdleConnections)
	return transport
}

// guards returns options with which a web can be reached.
func guards(web *webtest.Web) fetch.Options {
	return fetch.Options{
		UserAgent: userAgent,
		Dial:      web.Dial, Resolve: web.Resolve, Reach: fetch.Loopback,
		TLSConfig: &tls.Config{RootCAs: web.Roots()},
	}
}

// findings are the results of evaluating a web's log of a crawl.
type findings struct {
	requests             int
	earlyHost, earlyAddr int
	disallowed           int
	twice, missed        int // pages
	nameless             int // requests without our user agent
	archived             int // versions; not set by evaluate
}

func evaluate(web *webtest.Web) (f findings) {
	log := web.Log()
	pages, times := pagesIn(web, log)
	f.requests = len(log)
	f.earlyHost = len(webtest.Violations(log, func(string) time.Duration { return delay }, nil))
	f.earlyAddr = len(webtest.Violations(log, nil, func(netip.Addr) time.Duration { return delay }))
	f.disallowed = len(web.Disallowed())
	for _, v := range webtest.Violations(pages, crawlDelay(web), nil) {
		if v.Gap >= delay { // not counted yet
			f.earlyHost++
		}
	}
	for _, r := range log {
		if r.UserAgent != userAgent {
			f.nameless++
		}
	}
	for _, n := range times {
		f.twice += n - 1
	}
	for _, url := range web.Reachable() {
		if times[url] == 0 {
			f.missed++
		}
	}
	return f
}

// pagesIn returns the requests except those for robots.txt, and the number of them for each page.
func pagesIn(web *webtest.Web, log []webtest.Request) (pages []webtest.Request, times map[string]int) {
	times = map[string]int{}
	for _, r := range log {
		if strings.HasPrefix(r.Path, "/robots") {
			continue
		}
		pages = append(pages, r)
		if web.IsPage(r.URL()) {
			times[r.URL()]++
		}
	}
	return pages, times
}

// crawlDelay returns the Crawl-delay of the hosts of a web. It is known once their robots.txt was
// fetched.
func crawlDelay(web *webtest.Web) func(name string) time.Duration {
	return func(name string) time.Duration {
		host, found := web.Host(name)
		if !found || host.Index < 0 {
			return 0
		}
		return traits(host.Index).Robots.CrawlDelay
	}
}

// feed serves a feed with the pages of the hosts of a web numbered from (inclusive) to to
// (exclusive).
func feed(web **webtest.Web, from, to int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/feed.xml" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `<rss version="2.0"><channel><title>News</title>`)
		for host := range (*web).Hosts() {
			if host.Index < from || host.Index >= to {
				continue
			}
			for url := range host.Pages() {
				fmt.Fprintf(w, "<item><link>%s</link></item>", html.EscapeString(url))
			}
		}
		fmt.Fprint(w, `</channel></rss>`)
	})
}
