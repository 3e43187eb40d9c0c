package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/revisit"
)

// TestSoak crawls with all features for as long as FULLCRAWLER_SOAK says, such as 2h, or for some
// seconds: ranking, sitemaps, hints, rhythms, an archive that is browsed, and lists that are
// reloaded. The web has farms at addresses of honest hosts, pages with 50,000 unique links, a
// server that keeps sending GOAWAY and a robots.txt that cannot be decoded. Memory stays flat, no
// request is early, no goroutine leaks, and honest hosts get their share. With
// GOEXPERIMENT=goroutineleakprofile the runtime looks for leaked goroutines, too.
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
	web := newSoakWeb(t)
	cfg := soakConfig(t, web, takes)
	c, err := newCrawler(cfg, on(web.Web))
	require.NoError(t, err)
	at, err := c.Listen("127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	var disturbing sync.WaitGroup
	d := &disturber{t: t, c: c, at: at, hangups: make(chan os.Signal, 1)}
	watching, stop := context.WithCancel(t.Context())
	go cockpit.OnHangup(watching, d.hangups, c.reload)
	disturbing.Go(func() { d.run(takes/60, done) })
	require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
	close(done)
	disturbing.Wait()
	stop()
	require.NoError(t, web.Close())
	http.DefaultClient.CloseIdleConnections()

	requests, early := web.witness.result()
	s := c.Tally.Sum()
	t.Logf("%v: %d requests, %d pages, %d GOAWAY, browsed %d times (%s), fates %v", takes, requests, s.Pages,
		web.goaways.Load(), d.browsed, d.browser, s.Fates)
	require.Empty(t, early)
	require.False(t, c.Polite.Shared.Has(web.addrOf(farmBeside)))
	missing := slices.DeleteFunc(web.Reachable(), func(url string) bool { return web.witness.honest[url] > 0 })
	t.Logf("heap in MB: %d", d.memory)
	if takes >= 3*time.Minute {
		require.Empty(t, missing, "honest hosts get their share despite the farms")
		require.Positive(t, web.goaways.Load())
		require.Positive(t, d.browsed)
		third := len(d.memory) / 3
		require.Less(t, slices.Max(d.memory[2*third:]), slices.Max(d.memory[third:2*third])*5/4, "%d", d.memory)
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 10*time.Second,
		100*time.Millisecond, "goroutines leak")
	require.NoError(t, leaks())
	status := command(context.Background(), []string{"check", "-out", cfg.Out}, io.Discard, os.Stderr)
	require.Zero(t, status)
}

// leaks lets the runtime look for goroutines that are blocked forever, if the program was built
// with that experiment.
func leaks() error {
	profile := pprof.Lookup("goroutineleak")
	if profile == nil {
		return nil
	}
	var found bytes.Buffer
	if err := profile.WriteTo(&found, 1); err != nil {
		return err
	}
	if profile.Count() > 0 {
		return fmt.Errorf("goroutines leak: %s", &found)
	}
	return nil
}

func soakConfig(t *testing.T, web *soakWeb, takes time.Duration) cockpit.Config {
	cfg := testConfig(t, web.Web)
	cfg.Delay, cfg.Pace, cfg.Forever, cfg.Duration = soakDelay, soakPace, true, takes
	cfg.Policy = revisit.Bayes{Price: 0.2, Min: 12 * time.Hour}
	cfg.ByRank, cfg.Archive, cfg.Texts, cfg.Concurrency = true, "zstd", true, 32
	cfg.HostPages, cfg.Queue, cfg.Memory = 200, 20_000, 256<<20
	cfg.Shared = []netip.Prefix{netip.PrefixFrom(web.addrOf(crowdBeside), 32)} // as of a CDN
	cfg.OverrideFile = filepath.Join(cfg.Out, "overrides")
	require.NoError(t, os.WriteFile(cfg.OverrideFile, []byte("wide.test delay=1s\n"), 0o666))
	require.NoError(t, cfg.ReadOverrides())
	for _, host := range []string{crowdName(0), farmName(0), "wide.test", "unreadable.test", "goaway.test"} {
		cfg.Seeds = append(cfg.Seeds, "https://"+host+"/")
	}
	return cfg
}

// A disturber does to a crawl what operators and readers do, and records its memory.
type disturber struct {
	t       *testing.T
	c       *crawler
	at      string // URL of the live page
	hangups chan os.Signal
	memory  []uint64
	browsed int
	browser string
}

func (d *disturber) run(every time.Duration, done <-chan struct{}) {
	for round := 0; ; round++ {
		select {
		case <-done:
			return
		case <-time.After(every):
		}
		d.hangups <- syscall.SIGHUP
		for _, path := range []string{"api/status", "metrics", "archive/", "api/explain?q=h00003.vweb.test"} {
			_, _ = d.get(path)
		}
		versions, _ := d.c.Store.Versions(browsedPage)
		if len(versions) > 0 && (round%20 == 10 || d.browsed == 0) {
			d.browse()
		}
		if err := leaks(); err != nil {
			d.t.Error(err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		d.memory = append(d.memory, m.HeapAlloc>>20)
	}
}

func (d *disturber) get(path string) (body []byte, err error) {
	resp, err := http.Get(d.at + path)
	if err != nil {
		return nil, err // the crawl has just ended
	}
	body, err = io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode != http.StatusOK {
		d.t.Error(path, resp.Status)
	}
	return body, err
}

// browsedPage is a page of an honest host.
const browsedPage = "https://h00000.vweb.test/"

// framed finds the URL at which a page of the viewer shows the archived page.
var framed = regexp.MustCompile(`src="/(archive/replay/[^"]+)"`)

// browse loads a page of the archive in its latest version. A soak of explicit length uses a
// browser, if there is one.
func (d *disturber) browse() {
	view, err := d.get("archive/view/" + time.Now().UTC().Format("20060102150405") + "/" + browsedPage)
	frame := framed.FindSubmatch(view)
	if err != nil || frame == nil {
		d.t.Errorf("browse: %v: %.2000s", err, view)
		return
	}
	browser, err := exec.LookPath("chromium")
	var page []byte
	switch {
	case os.Getenv("FULLCRAWLER_SOAK") == "":
		d.browser = "the Go client: a browser is for long soaks"
		page, err = d.get(string(frame[1]))
	case err != nil:
		d.browser = "the Go client: no chromium here (apt-get install chromium)"
		page, err = d.get(string(frame[1]))
	default:
		d.browser = "chromium"
		page, err = exec.CommandContext(d.t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu",
			"--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
			"--disable-sync", "--user-data-dir="+d.t.TempDir(), "--virtual-time-budget=3000", "--dump-dom",
			d.at+string(frame[1])).Output()
	}
	if err != nil || !bytes.Contains(page, []byte("https://h000")) {
		d.t.Errorf("browse with %s: %v: %.2000s", d.browser, err, page)
		return
	}
	d.browsed++
}

// A witness reads the log of a web as it is written, and keeps what it needs for result.
type witness struct {
	*io.PipeWriter
	ended    chan struct{}
	crowdAt  string // an address that unrelated hosts share
	requests int
	early    []string
	last     map[string]time.Time // by host and by address
	honest   map[string]int       // requests for pages of honest hosts
}

func newWitness() *witness {
	r, w := io.Pipe()
	v := &witness{PipeWriter: w, ended: make(chan struct{}), last: map[string]time.Time{},
		honest: map[string]int{}}
	go func() {
		defer close(v.ended)
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			v.see(strings.Split(lines.Text(), "\t"))
		}
	}()
	return v
}

// result ends the log, and returns the number of requests and those that came too early.
func (v *witness) result() (requests int, early []string) {
	_ = v.PipeWriter.Close() // it never fails
	<-v.ended
	return v.requests, v.early
}

// see records a line of the log: time, host, address, method, URL and more.
func (v *witness) see(fields []string) {
	v.requests++
	at, err := time.Parse(time.RFC3339Nano, fields[0])
	if err != nil {
		v.early = append(v.early, err.Error())
		return
	}
	host, addr, url := fields[1], fields[2], fields[4]
	robots := strings.HasSuffix(url, "/robots.txt")
	if host == "unreadable.test" && !robots {
		v.early = append(v.early, url+": not allowed by its robots.txt")
	}
	if !slices.ContainsFunc(oddHosts, func(end string) bool { return strings.HasSuffix(host, end) }) {
		v.honest[url]++
	}
	least := map[string]time.Duration{host: delayOf(host, robots)}
	if addr != v.crowdAt { // it has no delay once it counts as shared
		least[addr] = soakDelay
	}
	for key, least := range least {
		if last, again := v.last[key]; again && at.Sub(last) < least {
			v.early = append(v.early, fmt.Sprintf("%s after %v at %s", url, at.Sub(last), key))
		}
		v.last[key] = at
	}
}

// delayOf returns the delay of a host. A request for its robots.txt may come before its Crawl-delay
// is known.
func delayOf(host string, robots bool) time.Duration {
	var index int
	switch n, _ := fmt.Sscanf(host, "h%05d.", &index); {
	case host == "wide.test":
		return time.Second
	case robots:
		return soakDelay
	case n == 1:
		return max(soakDelay, soakTraits(index).Robots.CrawlDelay)
	case strings.HasSuffix(host, "-crowd.org"):
		return crowdDelay
	}
	return soakDelay
}
