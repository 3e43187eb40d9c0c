package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-resty/resty/v2"
	"github.com/gocolly/colly/v2"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// A habit is a behavior of a client that is a nuisance to servers, and to the transports below it.
type habit struct {
	timeout time.Duration // of the client, which counts the time that a request waits
	retries int           // immediate, after any error
	cancel  time.Duration // contexts end at a random time before this one
	leak    bool          // bodies stay open
	secure  bool          // over TLS and HTTP/2
}

// A getter makes a request with one of the clients.
type getter func(ctx context.Context, url string)

// clients has a constructor of a getter for each client.
var clients = map[string]func(web http.RoundTripper, h habit) getter{
	"net/http": func(web http.RoundTripper, h habit) getter {
		jar, _ := cookiejar.New(nil) // its error is always nil
		client := &http.Client{Transport: web, Timeout: h.timeout, Jar: jar}
		return func(ctx context.Context, url string) {
			for range h.retries + 1 {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err != nil {
					return
				}
				resp, err := client.Do(r)
				if err == nil && !h.leak {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				if err == nil && resp.StatusCode == http.StatusOK {
					return
				}
			}
		}
	},
	"colly": func(web http.RoundTripper, h habit) getter {
		return func(ctx context.Context, url string) {
			c := colly.NewCollector(colly.StdlibContext(ctx), colly.CheckHead(), colly.AllowURLRevisit())
			c.WithTransport(web)
			c.SetRequestTimeout(h.timeout)
			left := h.retries
			c.OnError(func(r *colly.Response, _ error) {
				if left--; left >= 0 {
					_ = r.Request.Retry()
				}
			})
			_ = c.Visit(url)
		}
	},
	"resty": func(web http.RoundTripper, h habit) getter {
		client := resty.New().SetTransport(web).SetTimeout(h.timeout).SetLogger(quiet{})
		client.SetRetryCount(h.retries).SetRetryWaitTime(time.Millisecond)
		client.AddRetryCondition(func(r *resty.Response, err error) bool { return err != nil || r.IsError() })
		return func(ctx context.Context, url string) { _, _ = client.R().SetContext(ctx).Get(url) }
	},
	"go-retryablehttp": func(web http.RoundTripper, h habit) getter {
		client := retryablehttp.NewClient()
		client.HTTPClient.Transport, client.HTTPClient.Timeout = web, h.timeout
		client.RetryMax, client.RetryWaitMin, client.Logger = h.retries, time.Millisecond, nil
		return func(ctx context.Context, url string) {
			r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				return
			}
			if resp, err := client.Do(r); err == nil {
				resp.Body.Close() // unread
			}
		}
	},
	"gofeed": func(web http.RoundTripper, h habit) getter {
		parser := gofeed.NewParser()
		parser.Client = &http.Client{Transport: web, Timeout: h.timeout}
		return func(ctx context.Context, url string) {
			for range h.retries + 1 {
				_, _ = parser.ParseURLWithContext(url, ctx)
			}
		}
	},
}

// rudely requests all pages of a web concurrently, twice, under both of their URLs, allowed or not.
func rudely(ctx context.Context, web *webtest.Web, get getter, h habit) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var group sync.WaitGroup
	for host := range web.Hosts() {
		urls := slices.Collect(host.Pages())
		for n := range urls {
			urls = append(urls, fmt.Sprintf("%sr/%d", host.URL(), n)) // redirects to a page
		}
		for _, url := range urls {
			for range 2 {
				wait := time.Duration(rnd.Int64N(int64(h.cancel) + 1))
				group.Go(func() {
					if h.cancel > 0 {
						until, cancel := context.WithTimeoutCause(ctx, wait, errors.New("enough"))
						defer cancel()
						get(until, url)
						return
					}
					get(ctx, url)
				})
			}
		}
	}
	group.Wait()
}

const busy = 40 * time.Second

// rudeTraits returns the traits of slow hosts. Every other one is overloaded at times, and some of
// these respond to the request for robots.txt in odd ways.
func rudeTraits(host int) webtest.Traits {
	t := traits(host)
	t.Latency = webtest.Latency{Median: time.Second, Sigma: 1}
	switch host {
	case 2:
		t.Robots.Mode = webtest.RobotsHuge
	case 4:
		t.Robots.Mode = webtest.RobotsLoop
	case 6:
		t.Robots.Mode = webtest.RobotsTimeout
	}
	if host%2 == 0 {
		t.Throttle = webtest.Throttle{Every: 4, RetryAfter: busy}
	}
	return t
}

// TestRudeClients checks that the layers protect servers from any behavior of clients.
func TestRudeClients(t *testing.T) {
	for what, h := range map[string]habit{
		"concurrency":       {},
		"timeouts":          {timeout: 17 * time.Second},
		"retries":           {retries: 3},
		"canceled":          {cancel: 3 * time.Minute},
		"bodies stay open":  {leak: true},
		"HTTP/2":            {secure: true},
		"all of it at once": {timeout: time.Minute, retries: 3, cancel: 3 * time.Minute, leak: true, secure: true},
	} {
		for name, make := range clients {
			t.Run(what+"/"+name, func(t *testing.T) {
				log, f := crawlRudely(t, make, h, polite)
				require.NotEmpty(t, log)
				f.requests, f.twice, f.missed, f.nameless = 0, 0, 0, 0
				require.Zero(t, f)
				require.Zero(t, pressed(log, busy))
				for _, r := range log {
					require.Equal(t, h.secure, r.Proto == "HTTP/2.0", r.Proto)
				}
			})
		}
	}
	log, f := crawlRudely(t, clients["net/http"], habit{}, plain)
	require.NotZero(t, f.earlyHost)
	require.NotZero(t, f.earlyAddr)
	require.NotZero(t, f.disallowed)
	require.NotZero(t, pressed(log, busy))
}

// crawlRudely returns the web's log and findings for a client.
func crawlRudely(
	t *testing.T, make func(http.RoundTripper, habit) getter, h habit,
	over func(*testing.T, *webtest.Web) http.RoundTripper,
) (log []webtest.Request, f findings) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		web := startWeb(t, webtest.Options{
			Hosts: 8, Addrs: 3, Pages: 6, Traits: rudeTraits, TLS: h.secure,
		})
		rudely(t.Context(), web, make(over(t, web), h), h)
		log, f = web.Log(), evaluate(web)
		time.Sleep(h.timeout) // a client's timer for a body that it left open; time stops when this function returns
	})
	return log, f
}

// pressed counts the requests to a host or an address within wait of its last status 429.
func pressed(log []webtest.Request, wait time.Duration) (n int) {
	hosts, addrs := map[string]time.Time{}, map[netip.Addr]time.Time{}
	for _, r := range log {
		if r.Time.Before(hosts[r.Host]) || r.Time.Before(addrs[r.Addr]) {
			n++
		}
		if r.Status == http.StatusTooManyRequests {
			hosts[r.Host], addrs[r.Addr] = r.Time.Add(wait), r.Time.Add(wait)
		}
	}
	return n
}
