package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/revisit"
)

const (
	soakDelay = 200 * time.Millisecond
	soakPace  = 2000
)

// TestSoak crawls with everything on for as long as FULLCRAWLER_SOAK says, such as 2h, and for some
// seconds without it: in the order of ranks, with sitemaps, hints and rhythms, an archive that is
// browsed, and lists that are read again. The web has a farm on one address, pages of 50,000 unique
// links and robots.txt files that cannot be decoded beside honest hosts. Memory stays flat, no
// request is early, no goroutine is left, and honest hosts get their share.
func TestSoak(t *testing.T) {
	takes := 8 * time.Second
	if text := os.Getenv("FULLCRAWLER_SOAK"); text != "" {
		var err error
		takes, err = time.ParseDuration(text)
		require.NoError(t, err)
	} else if testing.Short() {
		t.Skip("takes some seconds")
	}
	before := runtime.NumGoroutine()
	clock := stage.Clock{Began: time.Now(), Pace: soakPace}
	witness := newWitness()
	web, err := webtest.Start(webtest.Options{
		Seed: 32, Hosts: 40, Addrs: 20, Pages: 30, Now: clock.Now, NoLog: true, LogTSV: witness,
		Traits: soakTraits,
		Handlers: map[string]http.Handler{
			"farm.test": http.HandlerFunc(farm), "wide.test": http.HandlerFunc(wide),
			"unreadable.test": http.HandlerFunc(unreadable),
		},
	})
	require.NoError(t, err)
	cfg := soakConfig(t, web, takes)
	c, err := newCrawler(cfg, soakNetwork(web))
	require.NoError(t, err)
	at, err := c.Listen("127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	var disturbing sync.WaitGroup
	var memory []uint64
	disturbing.Go(func() { memory = disturb(t, c, at, takes/60, done) })
	require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
	close(done)
	disturbing.Wait()
	require.NoError(t, web.Close())
	http.DefaultClient.CloseIdleConnections()

	requests, early := witness.judge()
	s := c.Tally.Sum()
	t.Logf("%v: %d requests, %d pages, fates %v", takes, requests, s.Pages, s.Fates)
	require.Empty(t, early)
	honest := map[string]bool{}
	for url := range witness.urls {
		honest[url] = true
	}
	bad, _ := web.Host("farm.test") // hosts at its address take turns with thousands
	missing := slices.DeleteFunc(web.Reachable(), func(url string) bool {
		host, known := web.Host(weburl.Host(url))
		return honest[url] || known && host.Addr == bad.Addr
	})
	t.Logf("heap in MB: %d", memory)
	if takes >= time.Minute {
		require.Empty(t, missing, "honest hosts get their share")
		third := len(memory) / 3
		require.Less(t, slices.Max(memory[2*third:]), slices.Max(memory[third:2*third])*5/4, "%d", memory)
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 10*time.Second,
		100*time.Millisecond, "goroutines are left")
	status := command(context.Background(), []string{"check", "-out", cfg.Out}, io.Discard, os.Stderr)
	require.Zero(t, status)
}

func soakTraits(host int) webtest.Traits {
	traits := webtest.Traits{
		Gzip: host%2 == 0, Redirects: 0.1,
		Change: webtest.Change{Mean: 10 * 24 * time.Hour, Sigma: 1, Periodic: host%4 == 0},
	}
	switch host % 8 {
	case 1:
		traits.Sitemap = webtest.Sitemap{Orphans: 5, Index: true}
	case 3:
		traits.Robots.CrawlDelay = time.Second
	case 5:
		traits.Traps = webtest.TrapLoop | webtest.TrapBroken | webtest.TrapBomb
	}
	return traits
}

func soakConfig(t *testing.T, web *webtest.Web, takes time.Duration) cockpit.Config {
	cfg := testConfig(t, web)
	cfg.Delay, cfg.Pace, cfg.Forever, cfg.Duration = soakDelay, soakPace, true, takes
	cfg.Policy = revisit.Bayes{Price: 0.2, Min: 12 * time.Hour}
	cfg.ByRank, cfg.Archive, cfg.Texts, cfg.Concurrency = true, "zstd", true, 32
	cfg.HostPages, cfg.Queue, cfg.Memory = 200, 20_000, 256<<20
	cfg.OverrideFile = filepath.Join(cfg.Out, "overrides")
	require.NoError(t, os.WriteFile(cfg.OverrideFile, []byte("wide.test delay=1s\n"), 0o666))
	require.NoError(t, cfg.ReadOverrides())
	cfg.Seeds = append(cfg.Seeds, "http://farm.test/", "http://wide.test/", "http://unreadable.test/")
	return cfg
}

// soakNetwork leads the thousands of names of the farm to its one address.
func soakNetwork(web *webtest.Web) network {
	under := on(web)
	resolve := under.resolve
	under.resolve = func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
		if strings.HasSuffix(host, "-farm.test") {
			host = "farm.test"
		}
		return resolve(ctx, host)
	}
	return under
}

func farm(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	for n := range 5000 {
		fmt.Fprintf(w, "<a href=http://n%d-farm.test%s>", n, r.URL.Path)
	}
}

func wide(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	for n := range 50_000 {
		fmt.Fprintf(w, "<a href=%s/%d>", strings.TrimSuffix(r.URL.Path, "/"), n)
	}
}

func unreadable(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = io.WriteString(w, "not gzip at all")
}

// disturb does to a crawl what operators and readers do, and looks at its memory, until done.
func disturb(t *testing.T, c *crawler, at string, every time.Duration, done <-chan struct{}) (memory []uint64) {
	for {
		select {
		case <-done:
			return memory
		case <-time.After(every):
		}
		c.reload()
		for _, path := range []string{"api/status", "metrics", "archive/", "api/explain?q=h00003.vweb.test"} {
			resp, err := http.Get(at + path)
			if err != nil {
				continue // it has just ended
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
				t.Error(path, resp.Status)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		memory = append(memory, m.HeapAlloc>>20)
	}
}

// A witness reads the log of a web as it is written, and keeps what is needed to judge it.
type witness struct {
	*io.PipeWriter
	ended    chan struct{}
	requests int
	early    []string
	last     map[string]time.Time // by host and by address
	urls     map[string]struct{}
}

func newWitness() *witness {
	r, w := io.Pipe()
	v := &witness{PipeWriter: w, ended: make(chan struct{}), last: map[string]time.Time{},
		urls: map[string]struct{}{}}
	go func() {
		defer close(v.ended)
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			v.see(strings.Split(lines.Text(), "\t"))
		}
	}()
	return v
}

// judge ends the log, and returns how many requests there were and those that came too early.
func (v *witness) judge() (requests int, early []string) {
	_ = v.PipeWriter.Close() // it never fails
	<-v.ended
	return v.requests, v.early
}

// see takes note of one line of the log: time, host, address, method, URL and more.
func (v *witness) see(fields []string) {
	v.requests++
	at, err := time.Parse(time.RFC3339Nano, fields[0])
	if err != nil {
		v.early = append(v.early, err.Error())
		return
	}
	host, url := fields[1], fields[4]
	delay := time.Duration(soakDelay)
	var index int
	if n, _ := fmt.Sscanf(host, "h%05d.", &index); n == 1 {
		delay = max(delay, soakTraits(index).Robots.CrawlDelay)
	}
	v.urls[url] = struct{}{}
	if strings.HasSuffix(url, "/robots.txt") {
		delay = soakDelay // the Crawl-delay is not known yet
	}
	for key, least := range map[string]time.Duration{host: delay, fields[2]: soakDelay} {
		if last, again := v.last[key]; again && at.Sub(last) < least {
			v.early = append(v.early, fmt.Sprintf("%s after %v at %s", url, at.Sub(last), key))
		}
		v.last[key] = at
	}
}
