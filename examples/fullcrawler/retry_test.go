package main

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
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
