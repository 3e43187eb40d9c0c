package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/spinneret-go/spinneret/examples/internal/stage"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/revisit"
)

// A week takes half a minute: pages change and are due that much faster. The delays between
// requests are in real time.
const (
	weekTakes = 30 * time.Second
	weekPace  = float64(7*24*time.Hour) / float64(weekTakes)
	weekDelay = 10 * time.Millisecond
	weekKills = 10
)

// weekPolicy visits as often as is worth a tenth of a version a day.
var weekPolicy = revisit.Bayes{Price: 0.1, Min: 4 * time.Hour}

// TestAWeekWithTenKills crawls changing pages for a week, in processes of which ten are killed. The
// web and its log are in this process, as evidence.
func TestAWeekWithTenKills(t *testing.T) {
	if dir := os.Getenv("CRAWL_OF_A_WEEK"); dir != "" {
		crawlForAWeek(t, dir, os.Getenv("CRAWL_WEB"))
		return
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	dir := t.TempDir()
	began := time.Now().Truncate(time.Second)
	week := stage.Clock{Began: began, Pace: weekPace}
	require.NoError(t, os.WriteFile(dir+"/"+cockpit.BeganName,
		fmt.Appendf(nil, "%s %g\n", began.Format(time.RFC3339), weekPace), 0o666))
	web := serve(t, webtest.Options{
		Seed: 77, Hosts: 10, Addrs: 5, Pages: 25, Now: week.Now,
		Traits: func(host int) webtest.Traits {
			return webtest.Traits{
				Change:    webtest.Change{Mean: 24 * time.Hour, Sigma: 1, Periodic: host%3 == 0},
				Redirects: 0.1,
				Gzip:      host%2 == 0,
			}
		},
	})
	var downs []outage // the last one is zero
	for kill := range weekKills + 1 {
		downs = append(downs, runForAPart(t, web, dir, began.Add(weekTakes*time.Duration(kill+1)/(weekKills+1)),
			kill))
	}

	ends(downs, web.Log())
	visits := visitsOf(web)
	requirePauses(t, web.Log(), weekDelay)
	requireFewRepeats(t, visits)
	requireAllKept(t, dir, web, visits)
	compareWithPlan(t, week, web, visits, downs)
	var out bytes.Buffer
	require.Zero(t, command(t.Context(), []string{"check", "-out", dir}, &out, &out), out.String())
	requireAllFound(t, dir, web)
}

// requireAllFound lets the crawl run to its end, as a slow machine may have left pages for later.
// Then no page is missing.
func requireAllFound(t *testing.T, dir string, web *webtest.Web) {
	t.Helper()
	cfg := weekConfig(dir, web.Reachable()[0])
	cfg.Forever, cfg.Policy = false, revisit.Every(stage.Longest)
	crawlWeb(t, web, cfg)
	require.Equal(t, web.Reachable(), slices.Sorted(maps.Keys(visitsOf(web))))
}

// An outage lasts from the kill of a process to the first request of the next one. The zero outage
// is none.
type outage struct{ from, to time.Time }

// ends fills in the ends of outages.
func ends(downs []outage, log []webtest.Request) {
	for _, r := range log {
		for i := range downs {
			if d := &downs[i]; d.to.IsZero() && !d.from.IsZero() && r.Time.After(d.from.Add(20*time.Millisecond)) {
				d.to = r.Time
			}
		}
	}
}

// runForAPart runs a crawler until a time, and then kills it. The last one is told to end. The
// User-Agent identifies the run.
func runForAPart(t *testing.T, web *webtest.Web, dir string, until time.Time, run int) outage {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAWeekWithTenKills$")
	child.Env = append(os.Environ(), "CRAWL_OF_A_WEEK="+dir, "CRAWL_WEB="+describe(t, web),
		fmt.Sprint("CRAWL_RUN=", run))
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	require.NoError(t, child.Start())
	time.Sleep(time.Until(until))
	if run == weekKills {
		require.NoError(t, child.Process.Signal(os.Interrupt))
		require.NoError(t, child.Wait(), &out)
		return outage{}
	}
	require.NoError(t, child.Process.Kill())
	killed := time.Now()
	var exit *exec.ExitError
	require.ErrorAs(t, child.Wait(), &exit)
	require.Equal(t, -1, exit.ExitCode(), "the crawl ended by itself: %s", &out)
	return outage{from: killed}
}

// describe encodes the hosts of a web for a child process: the port, and names with addresses.
func describe(t *testing.T, web *webtest.Web) string {
	t.Helper()
	var text strings.Builder
	for host := range web.Hosts() {
		if text.Len() == 0 {
			conn, err := web.Dial(t.Context(), "tcp", host.Addr.String()+":80")
			require.NoError(t, err)
			fmt.Fprint(&text, netip.MustParseAddrPort(conn.RemoteAddr().String()).Port())
			require.NoError(t, conn.Close())
		}
		fmt.Fprintf(&text, " %s %s", host.Name, host.Addr)
	}
	return text.String()
}

// crawlForAWeek runs in the child process.
func crawlForAWeek(t *testing.T, dir, webIs string) {
	fields := strings.Fields(webIs)
	hosts := map[string][]netip.Addr{}
	for i := 1; i < len(fields); i += 2 {
		hosts[fields[i]] = []netip.Addr{netip.MustParseAddr(fields[i+1])}
	}
	cfg := weekConfig(dir, "http://"+fields[1]+"/")
	cfg.Hosts = hosts
	c, err := newCrawler(cfg, stage.Network{
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			var d net.Dialer
			return d.DialContext(ctx, network, net.JoinHostPort(host, fields[0]))
		},
	})
	require.NoError(t, err)
	ctx, stop := signalContext(t.Context())
	defer stop()
	require.ErrorIs(t, c.run(ctx), cockpit.ErrStopped)
}

// weekConfig configures the crawl. The contact identifies the run.
func weekConfig(dir, seed string) cockpit.Config {
	cfg := cockpit.Config{
		Seeds: []string{seed}, Out: dir, Pace: weekPace,
		Agent: "spinneret", Contact: os.Getenv("CRAWL_RUN"),
		Delay: weekDelay, Backoff: weekDelay, Reach: urlfilter.Any, Forever: true, Policy: weekPolicy,
		Queue: 10_000, Concurrency: 16, Timeout: 10 * time.Second, MaxBody: 1 << 20,
		Bounds: fetch.Loopback,
	}
	cfg.Filter.MaxDepth, cfg.Filter.Format.AnySuffix = -1, true
	return cfg
}

// A visit is one request for a page.
type visit struct {
	at   time.Time
	run  string // the process that made it
	last bool   // of that run to that host: it may have been in flight at the kill
}

// visitsOf returns the requests for each page.
func visitsOf(web *webtest.Web) map[string][]visit {
	visits := map[string][]visit{}
	log := web.Log()
	last := map[string]int{} // by run and host
	for i, r := range log {
		last[r.UserAgent+r.Host] = i
	}
	for i, r := range log {
		if web.IsPage(r.URL()) {
			v := visit{r.Time, r.UserAgent, last[r.UserAgent+r.Host] == i}
			visits[r.URL()] = append(visits[r.URL()], v)
		}
	}
	return visits
}

// requirePauses requires that all requests to a host or an address are a delay apart.
func requirePauses(t *testing.T, log []webtest.Request, delay time.Duration) {
	t.Helper()
	last := map[string]time.Time{}
	for _, r := range log {
		for _, key := range []string{r.Host, r.Addr.String()} {
			if before, ok := last[key]; ok {
				require.GreaterOrEqual(t, r.Time.Sub(before), delay, "two requests to %s", key)
			}
			last[key] = r.Time
		}
	}
}

// requireFewRepeats requires that only the next run visits a page earlier than its policy wants, as
// it had no record of the last visit; and that such visits are few.
func requireFewRepeats(t *testing.T, visits map[string][]visit) {
	t.Helper()
	least := time.Duration(float64(weekPolicy.Min)/weekPace) - 2*cockpit.UnitFor(weekPace)/time.Duration(weekPace)
	repeats := 0
	for url, all := range visits {
		for i := 1; i < len(all); i++ {
			if all[i].at.Sub(all[i-1].at) < least {
				repeats++
				require.NotEqual(t, all[i-1].run, all[i].run, "%s at %v and %v", url, all[i-1].at, all[i].at)
			}
		}
	}
	t.Logf("%d repeated visits after %d kills", repeats, weekKills)
	require.LessOrEqual(t, repeats, 40*weekKills)
}

// requireAllKept requires that the archive has each visit, except for those in flight at a kill. A
// host has at most one of these, its last.
func requireAllKept(t *testing.T, dir string, web *webtest.Web, visits map[string][]visit) {
	t.Helper()
	a, err := archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	defer a.Close()
	for url, all := range visits {
		versions, err := a.Versions(url)
		require.NoError(t, err)
		certain := 0
		for _, v := range all {
			if !v.last {
				certain++
			}
		}
		require.GreaterOrEqual(t, len(versions), certain, url)
		require.LessOrEqual(t, len(versions), len(all), url)
	}
}

// compareWithPlan compares the caught versions with those that the policy would catch if each visit
// took place on time.
func compareWithPlan(
	t *testing.T, week stage.Clock, web *webtest.Web, visits map[string][]visit, downs []outage,
) {
	t.Helper()
	var done, planned score
	end := week.At(week.Began.Add(weekTakes))
	for _, url := range slices.Sorted(maps.Keys(visits)) {
		var actual []time.Time
		for _, v := range visits[url] {
			actual = append(actual, week.At(v.at))
		}
		changes := slices.Collect(web.Changes(url, actual[0], end))
		done.add(actual, changes)
		planned.add(plan(week, actual[0], end, changes, downs), changes)
	}
	t.Logf("coverage %.3f, planned %.3f; efficiency %.3f, planned %.3f; %d visits, planned %d",
		done.coverage(), planned.coverage(), done.efficiency(), planned.efficiency(),
		done.visits, planned.visits)
	// On a slow machine visits are late, and so there are fewer. That is not the crawler's
	// fault.
	if 100*done.visits < 97*planned.visits {
		t.Log("too many late visits for a comparison")
		return
	}
	require.InDelta(t, planned.coverage(), done.coverage(), 0.05)
	require.InDelta(t, planned.efficiency(), done.efficiency(), 0.05)
}

// plan returns the planned visits of a page, starting with the first actual one.
func plan(week stage.Clock, first, end time.Time, changes []time.Time, downs []outage) (visits []time.Time) {
	var h revisit.History
	seen := 0
	for at := first; at.Before(end); {
		n := 0
		for n < len(changes) && !changes[n].After(at) {
			n++
		}
		h = h.Observe(revisit.Visit{At: at, Changed: n > seen})
		seen = n
		visits = append(visits, at)
		at = at.Add(weekPolicy.Next(h))
		for _, down := range downs {
			if at.After(week.At(down.from)) && at.Before(week.At(down.to)) {
				at = week.At(down.to)
			}
		}
	}
	return visits
}

// A score counts the visits, caught versions and versions after the first visit of each page.
type score struct{ visits, caught, versions int }

// add counts the visits to a page that changed at the given times.
func (s *score) add(visits, changes []time.Time) {
	s.versions += len(changes)
	s.visits += len(visits) - 1
	seen := 0
	for _, at := range visits {
		n := seen
		for n < len(changes) && !changes[n].After(at) {
			n++
		}
		if n > seen {
			s.caught++
		}
		seen = n
	}
}

func (s *score) coverage() float64   { return float64(s.caught) / float64(s.versions) }
func (s *score) efficiency() float64 { return float64(s.caught) / float64(s.visits) }
