package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// A quarter is an operator's three months with a crawl, and what happens to it.
type quarter struct {
	t       *testing.T
	random  *rand.Rand
	web     *webtest.Web
	cfg     cockpit.Config
	run     *quarterRun // nil while nothing runs
	dead    time.Time   // until then the name servers answer nothing
	hard    []time.Time // kills, and ends by a full disk
	starts  []time.Time
	denied  []banned // by the deny list, or erased
	happens map[string]int
	table   *tabwriter.Writer
	text    bytes.Buffer
	takes   time.Duration
	written int64 // bytes, at the last row of the table
	pages   int   // likewise
}

// banned is what may not be requested for a time.
type banned struct {
	what     string // a host, or a URL
	from, to time.Time
}

// A quarterRun is a crawler at work.
type quarterRun struct {
	*crawler
	net   *severable
	stop  context.CancelFunc
	ended chan error
}

// TestAQuarter crawls changing pages for ninety days, in its long form, while the operator ends and starts the crawl,
// edits his lists and erases pages, and while the process is killed, the disk runs full, and name
// servers fail. The server's log is the witness.
func TestAQuarter(t *testing.T) {
	hosts, pages, days := 12, 20, 10 // most of the time goes to virtual seconds in which nothing happens
	if full {
		hosts, pages, days = 200, 500, 90
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		q := newQuarter(t, dir, hosts, pages, days)
		q.live()
		q.requireAllPages()
		q.requirePolite()
		q.requireBansHeld()
		q.requireFewRepeats()
		q.requireAllKept()
	})
}

// quarterTraits are the traits of a host whose pages change after a time.
func quarterTraits(host int, change time.Duration) webtest.Traits {
	traits := webtest.Traits{
		Change:    webtest.Change{Mean: change, Sigma: 1, Periodic: host%4 == 0},
		Redirects: 0.05, Gzip: host%2 == 0, Latency: webtest.Latency{Median: 100 * time.Millisecond, Sigma: 1},
	}
	switch host % 6 {
	case 1:
		traits.Robots = webtest.Robots{CrawlDelay: 20 * time.Second}
	case 2:
		traits.Throttle = webtest.Throttle{Every: 25, Status: 503, RetryAfter: time.Hour}
	case 3:
		traits.Sitemap = webtest.Sitemap{Orphans: 5}
	case 4:
		traits.Robots = webtest.Robots{Mode: webtest.RobotsMissing}
	}
	return traits
}

func newQuarter(t *testing.T, dir string, hosts, pages, days int) *quarter {
	q := &quarter{t: t, takes: time.Duration(days) * 24 * time.Hour, random: rand.New(rand.NewPCG(7, 7)), happens: map[string]int{}}
	q.table = tabwriter.NewWriter(&q.text, 0, 0, 2, ' ', tabwriter.AlignRight)
	q.web = serve(t, webtest.Options{
		Seed: 90, Hosts: hosts, Addrs: hosts * 3 / 4, Pages: pages, Network: memnet.New(),
		Traits: func(host int) webtest.Traits { return quarterTraits(host, q.takes/5) },
	})
	q.cfg = politeConfig(t, q.web)
	q.cfg.Out = filepath.Join(dir, "0")
	q.cfg.ByRank, q.cfg.Forever, q.cfg.LedgerSize = true, true, 1<<20
	q.cfg.DenyFile, q.cfg.Filter.Deny = filepath.Join(dir, "deny"), new(urlfilter.List)
	for host := range q.web.Hosts() {
		q.cfg.Seeds = append(q.cfg.Seeds, host.URL())
	}
	require.NoError(t, os.WriteFile(q.cfg.DenyFile, nil, 0o600))
	return q
}

// live is the quarter.
func (q *quarter) live() {
	fmt.Fprintln(q.table, "day\tpages\trequests\tdirectory\twritten\ta page\theap\tstore\t")
	end, row := time.Now().Add(q.takes), time.Now()
	ways := []string{"kill", "kill", "stop", "disk", "deny", "erase", "names", "check"}
	for q.start(); time.Now().Before(end); {
		time.Sleep(time.Duration((0.2 + 1.6*q.random.Float64()) * float64(q.takes/70)))
		if len(ways) == 0 {
			ways = []string{"kill", "kill", "stop", "disk", "deny", "erase", "names", "check"}
		}
		at := q.random.IntN(len(ways))
		way := ways[at]
		ways = slices.Delete(ways, at, at+1)
		q.happens[way]++
		q.happen(way)
		if time.Since(row) > q.takes/13 {
			row = time.Now()
			q.row()
		}
	}
	q.end(cockpit.ErrStopped)
	q.check()
	require.NoError(q.t, q.table.Flush())
	q.t.Logf("%v\n%s", q.happens, &q.text)
}

func (q *quarter) happen(way string) {
	switch way {
	case "kill":
		q.kill()
		q.start()
	case "stop":
		q.end(cockpit.ErrStopped)
		time.Sleep(time.Duration(q.random.Int64N(int64(2 * time.Hour))))
		q.start()
	case "disk":
		q.end(cockpit.ErrStopped)
		q.cfg.MinFree = math.MaxInt64
		q.start()
		require.ErrorIs(q.t, <-q.run.ended, cockpit.ErrDiskLimit)
		q.run, q.cfg.MinFree = nil, 0
		q.start()
	case "deny":
		q.deny()
	case "erase":
		q.erase()
	case "names":
		q.dead = time.Now().Add(time.Duration(q.random.Int64N(int64(3 * time.Hour))))
	case "check":
		q.end(cockpit.ErrStopped)
		q.check()
		q.start()
	}
}

func (q *quarter) start() {
	q.t.Helper()
	require.NoError(q.t, q.cfg.ReadDeny())
	q.starts = append(q.starts, time.Now())
	network := &severable{Network: on(q.web)}
	dial := network.Network
	c, err := newCrawler(q.cfg, stage.Network{Dial: network.dial, Roots: dial.Roots,
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
			if time.Now().Before(q.dead) {
				return nil, 0, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
			}
			return dial.Resolve(ctx, host)
		}})
	require.NoError(q.t, err)
	ctx, stop := context.WithCancel(q.t.Context())
	q.run = &quarterRun{crawler: c, net: network, stop: stop, ended: make(chan error, 1)}
	go func(r *quarterRun) { r.ended <- r.crawler.run(ctx) }(q.run)
}

// end tells a run to end, if there is one.
func (q *quarter) end(want error) {
	q.t.Helper()
	q.run.stop()
	require.ErrorIs(q.t, <-q.run.ended, want)
	q.run = nil
}

// kill ends a run at a moment, as kill -9 does: what the files had then is what the next one finds, and the
// web sees no more of it.
func (q *quarter) kill() {
	q.t.Helper()
	time.Sleep(time.Duration(q.random.Int64N(int64(time.Minute))))
	synctest.Wait()
	q.hard = append(q.hard, time.Now())
	q.run.net.sever()
	next := filepath.Join(filepath.Dir(q.cfg.Out), fmt.Sprint(len(q.hard)))
	require.NoError(q.t, os.CopyFS(next, os.DirFS(q.cfg.Out)))
	q.run.stop()
	<-q.run.ended
	require.NoError(q.t, os.RemoveAll(q.cfg.Out))
	q.cfg.Out = next
}

// deny forbids another host than before, while the crawl runs.
func (q *quarter) deny() {
	q.t.Helper()
	hosts := slices.Collect(q.web.Hosts())
	host := hosts[q.random.IntN(len(hosts))].Name
	now := time.Now()
	for i := range q.denied {
		if q.denied[i].to.IsZero() && !strings.Contains(q.denied[i].what, "/") {
			q.denied[i].to = now
		}
	}
	require.NoError(q.t, os.WriteFile(q.cfg.DenyFile, []byte(host+"\n"), 0o600))
	q.denied = append(q.denied, banned{what: host, from: now})
	q.run.reload()
	select {
	case err := <-q.run.ended: // the lifted line was for pages that are known
		require.ErrorIs(q.t, err, cockpit.ErrReopen)
		q.start()
	case <-time.After(time.Minute):
	}
}

// erase takes down a page.
func (q *quarter) erase() {
	q.t.Helper()
	hosts := slices.Collect(q.web.Hosts())
	pages := slices.Collect(hosts[q.random.IntN(len(hosts))].Pages())
	page := pages[1+q.random.IntN(len(pages)-1)]
	q.end(cockpit.ErrStopped)
	status, output := run(q.t, "erase", "-out", q.cfg.Out, "-reason", "asked by mail", page)
	require.Zero(q.t, status, output)
	q.denied = append(q.denied, banned{what: page, from: time.Now()})
	q.start()
}

func (q *quarter) check() {
	q.t.Helper()
	status, output := run(q.t, "check", "-out", q.cfg.Out)
	require.Zero(q.t, status, output)
}

// row adds to the table.
func (q *quarter) row() {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	pages := 0
	log := q.web.Log()
	for _, r := range log {
		if q.web.IsPage(r.URL()) {
			pages++
		}
	}
	written := bytesWritten()
	fmt.Fprintf(q.table, "%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t\n", int(time.Since(q.starts[0])/(24*time.Hour)), pages, len(log),
		cockpit.Size(sizeOf(q.t, q.cfg.Out)), cockpit.Size(written-q.written),
		cockpit.Size((written-q.written)/int64(max(pages-q.pages, 1))), cockpit.Size(int64(m.HeapAlloc)),
		cockpit.Size(sizeOf(q.t, filepath.Join(q.cfg.Out, stage.PagesDir))))
	q.written, q.pages = written, pages
}

// bytesWritten returns what this process has written to files and sockets, 0 if the system does not tell.
func bytesWritten() (n int64) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "wchar: "); ok {
			fmt.Sscan(rest, &n)
		}
	}
	return n
}

func sizeOf(t *testing.T, dir string) (n int64) {
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		n += info.Size()
		return err
	}))
	return n
}

// severable is a network whose connections all end at once.
type severable struct {
	stage.Network
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (s *severable) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := s.Network.Dial(ctx, network, addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.cut {
		conn.Close()
		return nil, errors.New("severed")
	}
	s.conns = append(s.conns, conn)
	return conn, err
}

func (s *severable) sever() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
	for _, conn := range s.conns {
		if conn != nil {
			conn.Close()
		}
	}
}

// requireAllPages requires that each page which may be fetched was fetched.
func (q *quarter) requireAllPages() {
	fetched := map[string]bool{}
	for _, r := range q.web.Log() {
		fetched[r.URL()] = fetched[r.URL()] || r.Status == 200
	}
	var missing []string
	for _, url := range q.web.Reachable(q.cfg.Seeds...) {
		if !fetched[url] {
			missing = append(missing, url)
		}
	}
	missing = slices.DeleteFunc(missing, func(url string) bool {
		return slices.ContainsFunc(q.denied, func(b banned) bool { return b.covers(url) && b.to.IsZero() })
	})
	require.Empty(q.t, missing)
}

func (b banned) covers(url string) bool {
	return url == b.what || strings.HasPrefix(url, "http://"+b.what+"/")
}

// requirePolite requires that no request came too early, nor to where robots.txt forbids it, within runs and
// across them.
func (q *quarter) requirePolite() {
	require.Empty(q.t, q.web.Disallowed())
	log := q.web.Log()
	early := webtest.Violations(log,
		func(host string) time.Duration { return max(q.cfg.Delay, q.web.CrawlDelay(host)) },
		func(netip.Addr) time.Duration { return q.cfg.Delay })
	require.Empty(q.t, early)
	last := map[string]webtest.Request{}
	for _, r := range log {
		if before, ok := last[r.Host]; ok && before.RetryAfter > 0 {
			at := before.Answered.Add(2 * time.Second) // what a kill may lose
			lost := slices.ContainsFunc(q.hard, func(kill time.Time) bool {
				return kill.After(before.Time) && kill.Before(at)
			})
			require.True(q.t, lost || r.Time.Sub(before.Time) >= before.RetryAfter, "%s at %v after %v", r.URL(), r.Time, before)
		}
		last[r.Host] = r
	}
}

// requireBansHeld requires that no request arrives for what was denied or erased. Requests on their way when
// the list changed may.
func (q *quarter) requireBansHeld() {
	for _, r := range q.web.Log() {
		for _, b := range q.denied {
			if b.covers(r.URL()) && r.Time.After(b.from.Add(2*time.Second)) {
				require.False(q.t, b.to.IsZero() || r.Time.Before(b.to), "%s at %v, denied from %v to %v", r.URL(), r.Time, b.from, b.to)
			}
		}
	}
}

// requireFewRepeats requires that a page is visited soon after the last visit only because of a kill.
func (q *quarter) requireFewRepeats() {
	last, repeats := map[string]time.Time{}, 0
	for _, r := range q.web.Log() {
		if !q.web.IsPage(r.URL()) || r.Status != 200 {
			continue
		}
		before, again := last[r.URL()]
		last[r.URL()] = r.Time
		if !again || r.Time.Sub(before) > time.Hour {
			continue
		}
		repeats++
		require.True(q.t, slices.ContainsFunc(q.hard, func(kill time.Time) bool {
			return kill.After(before) && kill.Before(r.Time) && kill.Sub(before) < 5*time.Second
		}), "%s at %v and %v", r.URL(), before, r.Time)
	}
	q.t.Logf("%d visits repeated after %d kills", repeats, len(q.hard))
}

// requireAllKept requires that the archive has the visits of all pages, but for those in the last seconds
// before a kill, and nothing of those that were erased.
func (q *quarter) requireAllKept() {
	a, err := archive.Open(q.cfg.Out, archive.Options{ReadOnly: true})
	require.NoError(q.t, err)
	defer a.Close()
	visits := map[string]int{}
	for _, r := range q.web.Log() {
		lost := slices.ContainsFunc(q.hard, func(kill time.Time) bool {
			return !kill.Before(r.Time) && kill.Sub(r.Time) < 5*time.Second
		})
		if q.web.IsPage(r.URL()) && r.Status == 200 && !lost {
			visits[r.URL()]++
		}
	}
	for url, n := range visits {
		versions, err := a.Versions(url)
		require.NoError(q.t, err)
		if slices.ContainsFunc(q.denied, func(b banned) bool { return b.what == url }) {
			require.Empty(q.t, versions, url)
			continue
		}
		require.GreaterOrEqual(q.t, len(versions), n, url)
	}
}
