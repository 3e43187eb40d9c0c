package crawl

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// A lockedLog may be read while it is written.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// worker is process with other options.
func worker(t *testing.T, url string, web *webtest.Web, name string, change func(o *WorkerOptions)) *Worker {
	t.Helper()
	c, err := Open(t.Context(), connect(t, url))
	require.NoError(t, err)
	o := WorkerOptions{
		Name: name, Workers: 4, TTL: time.Minute, Every: 10 * time.Millisecond,
		Dir: filepath.Join(t.TempDir(), name), Dial: web.Dial, Lookup: lookupIn(web),
	}
	if change != nil {
		change(&o)
	}
	w, err := c.NewWorker(o)
	require.NoError(t, err)
	return w
}

// begin creates a crawl of a web.
func begin(t *testing.T, web *webtest.Web, change func(o *Options)) (url string, c *Crawl) {
	t.Helper()
	url = startBroker(t)
	o := testOptions()
	o.Parts = 2
	if change != nil {
		change(&o)
	}
	c, err := Create(t.Context(), connect(t, url), o)
	require.NoError(t, err)
	return url, c
}

// counts adds up the counts of all partitions.
func counts(t *testing.T, c *Crawl) map[string]int64 {
	t.Helper()
	parts, _, _, err := c.Look(t.Context())
	require.NoError(t, err)
	sum := map[string]int64{}
	for _, p := range parts {
		for what, n := range p.Root.Counts {
			sum[what] += n
		}
	}
	return sum
}

func TestAFailedPageIsRetried(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 6, Hosts: 4, Pages: 5, Traits: func(host int) webtest.Traits {
		return webtest.Traits{Throttle: webtest.Throttle{Every: 3 * (host % 2), Status: http.StatusInternalServerError}}
	}})
	url, c := begin(t, web, func(o *Options) { o.Retries, o.Retry, o.Delay = 9, time.Millisecond, -1 })
	seed(t, c, web)
	run(t, worker(t, url, web, "p", nil))
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	got := map[string]int{}
	for _, r := range web.Log() {
		if r.Status == http.StatusOK && web.IsPage(r.URL()) {
			got[r.URL()]++
		}
	}
	for _, url := range web.Reachable() {
		require.Equal(t, 1, got[url], url)
	}
	require.NotZero(t, counts(t, c)["http_5xx"])
	require.Zero(t, counts(t, c)[string(gaveUp)])
}

// TestANewOwnerObeysRetryAfter sends a Retry-After to the first owner, which then ends. The next
// one waits as well, although it has never contacted the server.
func TestANewOwnerObeysRetryAfter(t *testing.T) {
	t.Parallel()
	const pause = 3 * time.Second
	var asked atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
		} else if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", fmt.Sprint(int(pause.Seconds())))
			http.Error(w, "busy", http.StatusTooManyRequests)
		}
	})
	web := serve(t, webtest.Options{Handlers: map[string]http.Handler{"busy.test": handler}})
	url, c := begin(t, web, func(o *Options) { o.Retries, o.Retry, o.Delay = 5, time.Millisecond, -1 })
	require.NoError(t, c.Seed(t.Context(), []string{"http://busy.test/1", "http://busy.test/2"}))
	stop := run(t, worker(t, url, web, "first", nil))
	for counts(t, c)["sent_away"] == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	run(t, worker(t, url, web, "second", nil))
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	requirePause(t, web, pause)
}

// requirePause requires that a web of two pages sent one Retry-After, and then got no request for
// that long.
func requirePause(t *testing.T, web *webtest.Web, pause time.Duration) {
	t.Helper()
	var times []time.Time
	for _, r := range web.Log() {
		if r.Path != "/robots.txt" {
			times = append(times, r.Time)
		}
	}
	require.Len(t, times, 3, "both pages, one of them twice")
	require.GreaterOrEqual(t, times[1].Sub(times[0]), pause)
}

// TestAFullDiskDoesNotForgetRetryAfter lets the first owner's archive fail when the server sends a
// Retry-After. That process leaves fetching to others, and the next owner still waits.
func TestAFullDiskDoesNotForgetRetryAfter(t *testing.T) {
	t.Parallel()
	const pause = 2 * time.Second
	var first *Worker
	var asked atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
		} else if asked.Add(1) == 1 {
			_ = first.store.Close() // from here on nothing can be stored
			w.Header().Set("Retry-After", fmt.Sprint(int(pause.Seconds())))
			http.Error(w, "busy", http.StatusTooManyRequests)
		}
	})
	web := serve(t, webtest.Options{Handlers: map[string]http.Handler{"busy.test": handler}})
	url, c := begin(t, web, func(o *Options) { o.Retries, o.Retry, o.Delay = 5, time.Millisecond, -1 })
	require.NoError(t, c.Seed(t.Context(), []string{"http://busy.test/1", "http://busy.test/2"}))
	var log lockedLog
	first = worker(t, url, web, "first", func(o *WorkerOptions) {
		o.Rest, o.Log = time.Hour, slog.New(slog.NewTextHandler(&log, nil))
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- first.Run(ctx) }()
	for !strings.Contains(log.String(), "store http://busy.test/") {
		time.Sleep(time.Millisecond)
	}
	run(t, worker(t, url, web, "second", nil)) // the first one runs the other modules
	defer func() { cancel(); <-ended }()
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	requirePause(t, web, pause)
}

func TestSitemapsAddUnlinkedPages(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 7, Hosts: 4, Pages: 3, Traits: func(host int) webtest.Traits {
		return webtest.Traits{Sitemap: webtest.Sitemap{Orphans: 5, Index: host%2 == 0}}
	}})
	url, c := begin(t, web, nil)
	seed(t, c, web)
	run(t, worker(t, url, web, "p", nil))
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	got := requested(web)
	for host := range web.Hosts() {
		for orphan := range host.Orphans() {
			require.Equal(t, 1, got[orphan], orphan)
		}
	}
	require.NotZero(t, counts(t, c)["listed"])
}

// TestAHostWithALongDelayDoesNotFillTheWindow has a host whose URLs would take a day. They wait
// outside the window, and the others are done in a moment.
func TestAHostWithALongDelayDoesNotFillTheWindow(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 8, Hosts: 6, Addrs: 6, Pages: 20, Traits: func(host int) webtest.Traits {
		if host == 0 {
			return webtest.Traits{Robots: webtest.Robots{CrawlDelay: time.Hour}}
		}
		return webtest.Traits{}
	}})
	const window = 20
	url, c := begin(t, web, func(o *Options) { o.Parts = 1 })
	seeds := web.Reachable()
	var slow []string
	for _, url := range seeds {
		if strings.HasPrefix(url, "http://h00000.") {
			slow = append(slow, url)
		}
	}
	require.NoError(t, c.Seed(t.Context(), slow))
	w := worker(t, url, web, "p", func(o *WorkerOptions) { o.Window = window })
	run(t, w)
	for counts(t, c)[string(postponed)] < int64(len(slow)-minAhead) {
		time.Sleep(10 * time.Millisecond)
	}
	require.NoError(t, c.Seed(t.Context(), seeds))
	for {
		got := requested(web)
		others := 0
		for url := range got {
			if web.IsPage(url) && !slices.Contains(slow, url) {
				others++
			}
		}
		if others == len(seeds)-len(slow) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	done, err := c.Finished(t.Context())
	require.NoError(t, err)
	require.False(t, done, "the slow host's pages are not forgotten")
}

// TestPlansSurviveTheOwner kills a process: nothing is lost. The times of the next visits are a
// part of the state of dedupe, which the next owner loads.
func TestPlansSurviveTheOwner(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 9, Hosts: 2, Pages: 4})
	url, c := begin(t, web, func(o *Options) { o.Revisit = time.Second })
	seed(t, c, web)
	short := func(o *WorkerOptions) { o.TTL = time.Second }
	w := worker(t, url, web, "a", short)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	w.Bus.Close() // to the others, it looks dead
	cancel()
	<-ended
	run(t, worker(t, url, web, "b", short))
	pages := web.Reachable()
	// The first interval is a week, so the plan is moved up.
	require.NoError(t, c.Revisit(t.Context(), pages))
	for {
		again := 0
		for _, n := range requested(web) {
			if n > 1 {
				again++
			}
		}
		if again >= len(pages) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	require.Empty(t, webtest.Violations(web.Log(), func(string) time.Duration { return c.Delay },
		func(netip.Addr) time.Duration { return c.Delay }))
}

// TestRobotsAreCheckedAgainBeforeTheFetch disallows a site while its pages wait.
func TestRobotsAreCheckedAgainBeforeTheFetch(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" && asked.Add(1) > 1 {
			fmt.Fprintln(w, "User-agent: *\nDisallow: /")
		}
	})
	web := serve(t, webtest.Options{Handlers: map[string]http.Handler{"a.test": handler}})
	url, c := begin(t, web, func(o *Options) { o.Delay, o.RulesTTL = 300*time.Millisecond, time.Second })
	const pages = 12 // they take more than three seconds
	var seeds []string
	for i := range pages {
		seeds = append(seeds, fmt.Sprintf("http://a.test/%d", i))
	}
	require.NoError(t, c.Seed(t.Context(), seeds))
	run(t, worker(t, url, web, "p", nil))
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	got := len(requested(web)) - 1
	require.Less(t, got, pages-1)
	require.EqualValues(t, pages-got, counts(t, c)["disallowed"])
	require.Empty(t, webtest.Violations(web.Log(), func(string) time.Duration { return c.Delay }, nil))
}
