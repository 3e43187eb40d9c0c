package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// fatesIn counts the fates in the ledger of a crawl.
func fatesIn(t *testing.T, dir string) map[stage.Fate]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, cockpit.LedgerName))
	require.NoError(t, err)
	counts := map[stage.Fate]int{}
	for text := range strings.Lines(string(text)) {
		var l cockpit.Line
		require.NoError(t, json.Unmarshal([]byte(text), &l), text)
		counts[l.Fate]++
	}
	return counts
}

// requireAllPages requires that each page of a web was requested.
func requireAllPages(t *testing.T, web *webtest.Web) {
	t.Helper()
	got := requested(web)
	maps.DeleteFunc(got, func(url string, _ int) bool { return !web.IsPage(url) })
	require.Equal(t, web.Reachable(), slices.Sorted(maps.Keys(got)))
}

// TestAnEndIsNoVerdict stops crawls while the first requests for robots.txt are in flight. The next
// run fetches everything.
func TestAnEndIsNoVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*cockpit.Config)
		run    func(context.Context) (context.Context, context.CancelFunc)
	}{
		"a signal": {
			func(*cockpit.Config) {},
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
		},
		"a limit": {func(cfg *cockpit.Config) { cfg.Duration = time.Second }, context.WithCancel},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := serve(t, webtest.Options{
					Seed: 30, Hosts: 30, Pages: 2, Network: memnet.New(), Traits: func(int) webtest.Traits {
						return webtest.Traits{Latency: webtest.Latency{Median: 6 * time.Second}}
					},
				})
				cfg := politeConfig(t, web)
				for host := range web.Hosts() {
					cfg.Seeds = append(cfg.Seeds, host.URL())
				}
				first := cfg
				tt.change(&first)
				c, err := newCrawler(first, on(web))
				require.NoError(t, err)
				ctx, cancel := tt.run(t.Context())
				defer cancel()
				require.True(t, cockpit.Paused(c.run(ctx)))
				require.Empty(t, requested(web))
				require.NotEmpty(t, web.Log(), "a request for robots.txt was in flight")

				crawlWeb(t, web, cfg)
				requireAllPages(t, web)
				fates := fatesIn(t, cfg.Out)
				delete(fates, stage.Disallowed)
				require.Equal(t, map[stage.Fate]int{stage.Fetched: len(web.Reachable())}, fates)
			})
		})
	}
}

// TestTwoSignalsAtOnceAreOne: the second of those that timeout sends does not cost the summary.
func TestTwoSignalsAtOnceAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var killable atomic.Bool
		afterSignal(ctx, func() { killable.Store(true) })
		cancel()
		time.Sleep(time.Second - 1)
		synctest.Wait()
		require.False(t, killable.Load())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.True(t, killable.Load(), "a patient user may end it")
	})
}

// TestAFullDiskIsNoVerdict crawls in a process with a limit on file sizes, which looks like a disk
// that runs full during a write. The next run has no limit, and no page is missing.
func TestAFullDiskIsNoVerdict(t *testing.T) {
	if dir := os.Getenv("CRAWL_UNTIL_FULL"); dir != "" {
		web := serve(t, fullDiskWeb)
		cfg := testConfig(t, web)
		cfg.Out, cfg.Delay = dir, time.Millisecond
		c, err := newCrawler(cfg, on(web))
		require.NoError(t, err)
		limitFileSize(t, 300_000)
		if err := c.Conclude(os.Stdout, c.run(t.Context())); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	t.Parallel()
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAFullDiskIsNoVerdict$")
	child.Env = append(os.Environ(), "CRAWL_UNTIL_FULL="+dir,
		"TMPDIR="+t.TempDir()) // the child exits without removing its own
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, 1, exit.ExitCode(), "%s", out)
	require.Contains(t, string(out), "file too large")
	// Items that waited for room when the crawl ended are Interrupted; the others stay in the
	// queue.
	require.Regexp(t, stage.Interrupted.String()+"|"+stage.LeftOver.String(), string(out))
	require.Greater(t, len(readArchive(t, dir)), 10, "earlier pages are there")

	web := serve(t, fullDiskWeb)
	cfg := testConfig(t, web)
	cfg.Out, cfg.Delay = dir, time.Millisecond
	crawlWeb(t, web, cfg)
	pages := map[string]bool{}
	for _, rec := range readArchive(t, dir) {
		if web.IsPage(rec.url) {
			pages[rec.url] = true
		}
	}
	require.Equal(t, web.Reachable(), slices.Sorted(maps.Keys(pages)))
}

// TestAFailureOutranksALimit: if a full disk is found while a crawl shuts down, it is reported, and
// no page gets a wrong fate.
func TestAFailureOutranksALimit(t *testing.T) {
	web := serve(t, webtest.Options{Seed: 3, Hosts: 1, Pages: 3})
	cfg := testConfig(t, web)
	c, err := newCrawler(cfg, on(web))
	require.NoError(t, err)
	c.seed()
	_, err = c.commit()
	require.NoError(t, err)
	for it, err := range c.Pages.Due(t.Context(), c.Clock.Now()) {
		require.NoError(t, err)
		c.Room <- struct{}{}
		c.Hosts.Hold(weburl.Host(it.URL), it.Visit.Addr)
		c.stop(cockpit.ErrStopped)
		full := errors.New("no space left")
		c.stop(full)
		c.end(it, stage.Unstored, full.Error())
		require.ErrorIs(t, c.ended(), full)
	}
	require.NoError(t, c.close())
	require.Equal(t, map[stage.Fate]int{stage.Interrupted: 1}, fatesIn(t, cfg.Out))
	crawlWeb(t, web, cfg)
	requireAllPages(t, web)
}

var fullDiskWeb = webtest.Options{Seed: 31, Hosts: 20, Pages: 20}

// TestAnOutageIsNoVerdict makes the name server or the network fail for a while, in several ways.
func TestAnOutageIsNoVerdict(t *testing.T) {
	const begins, ends = 40 * time.Second, 20 * time.Minute
	refused := &net.OpError{Op: "read", Net: "udp", Err: errors.New("connection refused")}
	for name, outage := range map[string]struct {
		names, dials func(context.Context) error
	}{
		"the name server refuses": {names: func(context.Context) error {
			return &net.DNSError{Err: refused.Error(), IsTemporary: true}
		}},
		"the name server is silent": {names: func(ctx context.Context) error {
			time.Sleep(4 * time.Second)
			return &net.DNSError{Err: "i/o timeout", IsTimeout: true}
		}},
		"connections and lookups fail": {
			names: func(context.Context) error { return &net.DNSError{Err: "server misbehaving", IsTemporary: true} },
			dials: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := serve(t, webtest.Options{Seed: 32, Hosts: 12, Pages: 6, Network: memnet.New()})
				start := time.Now()
				gone := func() bool { return time.Since(start) > begins && time.Since(start) < ends }
				wrapped, plain := stage.Network{}, on(web)
				wrapped.Resolve = func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
					if gone() {
						return nil, 0, outage.names(ctx)
					}
					addrs, _, err := plain.Resolve(ctx, host)
					for i := range addrs { // not loopback
						addrs[i] = netip.AddrFrom4([4]byte{93, 184, 216, addrs[i].As4()[3]})
					}
					return addrs, 10 * time.Second, err
				}
				wrapped.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if gone() && outage.dials != nil {
						return nil, outage.dials(ctx)
					}
					return plain.Dial(ctx, network, strings.Replace(addr, "93.184.216", "127.16.0", 1))
				}
				cfg := politeConfig(t, web)
				cfg.Bounds, cfg.Contact = 0, "me@example.org"
				c, err := newCrawler(cfg, wrapped)
				require.NoError(t, err)
				var messages []string
				c.Say = func(text string) { messages = append(messages, text) }
				require.NoError(t, c.run(t.Context()))
				requireAllPages(t, web)
				for fate := range fatesIn(t, cfg.Out) {
					require.Contains(t, []stage.Fate{stage.Fetched, stage.Disallowed}, fate)
				}
				require.Greater(t, time.Since(start), ends, "some pages were fetched afterwards")
				require.Less(t, time.Since(start), ends+5*time.Minute)
				require.Len(t, messages, 2, "%q", messages)
				require.Contains(t, messages[0], "offline")
				require.Contains(t, messages[1], "continues")
			})
		})
	}
}

// TestADeadProxyIsNoVerdict: while the proxy is down the crawl waits, and then fetches every page.
func TestADeadProxyIsNoVerdict(t *testing.T) {
	const begins, ends, hosts, pages = time.Minute, 20 * time.Minute, 5, 20
	synctest.Test(t, func(t *testing.T) {
		site := &fakeSite{addr: apart, serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Connection", "close")
			switch r.URL.Path {
			case "/robots.txt":
				http.NotFound(w, r)
			case "/":
				for n := range pages - 1 {
					fmt.Fprintf(w, "<a href=/%d>x</a>", n)
				}
			}
		}}
		web := site.network(t, "127.3.3.3")
		dial, start := web.Dial, time.Now()
		var dials atomic.Int32
		web.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			if now := time.Since(start); begins < now && now < ends {
				dials.Add(1)
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			return dial(ctx, network, "127.3.3.3:80")
		}
		var seeds []string
		for n := range hosts {
			seeds = append(seeds, fmt.Sprintf("http://h%d.test/", n+1))
		}
		cfg := siteConfig(t, seeds...)
		cfg.Reach, cfg.Proxy, cfg.Forever, cfg.Duration = urlfilter.Host, "http://127.3.3.3:80", true, 30*time.Minute
		c, err := newCrawler(cfg, web)
		require.NoError(t, err)
		var messages []string
		c.Say = func(text string) { messages = append(messages, text) }
		require.ErrorIs(t, c.run(t.Context()), cockpit.ErrTimeLimit)
		require.EqualValues(t, hosts*pages, c.Tally.Sum().Fates[stage.Fetched])
		require.Len(t, fatesIn(t, cfg.Out), 1)
		require.Len(t, messages, 2, "%q", messages)
		require.Less(t, dials.Load(), int32(100), "the queue is not burned")
	})
}

// TestADeadHostIsNoOutage: if other hosts answer, the failure is attributed to the host.
func TestADeadHostIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := serve(t, webtest.Options{Seed: 33, Hosts: 6, Pages: 4, Network: memnet.New()})
		wrapped := on(web)
		plain := wrapped.Resolve
		dead := map[string]error{
			"h00001.vweb.test": &net.DNSError{Err: "server misbehaving", IsTemporary: true},
			"h00002.vweb.test": &net.DNSError{Err: "i/o timeout", IsTimeout: true},
			"h00003.vweb.test": &net.DNSError{Err: "no such host", IsNotFound: true},
		}
		wrapped.Resolve = func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
			if err := dead[host]; err != nil {
				return nil, 0, err
			}
			return plain(ctx, host)
		}
		cfg := politeConfig(t, web)
		cfg.Bounds, cfg.Contact = 2, "me@example.org"
		c, err := newCrawler(cfg, wrapped)
		require.NoError(t, err)
		c.Say = func(text string) { t.Errorf("reported: %q", text) }
		require.NoError(t, c.run(t.Context()))
		fates := fatesIn(t, cfg.Out)
		require.Positive(t, fates[stage.Unresolved])
		require.Positive(t, fates[stage.UnknownHost])
		require.Positive(t, fates[stage.Fetched])
	})
}

// TestRetryAfterInTheSameRun: a page with status 429 or 503 is fetched later in the same run.
func TestRetryAfterInTheSameRun(t *testing.T) {
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			web := serve(t, webtest.Options{
				Seed: 34, Hosts: 2, Pages: 8, Network: memnet.New(), Traits: func(int) webtest.Traits {
					return webtest.Traits{Throttle: webtest.Throttle{Every: 4, Status: status, RetryAfter: 5 * time.Second}}
				},
			})
			cfg := politeConfig(t, web)
			cfg.Wait = 5 * time.Minute
			crawlWeb(t, web, cfg)
			fetched := map[string]bool{}
			for _, r := range web.Log() {
				fetched[r.URL()] = fetched[r.URL()] || r.Status == 200
			}
			for _, url := range web.Reachable() {
				require.True(t, fetched[url], "status %d: %s", status, url)
			}
			require.Positive(t, fatesIn(t, cfg.Out)[stage.SentAway])
			require.Zero(t, fatesIn(t, cfg.Out)[stage.ClientError]+fatesIn(t, cfg.Out)[stage.ServerError])
		})
	}
}

// TestPendingRetriesAreReported crawls a server that answers every request with Retry-After.
func TestPendingRetriesAreReported(t *testing.T) {
	// The host's back-off is added to the server's Retry-After.
	for retry, want := range map[time.Duration]time.Duration{5 * time.Second: 8 * time.Minute, time.Hour: 0} {
		synctest.Test(t, func(t *testing.T) {
			web := serve(t, webtest.Options{
				Seed: 35, Hosts: 1, Pages: 3, Network: memnet.New(), Traits: func(int) webtest.Traits {
					return webtest.Traits{Throttle: webtest.Throttle{Every: 1, RetryAfter: retry}}
				},
			})
			cfg := politeConfig(t, web)
			cfg.Wait = 5 * time.Minute
			start := time.Now()
			c := crawlWeb(t, web, cfg)
			require.InDelta(t, want.Minutes(), time.Since(start).Minutes(), 1.5)
			var out bytes.Buffer
			require.NoError(t, c.Conclude(&out, nil))
			require.Contains(t, out.String(), "retries               1, from ")
		})
	}
}
