package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
)

// TestMemoryIsNoVerdict: hosts send large pages, and their ends slowly. They hold the memory for as long as a
// request may take, so other hosts' pages are cut, but no visit says that it was their servers' doing.
func TestMemoryIsNoVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hostile = 60
		began := time.Now()
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			switch {
			case r.URL.Path == "/robots.txt":
				http.NotFound(w, r)
			case strings.HasSuffix(r.Host, "evil.com") && time.Since(began) < time.Hour/2:
				fmt.Fprintf(w, "<a href=%s1>x</a>", r.URL.Path)
				for _, err := w.Write(make([]byte, 100_000)); err == nil; _, err = w.Write(make([]byte, 1100)) {
					w.(http.Flusher).Flush()
					time.Sleep(time.Second)
				}
			case r.Host == "h100.good.org":
				_, _ = w.Write(make([]byte, 90_000))
			}
		}}
		seeds, addrs := []string{"http://h100.good.org/"}, []string{apart("h100.").String()}
		for n := range hostile {
			host := fmt.Sprintf("h%d.evil.com", n)
			seeds, addrs = append(seeds, "http://"+host+"/"), append(addrs, apart(host).String())
		}
		cfg := siteConfig(t, seeds...)
		cfg.Timeout, cfg.Concurrency, cfg.Wait = 30*time.Second, 64, 3*time.Hour
		web := site.network(t, addrs...)
		c, err := newCrawler(cfg, web)
		require.NoError(t, err)
		o := c.Cfg.FetchOptions(web)
		o.MaxMemory = 1 << 20
		c.client, err = fetch.New(o)
		require.NoError(t, err)
		require.NoError(t, c.run(t.Context()))
		var fates []stage.Fate
		for _, line := range lines(t, cfg.Out) {
			var l cockpit.Line
			if strings.Contains(line, "good.org") {
				require.NoError(t, json.Unmarshal([]byte(line), &l))
				fates = append(fates, l.Fate)
			}
		}
		require.Equal(t, []stage.Fate{stage.Unstored, stage.Fetched}, fates)
	})
}

// TestRulesAreKept in a share of the memory: those of servers that do not fit would be requested again and again.
func TestRulesAreKept(t *testing.T) {
	cfg := siteConfig(t, "http://a.test/")
	cfg.Memory = 1 << 30
	c, err := newCrawler(cfg, stage.Network{})
	require.NoError(t, err)
	defer c.close()
	const servers = 1500
	file := robots.Response{Status: http.StatusOK, Whole: true, Body: []byte(strings.Repeat("Allow: /"+strings.Repeat("x", 990)+"\n", 60))}
	for n := range servers {
		url := fmt.Sprintf("http://h%d.test/", n)
		ruling := c.Robots.Rule(stage.Item{URL: url}, time.Now())
		require.Equal(t, stage.Ask, ruling.Step)
		c.Robots.Answer(ruling.Request, file, time.Now())
	}
	for n := range servers {
		require.Contains(t, c.Robots.Explain(fmt.Sprintf("http://h%d.test/", n), time.Now()), "allows it")
	}
}
