package crawl

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// serve starts a web that ends with the test.
func serve(t *testing.T, o webtest.Options) *webtest.Web {
	t.Helper()
	web, err := webtest.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { web.Close() })
	return web
}

// startBroker starts a broker that ends with the test, and returns its URL.
func startBroker(t *testing.T) (url string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, StoreDir: t.TempDir(), JetStream: true, NoSigs: true, NoLog: true,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(20*time.Second))
	return s.ClientURL()
}

func connect(t *testing.T, url string) *jet.Bus {
	t.Helper()
	bus, err := jet.Connect(t.Context(), jet.Options{URL: url, MaxBytes: 64 << 20})
	require.NoError(t, err)
	t.Cleanup(bus.Close)
	return bus
}

// testOptions are the options of a crawl of a virtual web.
func testOptions() Options {
	return Options{
		Parts: 4,
		Delay: 20 * time.Millisecond, Loopback: true, MaxDepth: -1, Timeout: 10 * time.Second,
		Retries: -1,
	}
}

// process returns a worker with its own connection, as in a process of its own.
func process(t *testing.T, url string, web *webtest.Web, name string) *Worker {
	t.Helper()
	c, err := Open(t.Context(), connect(t, url))
	require.NoError(t, err)
	w, err := c.NewWorker(WorkerOptions{
		// A process that a busy machine delays must not be taken for dead here: its pages would
		// rightly be fetched again.
		Name: name, Workers: 4, TTL: time.Minute, Every: 10 * time.Millisecond,
		Dir:    filepath.Join(t.TempDir(), name),
		Dial:   web.Dial,
		Lookup: lookupIn(web),
	})
	require.NoError(t, err)
	return w
}

// run runs a worker. The returned function stops it and returns when it has ended.
func run(t *testing.T, w *Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Errorf("worker: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return stop
}

// seed starts a crawl from the first host's root.
func seed(t *testing.T, c *Crawl, web *webtest.Web) {
	t.Helper()
	for host := range web.Hosts() {
		require.NoError(t, c.Seed(t.Context(), []string{host.URL()}))
		return
	}
}

// requested counts the requests for each URL.
func requested(web *webtest.Web) map[string]int {
	counts := map[string]int{}
	for _, r := range web.Log() {
		counts[r.URL()]++
	}
	return counts
}

// requireAllOnce requires one request for each page that can be reached.
func requireAllOnce(t *testing.T, web *webtest.Web) {
	t.Helper()
	got := requested(web)
	for url, n := range got {
		if !strings.Contains(url, "robots") { // some are redirected to another host's
			require.Equal(t, 1, n, "requests for %s", url)
		}
	}
	maps.DeleteFunc(got, func(url string, _ int) bool { return !web.IsPage(url) })
	require.Equal(t, web.Reachable(), slices.Sorted(maps.Keys(got)))
}

// requirePolite checks the delays of a mixed web against the server's log. They are exact: the
// crawler counts them from the first byte of a response.
func requirePolite(t *testing.T, web *webtest.Web, delay time.Duration) {
	t.Helper()
	asked := map[string]time.Duration{}
	for host := range web.Hosts() {
		if robots := webtest.Mixed(host.Index).Robots; robots.Mode == webtest.RobotsRules {
			asked[host.Name] = robots.CrawlDelay
		}
	}
	require.Empty(t, webtest.Violations(web.Log(),
		func(host string) time.Duration { return max(delay, asked[host]) },
		func(netip.Addr) time.Duration { return delay },
	))
}

func TestAnyNumberOfProcessesFetchEachPageOnce(t *testing.T) {
	for _, processes := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("processes=%d", processes), func(t *testing.T) {
			t.Parallel()
			web := serve(t, webtest.Options{Seed: 1, Hosts: 30, Addrs: 12, Pages: 8, Traits: webtest.Mixed})
			url := startBroker(t)
			c, err := Create(t.Context(), connect(t, url), testOptions())
			require.NoError(t, err)
			seed(t, c, web)
			for i := range processes {
				run(t, process(t, url, web, fmt.Sprintf("p%d", i)))
			}
			require.NoError(t, c.Wait(t.Context(), 50*time.Millisecond))
			requireAllOnce(t, web)
			requirePolite(t, web, c.Delay)
		})
	}
}

// TestASlowCrawlMakesTheSeederWait sends more seeds than the broker and the processes have room
// for, while no process fetches. The seeder waits, and nothing exceeds its bound. When a process
// fetches, each seed arrives once.
func TestASlowCrawlMakesTheSeederWait(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 2, Hosts: 10, Pages: 1})
	url := startBroker(t)
	const maxBytes, window, seeds = 8_000_000, 100, 12_000
	bus, err := jet.Connect(t.Context(), jet.Options{URL: url, MaxBytes: maxBytes})
	require.NoError(t, err)
	t.Cleanup(bus.Close)
	o := testOptions()
	// Without their robots.txt, only as many seeds are sent as may wait, however fast the other
	// modules are.
	o.Delay, o.Parts, o.Waiting = -1, 1, seeds*2/3
	c, err := Create(t.Context(), bus, o)
	require.NoError(t, err)

	worker := func(name string, modules ...message.Module) *Worker {
		c, err := Open(t.Context(), connect(t, url))
		require.NoError(t, err)
		w, err := c.NewWorker(WorkerOptions{
			Name: name, Modules: modules, Workers: 8, Window: window, TTL: time.Minute,
			Every: 10 * time.Millisecond, Dir: filepath.Join(t.TempDir(), name), Dial: web.Dial,
			Lookup: lookupIn(web),
		})
		require.NoError(t, err)
		return w
	}
	run(t, worker("states", message.Dedupe, message.Hosts))
	var urls []string
	for i := range seeds {
		urls = append(urls, fmt.Sprintf("http://h%05d.vweb.test/none/%d", i%7, i))
	}
	seeded := make(chan error, 1)
	go func() { seeded <- c.Seed(t.Context(), urls) }()
	for c.seedWaits.Load() == 0 {
		select {
		case err := <-seeded:
			t.Fatal("all seeds have found room:", err)
		case <-time.After(time.Millisecond):
		}
	}
	run(t, worker("fetch", message.Fetch))
	for done := false; !done; {
		select {
		case err := <-seeded:
			require.NoError(t, err)
			done = true
		default:
		}
		parts, _, full, err := c.Look(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, full, 1.0)
		for _, p := range parts {
			if p.To == message.Fetch {
				require.LessOrEqual(t, p.Root.Open, window+(64<<10)/len(urls[0])) // and one message
			}
		}
	}
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	got := requested(web)
	for _, url := range urls {
		require.Equal(t, 1, got[url], url)
	}
}

// lookupIn resolves the hosts of a web.
func lookupIn(web *webtest.Web) resolve.Lookup {
	return func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
		addrs, err := web.Resolve(ctx, host)
		return addrs, 0, err
	}
}

// TestSeedsMayBeSentAgain sends a list again after an interruption: no seed is added twice.
func TestSeedsMayBeSentAgain(t *testing.T) {
	web := serve(t, webtest.Options{Seed: 4, Hosts: 3, Pages: 4})
	url := startBroker(t)
	c, err := Create(t.Context(), connect(t, url), testOptions())
	require.NoError(t, err)
	seed(t, c, web)
	seed(t, c, web)
	stop := run(t, process(t, url, web, "p"))
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	seed(t, c, web)
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	requireAllOnce(t, web)

	_, members, _, err := c.Look(t.Context())
	require.NoError(t, err)
	require.Len(t, members, 1)
	require.True(t, strings.HasPrefix(members[0].ID, "p-"), members[0].ID)
	stop()
	_, members, _, err = c.Look(t.Context())
	require.NoError(t, err)
	require.Empty(t, members, "it has ended its session")
	parts, _, _, err := c.Look(t.Context())
	require.NoError(t, err)
	for _, p := range parts {
		require.Empty(t, p.Owner)
		require.EqualValues(t, 1, p.Epoch, "no partition changed its owner")
		require.Zero(t, p.Lag())
	}
}

// TestTheArchiveHasEveryResponse requires each response in the archive of the process that got it.
func TestTheArchiveHasEveryResponse(t *testing.T) {
	web := serve(t, webtest.Options{Seed: 5, Hosts: 6, Pages: 5})
	url := startBroker(t)
	c, err := Create(t.Context(), connect(t, url), testOptions())
	require.NoError(t, err)
	workers := []*Worker{process(t, url, web, "a"), process(t, url, web, "b")}
	var stops []func()
	for _, w := range workers {
		stops = append(stops, run(t, w))
	}
	seed(t, c, web)
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	got := map[string]int{}
	for i, w := range workers {
		stops[i]()
		a, err := archive.Open(w.opts.Dir, archive.Options{})
		require.NoError(t, err)
		for url := range requested(web) {
			versions, err := a.Versions(url)
			require.NoError(t, err)
			if len(versions) > 0 {
				got[url] += len(versions)
			}
		}
		require.NoError(t, a.Close())
	}
	require.Equal(t, requested(web), got)
}

func TestACrawlIsCreatedOnce(t *testing.T) {
	url := startBroker(t)
	bus := connect(t, url)
	_, err := Open(t.Context(), bus)
	require.ErrorIs(t, err, ErrNone)
	_, err = Create(t.Context(), bus, Options{Scope: "moon"})
	require.Error(t, err)
	_, err = Create(t.Context(), bus, Options{Parts: -1})
	require.Error(t, err)
	o := testOptions()
	o.Seeds = []string{"http://a.test/"}
	first, err := Create(t.Context(), bus, o)
	require.NoError(t, err)
	second, err := Create(t.Context(), bus, Options{Delay: time.Hour})
	require.ErrorIs(t, err, ErrDiffers)
	require.ErrorContains(t, err, "Delay is 20ms, not 1h0m0s")
	require.Equal(t, first.Options, second.Options, "the existing options stay")
	_, err = first.NewWorker(WorkerOptions{})
	require.ErrorContains(t, err, "directory")
}

// TestACrawlOfManySeedsIsCreated has more seeds than fit into a value, each of another host.
func TestACrawlOfManySeedsIsCreated(t *testing.T) {
	url := startBroker(t)
	o := testOptions()
	o.Scope = "host"
	for i := range 40_000 {
		o.Seeds = append(o.Seeds, fmt.Sprintf("http://www.host%d.test/a/page/of/some/length/%d", i, i),
			fmt.Sprintf("http://www.host%d.test/another", i))
	}
	c, err := Create(t.Context(), connect(t, url), o)
	require.NoError(t, err)
	require.Len(t, c.Seeds, 40_000, "one of each host is enough")
	again, err := Create(t.Context(), connect(t, url), o)
	require.NoError(t, err, "the same again")
	f, err := again.filter(Settings{})
	require.NoError(t, err)
	require.Empty(t, f.Check(knownOf(page("http://www.host39999.test/x"))))
	require.NotEmpty(t, f.Check(knownOf(page("http://www.host40000.test/x"))))
}

// TestAnEndedPageIsVisitedAgainOnRequest asks for a page of a crawl that visits each page once.
func TestAnEndedPageIsVisitedAgainOnRequest(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 2, Hosts: 1, Pages: 3})
	url, c := begin(t, web, nil)
	seed(t, c, web)
	run(t, worker(t, url, web, "p", nil))
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	var ended string
	for url := range requested(web) {
		if web.IsPage(url) {
			ended = url
		}
	}
	before := requested(web)
	require.NoError(t, c.Revisit(t.Context(), []string{ended}))
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	before[ended]++
	require.Equal(t, before, requested(web))
}

// TestACrawlOfAnotherVersionSaysWhatToDo opens the crawl of a version without formats, and of a
// later one.
func TestACrawlOfAnotherVersionSaysWhatToDo(t *testing.T) {
	for _, value := range []string{`{"Parts":4}`, `{"Format":99,"Parts":4}`} {
		bus := connect(t, startBroker(t))
		c, err := tables(bus, func(name string) (*jet.Table, error) {
			return bus.MakeTable(t.Context(), name)
		})
		require.NoError(t, err)
		require.NoError(t, c.States.Put(t.Context(), optionsKey, []byte(value)))
		_, err = Open(t.Context(), bus)
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, "-crawl NAME")
		_, err = Create(t.Context(), bus, testOptions())
		require.ErrorIs(t, err, ErrFormat)
	}
}

// TestOpenCreatesNothing allows a process to wait for a crawl that is created later, with any
// number of replicas.
func TestOpenCreatesNothing(t *testing.T) {
	bus := connect(t, startBroker(t))
	for range 2 {
		_, err := Open(t.Context(), bus)
		require.ErrorIs(t, err, ErrNone)
	}
	for _, name := range []string{"states", "leases", "control"} {
		_, err := bus.Table(t.Context(), name)
		require.ErrorIs(t, err, jet.ErrNoTable)
	}
}
