package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// breakPages is the number of slow pages of each host of a breakingServer.
const breakPages = 40

// A breakingServer breaks the connections of slow pages when two are in flight. If the connections
// were used before, the client may repeat the requests.
type breakingServer struct {
	takes time.Duration

	mu       sync.Mutex
	starts   []time.Time
	byHost   map[string][]time.Time
	active   map[*breakable]bool
	seen     map[string]bool
	repeated int
}

// A breakable is a connection.
type breakable struct {
	net.Conn
	requests int
}

type breakableKey struct{}

func (s *breakingServer) network(t *testing.T) stage.Network {
	mem := memnet.New()
	l, err := mem.Listen("127.9.9.9:80")
	require.NoError(t, err)
	server := &http.Server{Handler: s, ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, breakableKey{}, &breakable{Conn: conn})
	}}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	return stage.Network{Dial: mem.Dial, Resolve: func(context.Context, string) ([]netip.Addr, time.Duration, error) {
		return []netip.Addr{netip.MustParseAddr("127.9.9.9")}, time.Hour, nil
	}}
}

func (s *breakingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := r.Context().Value(breakableKey{}).(*breakable)
	s.mu.Lock()
	s.starts = append(s.starts, time.Now())
	s.byHost[r.Host] = append(s.byHost[r.Host], time.Now())
	conn.requests++
	url := r.Host + r.URL.Path
	isNew := !s.seen[url]
	s.seen[url] = true
	if !isNew {
		s.repeated++
	}
	isSlow := r.URL.Path != "/" && r.URL.Path != "/robots.txt"
	if isSlow && isNew && conn.requests > 1 {
		s.active[conn] = true
	}
	if len(s.active) == 2 {
		for conn := range s.active {
			time.AfterFunc(time.Second, func() { conn.Close() })
		}
		clear(s.active)
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	switch {
	case r.URL.Path == "/robots.txt":
		http.NotFound(w, r)
		return
	case !isSlow:
		for n := range breakPages {
			fmt.Fprintf(w, "<a href=/%d>", n)
		}
		return
	}
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, conn)
}

// TestRepeatedRequestsKeepTheDelay: a server breaks the connections of all requests in flight, and
// net/http repeats these requests at once. If a host may have several in flight, the repeated ones
// must also be spaced.
func TestRepeatedRequestsKeepTheDelay(t *testing.T) {
	const delay, takes = 5 * time.Second, 12 * time.Second
	for name, tt := range map[string]struct {
		change func(*testing.T, *cockpit.Config)
		hosts  int
	}{
		"of a host": {func(t *testing.T, cfg *cockpit.Config) {
			cfg.OverrideFile = write(t, "a0.test concurrency=3\n")
			require.NoError(t, cfg.ReadOverrides())
		}, 1},
		"of an address": {func(_ *testing.T, cfg *cockpit.Config) { cfg.Arrival = time.Millisecond }, 2},
		"of two hosts with overrides": {func(t *testing.T, cfg *cockpit.Config) {
			cfg.OverrideFile = write(t, "a0.test concurrency=3\na1.test concurrency=2 delay=7s\n")
			require.NoError(t, cfg.ReadOverrides())
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &breakingServer{takes: takes, active: map[*breakable]bool{}, seen: map[string]bool{},
					byHost: map[string][]time.Time{}}
				cfg := politeConfig(t, serve(t, webtest.Options{Hosts: 1, Pages: 1, Network: memnet.New()}))
				cfg.Delay, cfg.Timeout, cfg.Seeds = delay, 10*takes, nil
				for n := range tt.hosts {
					cfg.Seeds = append(cfg.Seeds, fmt.Sprintf("http://a%d.test/", n))
				}
				tt.change(t, &cfg)
				c, err := newCrawler(cfg, s.network(t))
				require.NoError(t, err)
				require.NoError(t, c.run(t.Context()))
				require.Greater(t, s.repeated, 1, "repeated requests")
				require.Len(t, s.seen, tt.hosts*(breakPages+2))
				for i, at := range s.starts[1:] {
					require.GreaterOrEqual(t, at.Sub(s.starts[i]), delay, "request %d", i+1)
				}
				for host, starts := range s.byHost {
					for i, at := range starts[1:] {
						require.GreaterOrEqual(t, at.Sub(starts[i]), max(delay, cfg.Overrides.Of(host).Delay), host)
					}
				}
			})
		})
	}
}

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
