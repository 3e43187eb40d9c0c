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

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/vweb"
	"github.com/spinneret-go/spinneret/revisit"
)

// A week takes half a minute: pages change and come due so much faster. The pauses between requests
// are real.
const (
	weekTakes = 30 * time.Second
	weekPace  = float64(7*24*time.Hour) / float64(weekTakes)
	weekDelay = 10 * time.Millisecond
	weekKills = 10
)

// weekPolicy is a visit as often as is worth a tenth of a version a day.
var weekPolicy = revisit.Bayes{Price: 0.1, Min: 4 * time.Hour}

// TestAWeekWithTenKills crawls changing pages for a week, by processes of which ten are killed. The
// web and its log are in this process: they are the witness.
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
	week := clock{began, weekPace}
	require.NoError(t, os.WriteFile(dir+"/"+beganName,
		fmt.Appendf(nil, "%s %g\n", began.Format(time.RFC3339), weekPace), 0o666))
	web := serve(t, vweb.Options{
		Seed: 77, Hosts: 10, Addrs: 5, Pages: 25, Now: week.now,
		Traits: func(host int) vweb.Traits {
			return vweb.Traits{
				Change:    vweb.Change{Mean: 24 * time.Hour, Sigma: 1, Periodic: host%3 == 0},
				Redirects: 0.1,
				Gzip:      host%2 == 0,
			}
		},
	})
	var downs []outage
	for kill := range weekKills + 1 {
		downs = append(downs, runForAPart(t, web, dir, began.Add(weekTakes*time.Duration(kill+1)/(weekKills+1)),
			kill == weekKills))
	}

	ends(downs, web.Log())
	visits := visitsOf(web)
	requirePauses(t, web.Log(), weekDelay)
	requireFewRepeats(t, visits, downs)
	requireAllKept(t, dir, web, visits, downs)
	compareWithPlan(t, week, web, visits, downs)
	var out bytes.Buffer
	require.Zero(t, command(t.Context(), []string{"check", "-out", dir}, &out, &out), out.String())
}

// An outage is when a process was killed and when the next one was there. The zero outage is none.
type outage struct{ from, to time.Time }

// ends fills in when outages ended.
func ends(downs []outage, log []vweb.Request) {
	for _, r := range log {
		for i := range downs {
			if d := &downs[i]; d.to.IsZero() && !d.from.IsZero() && r.Time.After(d.from.Add(20*time.Millisecond)) {
				d.to = r.Time
			}
		}
	}
}

// runForAPart runs a crawler until a time, and then kills it, or else tells it to end.
func runForAPart(t *testing.T, web *vweb.Web, dir string, until time.Time, last bool) outage {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAWeekWithTenKills$")
	child.Env = append(os.Environ(), "CRAWL_OF_A_WEEK="+dir, "CRAWL_WEB="+describe(t, web))
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	require.NoError(t, child.Start())
	time.Sleep(time.Until(until))
	if last {
		require.NoError(t, child.Process.Signal(os.Interrupt))
		require.NoError(t, child.Wait(), &out)
		return outage{}
	}
	require.NoError(t, child.Process.Kill())
	killed := time.Now()
	var exit *exec.ExitError
	require.ErrorAs(t, child.Wait(), &exit)
	require.Equal(t, -1, exit.ExitCode(), "it ended by itself: %s", &out)
	return outage{from: killed}
}

// describe tells a child where the hosts of a web are: the port, and names with their addresses.
func describe(t *testing.T, web *vweb.Web) string {
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

// crawlForAWeek is what the child does.
func crawlForAWeek(t *testing.T, dir, webIs string) {
	fields := strings.Fields(webIs)
	hosts := map[string]netip.Addr{}
	for i := 1; i < len(fields); i += 2 {
		hosts[fields[i]] = netip.MustParseAddr(fields[i+1])
	}
	cfg := config{
		seeds: []string{"http://" + fields[1] + "/"}, agent: "spinneret", out: dir, pace: weekPace,
		delay: weekDelay, backoff: weekDelay, reach: stage.Any, forever: true, policy: weekPolicy,
		queue: 10_000, concurrency: 16, timeout: 10 * time.Second, maxBody: 1 << 20,
		bounds: fetch.Loopback,
	}
	cfg.filter.MaxDepth, cfg.filter.Format.AnySuffix = -1, true
	c, err := newCrawler(cfg, network{
		resolve: stage.LookupIn(hosts),
		dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
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
	require.ErrorIs(t, c.run(ctx), errStopped)
}

// visitsOf returns the times of the requests for each page.
func visitsOf(web *vweb.Web) map[string][]time.Time {
	visits := map[string][]time.Time{}
	for _, r := range web.Log() {
		if web.IsPage(r.URL()) {
			visits[r.URL()] = append(visits[r.URL()], r.Time)
		}
	}
	return visits
}

// requirePauses holds that no two requests to a host or an address were closer than the delay.
func requirePauses(t *testing.T, log []vweb.Request, delay time.Duration) {
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

// requireFewRepeats holds that a page is visited earlier than its policy wants only if its last
// visit was not on record when the crawler was killed; and that is what was under way, or done in
// the last moments.
func requireFewRepeats(t *testing.T, visits map[string][]time.Time, downs []outage) {
	t.Helper()
	least := time.Duration(float64(weekPolicy.Min)/weekPace) - 2*unitFor(weekPace)/time.Duration(weekPace)
	repeats := 0
	for url, times := range visits {
		for i := 1; i < len(times); i++ {
			if times[i].Sub(times[i-1]) >= least {
				continue
			}
			repeats++
			killed := slices.ContainsFunc(downs, func(o outage) bool {
				return times[i-1].Before(o.from.Add(time.Second)) && times[i].After(o.from)
			})
			require.True(t, killed, "%s at %v and %v", url, times[i-1], times[i])
		}
	}
	t.Logf("%d visits were repeated after %d kills", repeats, len(downs)-1)
	require.LessOrEqual(t, repeats, 40*(len(downs)-1))
}

// requireAllKept holds that the archive has each version that was fetched, but for those of the
// last moments before a kill.
func requireAllKept(
	t *testing.T, dir string, web *vweb.Web, visits map[string][]time.Time, downs []outage,
) {
	t.Helper()
	a, err := archive.Open(dir, archive.Options{})
	require.NoError(t, err)
	defer a.Close()
	for url, times := range visits {
		versions, err := a.Versions(url)
		require.NoError(t, err)
		certain := 0
		for _, at := range times {
			if !slices.ContainsFunc(downs, func(o outage) bool {
				return o.from.Sub(at).Abs() < 200*time.Millisecond
			}) {
				certain++
			}
		}
		require.GreaterOrEqual(t, len(versions), certain, url)
		require.LessOrEqual(t, len(versions), len(times), url)
	}
	require.Equal(t, len(web.Reachable()), len(visits), "pages found")
}

// compareWithPlan compares what was caught with what the policy alone would catch if each visit
// took place when it is due.
func compareWithPlan(
	t *testing.T, week clock, web *vweb.Web, visits map[string][]time.Time, downs []outage,
) {
	t.Helper()
	var done, planned score
	end := week.at(week.began.Add(weekTakes))
	for _, url := range slices.Sorted(maps.Keys(visits)) {
		var actual []time.Time
		for _, at := range visits[url] {
			actual = append(actual, week.at(at))
		}
		changes := slices.Collect(web.Changes(url, actual[0], end))
		done.add(actual, changes)
		planned.add(plan(week, actual[0], end, changes, downs), changes)
	}
	t.Logf("coverage %.3f, planned %.3f; efficiency %.3f, planned %.3f; %d visits, planned %d",
		done.coverage(), planned.coverage(), done.efficiency(), planned.efficiency(),
		done.visits, planned.visits)
	if 10*done.visits < 8*planned.visits {
		t.Log("this machine is too slow for such a week, so that the two cannot be compared")
		return
	}
	require.InDelta(t, planned.coverage(), done.coverage(), 0.05)
	require.InDelta(t, planned.efficiency(), done.efficiency(), 0.05)
}

// plan returns the visits of a page that begin with the first one.
func plan(week clock, first, end time.Time, changes []time.Time, downs []outage) (visits []time.Time) {
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
			if at.After(week.at(down.from)) && at.Before(week.at(down.to)) {
				at = week.at(down.to)
			}
		}
	}
	return visits
}

// A score counts, after the first visit of each page.
type score struct{ visits, caught, versions int }

// add counts the visits of a page that changed at those times.
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
