package main

import (
	"bufio"
	"context"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// asProgram is an environment variable that makes the test binary run as the program, so that tests
// can kill processes.
const asProgram = "SPINNERET_CLUSTER_PROGRAM"

// Values of asProgram: a watched program ends when its input is closed, an unwatched one when its
// parent ends.
const (
	watched   = "watched"
	unwatched = "unwatched"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	byInput := os.Getenv(asProgram) == watched
	go func() { // no process may remain when the tests are killed
		if byInput {
			_, _ = bufio.NewReader(os.Stdin).ReadByte()
		} else {
			for parent := os.Getppid(); os.Getppid() == parent; {
				time.Sleep(time.Second)
			}
		}
		os.Exit(3)
	}()
	// The processes started by this one have no open input.
	_ = os.Setenv(asProgram, unwatched)
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// A child is the program in a process of its own.
type child struct {
	*exec.Cmd
	out *bufio.Reader
	in  io.Closer // closing it ends the child
}

// start runs the program until the test ends.
func start(t *testing.T, wrap []string, args ...string) *child {
	t.Helper()
	argv := append(append(slices.Clone(wrap), os.Args[0]), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), asProgram+"="+watched)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{cmd, bufio.NewReader(out), in}
	t.Cleanup(c.kill)
	return c
}

// dir returns the directory of the process's archive.
func (c *child) dir() string { return c.Args[slices.Index(c.Args, "-dir")+1] }

// kill ends the process as a power cut would.
func (c *child) kill() {
	_ = c.Process.Kill() // it may have ended
	_ = c.Wait()
}

// line returns the next line of the program's output.
func (c *child) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// A trial is a crawl of a virtual web by processes.
type trial struct {
	web   site
	hosts string // a hosts file
	port  int
	urls  string
	crawl *crawl.Crawl
	seeds []string
	delay time.Duration
}

// fetchers is the maximum number of requests in flight per partition in these tests.
const fetchers = 2

// begin serves a web on real sockets and creates a crawl of it.
func begin(t *testing.T, urls string, replicas int) *trial {
	t.Helper()
	return beginOn(t, urls, replicas, madeUp)
}

// beginOn is begin for any web. The caller may change the seeds.
func beginOn(t *testing.T, urls string, replicas int, serve func(port int) (site, error)) *trial {
	t.Helper()
	tr := serveTrial(t, serve)
	tr.urls = urls
	bus, err := jet.Connect(t.Context(), jet.Options{URL: urls, Replicas: replicas, MaxBytes: 16 << 20})
	require.NoError(t, err)
	t.Cleanup(bus.Close)
	tr.crawl, err = crawl.Create(t.Context(), bus, crawl.Options{
		Parts: 4, Delay: tr.delay, Loopback: true, MaxDepth: -1, Retries: -1,
	})
	require.NoError(t, err)
	return tr
}

// serveTrial serves a web without a crawl.
func serveTrial(t *testing.T, serve func(port int) (site, error)) *trial {
	t.Helper()
	tr := &trial{delay: 60 * time.Millisecond}
	for port := 21000; ; port++ { // until it is free on all addresses
		web, err := serve(port)
		if err == nil {
			tr.web, tr.port = web, port
			break
		}
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	}
	t.Cleanup(func() { tr.web.Close() })
	tr.hosts = filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(tr.hosts, hostsFile(tr.web), 0o666))
	for host := range tr.web.Hosts() {
		tr.seeds = []string{host.URL()}
		break
	}
	return tr
}

// madeUp serves the web of most tests.
func madeUp(port int) (site, error) {
	return webtest.Start(webtest.Options{Seed: 3, Hosts: 30, Addrs: 12, Pages: 8, Port: port})
}

// reachable returns the pages that are reachable from the seeds.
func (tr *trial) reachable() []string { return tr.web.Reachable(tr.seeds...) }

// seed starts the crawl once each of the named processes owns a partition.
func (tr *trial) seed(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		for len(tr.owned(t, name)) == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	require.NoError(t, tr.crawl.Seed(t.Context(), tr.seeds))
}

// member starts one process of the crawl.
func (tr *trial) member(t *testing.T, name string, wrap ...string) *child {
	t.Helper()
	return start(t, wrap, tr.runArgs(t, name)...)
}

func (tr *trial) runArgs(t *testing.T, name string) []string {
	t.Helper()
	return []string{"run", "-log", "error", "-nats", tr.urls, "-name", name, "-dir", filepath.Join(t.TempDir(), name),
		"-workers", strconv.Itoa(fetchers), "-ttl", "1s", "-commit", "20ms", "-hosts", tr.hosts,
		"-web-port", strconv.Itoa(tr.port)}
}

// waitFor waits until the given number of pages were requested.
func (tr *trial) waitFor(t *testing.T, pages int) {
	t.Helper()
	for len(tr.pages()) < pages {
		require.NoError(t, t.Context().Err())
		time.Sleep(5 * time.Millisecond)
	}
}

// pages counts the requests for each page.
func (tr *trial) pages() map[string]int {
	counts := map[string]int{}
	for _, r := range tr.web.Log() {
		if tr.web.IsPage(r.URL()) {
			counts[r.URL()]++
		}
	}
	return counts
}

// owned returns the partitions of a process, by its name.
func (tr *trial) owned(t *testing.T, name string) (parts []string) {
	t.Helper()
	look, _, _, err := tr.crawl.Look(t.Context())
	require.NoError(t, err)
	for _, p := range look {
		if strings.HasPrefix(p.Owner, name+"-") {
			parts = append(parts, p.Dest.String())
		}
	}
	return parts
}

// perCommit is the maximum number of fetches of a partition that are not committed yet: the requests
// in flight, the results that wait for a commit that takes long, and those of the time between two
// commits, in which an address gets one request at most, and a partition has few of twelve.
const perCommit = fetchers + (fetchers + 1) + 6

// inFlight returns the maximum number of repeated fetches: those not committed at each change of an
// owner.
func (tr *trial) inFlight(t *testing.T) int {
	t.Helper()
	changes := 0
	parts, _, _, err := tr.crawl.Look(t.Context())
	require.NoError(t, err)
	for _, p := range parts {
		if p.To == message.Fetch {
			changes += int(p.Epoch) - 1
		}
	}
	return perCommit * changes
}

// finish waits for the end of the crawl. Then each reachable page must have been fetched, with no
// more repeated fetches than were in flight when owners changed, and the server's log must show no
// request that came too early.
func (tr *trial) finish(t *testing.T) {
	t.Helper()
	require.NoError(t, tr.crawl.Wait(t.Context(), 100*time.Millisecond))
	got := tr.pages()
	var missing []string
	for _, url := range tr.reachable() {
		if got[url] == 0 {
			missing = append(missing, url)
		}
	}
	require.Empty(t, missing, "pages not fetched; fates of all: %v", tr.fates(t))
	require.Len(t, got, len(tr.reachable()))
	again := 0
	for _, n := range got {
		again += n - 1
	}
	twice := tr.inFlight(t)
	require.LessOrEqual(t, again, twice, "pages fetched twice")
	t.Logf("%d of %d pages fetched twice (limit %d)", again, len(got), twice)
	require.Empty(t, webtest.Violations(tr.web.Log(),
		func(string) time.Duration { return tr.delay },
		func(netip.Addr) time.Duration { return tr.delay },
	))
}

// fates adds up the counts of the partitions, to explain missing pages.
func (tr *trial) fates(t *testing.T) map[string]int64 {
	t.Helper()
	parts, _, _, err := tr.crawl.Look(t.Context())
	require.NoError(t, err)
	fates := map[string]int64{}
	for _, p := range parts {
		for fate, n := range p.Root.Counts {
			fates[fate] += n
		}
	}
	return fates
}

// lone starts one broker as a process.
func lone(t *testing.T, dir string, port int) (*child, string) {
	t.Helper()
	c := start(t, nil, "broker", "-dir", dir, "-port", strconv.Itoa(port))
	return c, c.line(t)
}

func TestAKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	_, urls := lone(t, t.TempDir(), 0)
	tr := begin(t, urls, 1)
	members := []*child{tr.member(t, "a"), tr.member(t, "b"), tr.member(t, "c")}
	tr.seed(t, "a", "b", "c")
	tr.waitFor(t, len(tr.reachable())/4)
	members[1].kill()
	tr.finish(t)
}

func TestASuspendedProcessDoesNothingAfterItResumes(t *testing.T) {
	t.Parallel()
	_, urls := lone(t, t.TempDir(), 0)
	tr := begin(t, urls, 1)
	tr.member(t, "a")
	sleeper := tr.member(t, "b")
	tr.seed(t, "a", "b")
	tr.waitFor(t, len(tr.reachable())/4)
	suspend(t, sleeper.Process)
	for len(tr.owned(t, "b")) > 0 {
		time.Sleep(20 * time.Millisecond)
	}
	resume(t, sleeper.Process)
	tr.finish(t)
}

func TestABrokerIsKilledAndRestarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broker, urls := lone(t, dir, 0)
	tr := begin(t, urls, 1)
	tr.member(t, "a")
	tr.member(t, "b")
	tr.seed(t, "a", "b")
	tr.waitFor(t, len(tr.reachable())/4)
	broker.kill()
	_, port, ok := strings.Cut(strings.TrimPrefix(urls, "nats://"), ":")
	require.True(t, ok)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	lone(t, dir, n)
	tr.finish(t)
}
