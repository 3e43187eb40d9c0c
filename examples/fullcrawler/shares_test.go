package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
)

// TestEveryHostGetsItsShare crawls random webs in virtual time, with the servers' logs as the
// witness. Once the first minutes are over, every host gets at least half of its fair share in every
// five minutes. Every page that may be fetched is fetched exactly once, and the crawl does not end
// before.
func TestEveryHostGetsItsShare(t *testing.T) {
	seeds := 16
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { crawlRandomWeb(t, uint64(seed)) })
		})
	}
}

func crawlRandomWeb(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 50))
	w := newRandomWeb(seed)
	cfg := siteConfig(t, w.seeds...)
	cfg.Reach, cfg.Filter.MaxDepth = urlfilter.Any, -1
	cfg.Wait = 2 * time.Hour
	tight := r.IntN(3) == 0
	cfg.Queue = len(w.hosts) * (8 + r.IntN(8))
	if tight {
		cfg.Queue = len(w.hosts) * (1 + r.IntN(3))
	}
	cfg.Concurrency = []int{2, 8, 64}[r.IntN(3)]
	began := time.Now()
	c := crawlSite(t, cfg, w.network(t))
	require.Less(t, time.Since(began), 20*time.Hour, "no page is due again")
	require.Zero(t, c.Tally.Sum().Waiting)
	w.requireOnce(t)
	w.requireShares(t, allowance{began, cfg.Delay, cfg.Concurrency, tight})
}

// requireOnce requires that each page that may be fetched was fetched once, and that no other was.
func (w *randomWeb) requireOnce(t *testing.T) {
	t.Helper()
	answers := map[string]int{}
	for _, r := range w.log {
		require.NotContains(t, r.url, "/edit/", "disallowed")
		if r.status != http.StatusServiceUnavailable {
			answers[r.url]++
		}
	}
	sound := w.sound()
	for _, h := range sound {
		for n := range h.pages {
			require.Contains(t, w.announced, h.page(n), "the web is connected")
		}
	}
	for url := range w.announced {
		if h := w.hostOf(url); sound[h.name] != nil {
			require.Equal(t, 1, answers[url], "%s of %+v", url, *h)
		}
	}
}

// span is the time in which a host gets its share.
const span = 5 * time.Minute

// An allowance is what a crawl could do.
type allowance struct {
	began       time.Time
	delay       time.Duration
	concurrency int
	tight       bool // there is not enough room in the queue for all that delays allow
}

// in returns the span of a time.
func (a allowance) in(t time.Time) int { return int(t.Sub(a.began) / span) }

// A spanLog is what happened in one span.
type spanLog struct {
	got  map[string]int // requests by tenant
	all  int
	busy time.Duration // of all requests in flight
}

// spans divides the log. Those requests that last longer are in flight in several spans.
func (w *randomWeb) spans(a allowance) []spanLog {
	var spans []spanLog
	for _, r := range w.log {
		for len(spans) <= a.in(r.end) {
			spans = append(spans, spanLog{got: map[string]int{}})
		}
		in := &spans[a.in(r.began)]
		in.all++
		if h := w.names[r.host]; h != nil {
			in.got[h.tenant]++
		}
		for at := r.began; at.Before(r.end); {
			end := a.began.Add(time.Duration(a.in(at)+1) * span)
			if r.end.Before(end) {
				end = r.end
			}
			spans[a.in(at)].busy += end.Sub(at)
			at = end
		}
	}
	return spans
}

// requireShares compares what each tenant got in each span with its fair share: the least of the
// pages that were known, of those that delays allow, and, if the crawler could do no more, of an
// equal part of what it did.
func (w *randomWeb) requireShares(t *testing.T, a allowance) {
	t.Helper()
	fetched := map[string]time.Time{}
	for _, r := range w.log {
		if r.status != http.StatusServiceUnavailable {
			fetched[r.url] = r.began
		}
	}
	spans, checked := w.spans(a), 0
	for n := 1; n < len(spans)-1; n++ {
		s := spans[n]
		due := w.due(fetched, a.began.Add(time.Duration(n)*span))
		neighbors := map[netip.Addr]int{}
		for tenant := range due {
			neighbors[w.tenants[tenant].addr]++
		}
		full := a.tight || s.busy > time.Duration(a.concurrency)*span*8/10
		for tenant, pages := range due {
			h := w.tenants[tenant]
			pace, turn := h.pace(a.delay), a.delay+w.slowest(h.addr)
			if neighbors[h.addr] > 1 {
				pace += turn // it waits for the end of a neighbor's
			}
			share := min(float64(pages), float64(span)/float64(pace),
				float64(span)/float64(turn)/float64(neighbors[h.addr]))
			if full {
				share = min(share, float64(s.all)/float64(len(due)))
			}
			if w.sound()[h.name] == nil || h.health == flaky || share < 4 {
				continue
			}
			checked++
			require.GreaterOrEqual(t, float64(s.got[tenant]), math.Floor(share/2),
				"%s, minute %d of %d: %d due, %d requests in all, %+v",
				tenant, 5*n, 5*len(spans), pages, s.all, *h)
		}
	}
	t.Logf("%d hosts, %d requests, %d minutes, %d shares", len(w.hosts), len(w.log), 5*len(spans), checked)
}

// due counts the pages of each tenant that a crawler has known for a minute and not fetched yet.
func (w *randomWeb) due(fetched map[string]time.Time, at time.Time) map[string]int {
	due := map[string]int{}
	for url, since := range w.announced {
		if done, ok := fetched[url]; since.Before(at.Add(-time.Minute)) && (!ok || !done.Before(at)) {
			due[w.hostOf(url).tenant]++
		}
	}
	return due
}
