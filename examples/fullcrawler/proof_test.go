package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// The proof runs the program many times over one web. Each run is stopped at a random moment in one
// of these ways. FULLCRAWLER_TESTS=full runs the long form; FULLCRAWLER_SEED chooses other moments.
const (
	byTerm  = "SIGTERM"
	byKill  = "kill -9"
	byLimit = "a limit"
	byDisk  = "a full disk"
	byNames = "a dead name server"
)

const proofDelay = 100 * time.Millisecond

// A proof is the state that all runs share.
type proof struct {
	t      *testing.T
	random *rand.Rand
	web    *webtest.Web
	names  *nameServer
	port   string // of the web
	dir    string // of the crawl
	disk   disk
	seeds  []string
	ways   []string        // to stop a run, shuffled
	hard   map[string]bool // runs that were killed, or failed, by their User-Agent
}

// TestTheSameCommandContinues stops the program many times. In the end every page was fetched, none
// was fetched too early or more often than documented, the archive is sound, and the ledger has no
// fate that the web did not cause.
func TestTheSameCommandContinues(t *testing.T) {
	if args := os.Getenv("PROOF_ARGS"); args != "" {
		machine.Dial = dialPort(os.Getenv("PROOF_PORT"))
		if limit := os.Getenv("PROOF_FILE_SIZE"); limit != "" {
			var bytes uint64
			_, err := fmt.Sscan(limit, &bytes)
			require.NoError(t, err)
			limitFileSize(t, bytes)
		}
		os.Exit(program(strings.Split(args, "\n")))
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	runs, hosts, pages := 15, 24, 30
	if full {
		runs, hosts, pages = 200, 60, 500
	}
	p := newProof(t, hosts, pages)
	for run := range runs {
		p.stop(run)
	}
	out := p.finish()
	t.Logf("output of the last run:\n%s", out)
	p.requireEveryPage()
	p.requireFewRepeats()
	p.requireNoneEarly()
	p.requireTrueVerdicts()
	status, output := p.wait(p.start("check", "-out", p.dir))
	require.Zero(t, status, output)
}

// proofTraits are the traits of a host. Some are so slow that requests are in flight when a run is
// stopped.
func proofTraits(host int) webtest.Traits {
	traits := webtest.Traits{Redirects: 0.1, Gzip: host%2 == 0}
	switch host % 12 {
	case 3:
		traits.Latency, traits.Pages = webtest.Latency{Median: 150 * time.Millisecond, Sigma: 1}, 8
	case 5:
		traits.Robots, traits.Pages = webtest.Robots{CrawlDelay: time.Second}, 5
	case 7:
		traits.Robots = webtest.Robots{Mode: webtest.RobotsMissing}
	case 9:
		traits.Refuse = true
	case 11:
		traits.Robots = webtest.Robots{Mode: webtest.RobotsError}
	}
	return traits
}

func newProof(t *testing.T, hosts, pages int) *proof {
	seed := uint64(22)
	if other := os.Getenv("FULLCRAWLER_SEED"); other != "" {
		_, err := fmt.Sscan(other, &seed)
		require.NoError(t, err)
	}
	p := &proof{
		t: t, random: rand.New(rand.NewPCG(seed, 0)),
		hard: map[string]bool{},
		ways: []string{byTerm, byKill, byLimit, byDisk, byNames},
		web: serve(t, webtest.Options{
			Seed: 22, Hosts: hosts, Addrs: hosts * 3 / 4, Pages: pages, Traits: proofTraits,
		}),
	}
	p.names = serveNames(t, p.web)
	p.port, _, _ = strings.Cut(describe(t, p.web), " ")
	p.disk = newDisk(t)
	p.dir = filepath.Join(p.disk.dir(), "crawl")
	for host := range p.web.Hosts() {
		p.seeds = append(p.seeds, host.URL())
	}
	p.seeds = append(p.seeds, "http://nobody.vweb.test/")
	return p
}

// dialPort returns a dialer that replaces the port of every address.
func dialPort(port string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		var d net.Dialer
		return d.DialContext(ctx, network, net.JoinHostPort(host, port))
	}
}

// A process is a run of the program.
type process struct {
	*exec.Cmd
	out  bytes.Buffer
	ends chan error
}

// start starts the program. Its User-Agent identifies the run.
func (p *proof) start(args ...string) *process {
	p.t.Helper()
	run := &process{ends: make(chan error, 1)}
	run.Cmd = exec.Command(os.Args[0], "-test.run=^TestTheSameCommandContinues$")
	run.Env = append(os.Environ(), "PROOF_ARGS="+strings.Join(args, "\n"), "PROOF_PORT="+p.port)
	run.Env = append(run.Env, p.disk.env()...)
	run.Stdout, run.Stderr = &run.out, &run.out
	require.NoError(p.t, run.Start())
	go func() { run.ends <- run.Wait() }()
	return run
}

// crawl starts the same command each time, except for limits and the contact.
func (p *proof) crawl(run int, limits ...string) *process {
	args := append([]string{
		"-out", p.dir, "-private", "-own", "-delay", proofDelay.String(), "-scope", "any", "-sitemaps=false",
		"-dns", p.names.addr, "-contact", contactOf(run), "-min-free", "0",
		"-wait", "0", "-concurrency", "16", "-memory", "64MB",
	}, limits...)
	return p.start(append(args, p.seeds...)...)
}

func contactOf(run int) string { return fmt.Sprintf("run-%d@example.org", run) }

// agentOf returns the User-Agent of a run.
func agentOf(run int) string {
	cfg := cockpit.Config{Agent: "spinneret", Contact: contactOf(run)}
	return cfg.UserAgent()
}

// wait returns the exit status of a run and its output. The status is -1 if it was killed.
func (p *proof) wait(run *process) (status int, output string) {
	p.t.Helper()
	select {
	case err := <-run.ends:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode(), run.out.String()
		}
		require.NoError(p.t, err)
		return 0, run.out.String()
	case <-time.After(3 * time.Minute):
		require.NoError(p.t, run.Process.Signal(syscall.SIGABRT))
		<-run.ends
		require.FailNow(p.t, "a run does not end", run.out.String())
		return 0, ""
	}
}

// moment waits for a random time, within which a run starts up or is at full speed.
func (p *proof) moment() {
	time.Sleep(time.Duration(p.random.IntN(800)) * time.Millisecond)
}

// stop lets the crawl run and stops it in a random way.
func (p *proof) stop(run int) {
	p.t.Helper()
	if run%len(p.ways) == 0 {
		p.random.Shuffle(len(p.ways), func(i, j int) { p.ways[i], p.ways[j] = p.ways[j], p.ways[i] })
	}
	way := p.ways[run%len(p.ways)]
	var limits []string
	switch kind := p.random.IntN(3); {
	case way != byLimit:
	case kind == 0:
		limits = []string{"-pages", fmt.Sprint(1 + p.random.IntN(60))}
	case kind == 1:
		limits = []string{"-time", fmt.Sprint(p.random.IntN(1000), "ms")}
	default:
		limits = []string{"-bytes", fmt.Sprint(1 + p.random.IntN(200_000))}
	}
	if way == byDisk {
		p.disk.prepare(p.random)
	}
	child := p.crawl(run, limits...)
	p.moment()
	switch way {
	case byTerm:
		p.signal(child, syscall.SIGTERM)
	case byKill:
		p.signal(child, syscall.SIGKILL)
	case byDisk:
		p.disk.fill(p.random)
		p.moment()
		p.signal(child, syscall.SIGTERM)
	case byNames:
		p.names.die(p.random)
		p.moment()
		if p.random.IntN(2) == 0 { // it recovers before the run ends
			p.names.revive()
			p.moment()
		}
		p.signal(child, syscall.SIGTERM)
	}
	status, output := p.wait(child)
	p.disk.empty()
	p.names.revive()
	p.t.Logf("run %d, %s: status %d after %d requests", run, way, status, len(p.web.Log()))
	switch {
	case status == -1 && way == byKill:
		p.hard[agentOf(run)] = true
	case status == -1 && output == "": // before its first line of output
	case way == byDisk && status == 1:
		p.hard[agentOf(run)] = true
		require.Regexp(p.t, "no space left|file too large", output)
	default:
		require.Zero(p.t, status, "%s: %s", way, output)
	}
	require.NotContains(p.t, output, "repair", "after %s", way)
	require.NotContains(p.t, output, "damaged", "after %s", way)
}

// signal sends a signal to a run that may have ended already.
func (p *proof) signal(child *process, signal os.Signal) {
	if err := child.Process.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(p.t, err)
	}
}

// finish runs the crawl to its end.
func (p *proof) finish() (output string) {
	p.t.Helper()
	status, output := p.wait(p.crawl(-1))
	require.Zero(p.t, status, output)
	require.Contains(p.t, output, "nothing left to fetch")
	return output
}

func (p *proof) requireEveryPage() {
	p.t.Helper()
	fetched := map[string]bool{}
	for _, r := range p.web.Log() {
		fetched[r.URL()] = fetched[r.URL()] || r.Status == 200
	}
	for _, url := range p.web.Reachable(p.seeds[:len(p.seeds)-1]...) {
		require.True(p.t, fetched[url], url)
	}
}

// requireFewRepeats requires that a page is requested once per run, and again only if the earlier
// run was killed or failed, or if the request was its last one to the host, and so may have been
// interrupted.
func (p *proof) requireFewRepeats() {
	p.t.Helper()
	last, visits, repeats := map[string]time.Time{}, map[string]webtest.Request{}, 0
	for _, r := range p.web.Log() {
		last[r.UserAgent+r.Host] = r.Time
	}
	for _, r := range p.web.Log() {
		if !p.web.IsPage(r.URL()) {
			continue
		}
		before, again := visits[r.URL()]
		visits[r.URL()] = r
		if !again {
			continue
		}
		repeats++
		require.NotEqual(p.t, before.UserAgent, r.UserAgent, "%s twice in a run", r.URL())
		broken := last[before.UserAgent+before.Host].Equal(before.Time)
		require.True(p.t, broken || p.hard[before.UserAgent], "%s after %s", r.URL(), before.UserAgent)
	}
	p.t.Logf("%d of %d pages were fetched again; %d runs ended hard", repeats, len(visits), len(p.hard))
	require.LessOrEqual(p.t, repeats, 40*len(p.hard))
}

// requireNoneEarly requires that delays were obeyed across all runs. A Crawl-delay received in the
// last moment before a kill may be lost; then the usual delay applies.
func (p *proof) requireNoneEarly() {
	p.t.Helper()
	log := p.web.Log()
	require.Empty(p.t, webtest.Violations(log,
		func(string) time.Duration { return proofDelay },
		func(netip.Addr) time.Duration { return proofDelay }))
	asked := webtest.Violations(log, func(host string) time.Duration {
		h, _ := p.web.Host(host)
		return proofTraits(h.Index).Robots.CrawlDelay
	}, nil)
	for _, v := range asked {
		require.NotEqual(p.t, v.Earlier.UserAgent, v.Later.UserAgent, "%v", v)
	}
	require.LessOrEqual(p.t, len(asked), len(p.hard))
}

// requireTrueVerdicts compares the fates of all visits with the traits of the web.
func (p *proof) requireTrueVerdicts() {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, cockpit.LedgerName))
	require.NoError(p.t, err)
	recorded := map[string]bool{}
	for text := range strings.Lines(string(text)) {
		var l cockpit.Line
		require.NoError(p.t, json.Unmarshal([]byte(text), &l), text)
		require.Contains(p.t, p.verdicts(l.URL), l.Fate, "%s: %s", l.URL, l.Why)
		recorded[l.URL] = recorded[l.URL] || l.Fate == stage.Fetched || l.Fate == stage.Unchanged
	}
	for _, url := range p.web.Reachable(p.seeds[:len(p.seeds)-1]...) {
		require.True(p.t, recorded[url], "%s has no line", url)
	}
}

// verdicts returns the possible fates of the visits to a URL.
func (p *proof) verdicts(url string) []stage.Fate {
	name, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	host, known := p.web.Host(name)
	if !known {
		return []stage.Fate{stage.UnknownHost}
	}
	switch traits := proofTraits(host.Index); {
	case traits.Refuse: // a later run knows from its robots.txt
		return []stage.Fate{stage.Refused, stage.RobotsUnreachable, stage.Interrupted}
	case traits.Robots.Mode == webtest.RobotsError:
		return []stage.Fate{stage.RobotsUnreachable, stage.Interrupted}
	}
	return []stage.Fate{
		stage.Fetched, stage.Unchanged, stage.Redirected, stage.Disallowed, stage.Interrupted,
	}
}

// A nameServer serves the hosts of a web by DNS. It can fail in three ways.
type nameServer struct {
	t     *testing.T
	web   *webtest.Web
	addr  string
	conn  atomic.Pointer[net.UDPConn]
	state atomic.Int32
}

// The states of a nameServer. If it refuses, its port is closed.
const (
	answers int32 = iota
	silent
	fails
	refuses
)

func serveNames(t *testing.T, web *webtest.Web) *nameServer {
	s := &nameServer{t: t, web: web, addr: "127.0.0.1:0"}
	s.listen()
	t.Cleanup(func() { s.conn.Load().Close() })
	return s
}

func (s *nameServer) listen() {
	addr, err := net.ResolveUDPAddr("udp", s.addr)
	require.NoError(s.t, err)
	conn, err := net.ListenUDP("udp", addr)
	require.NoError(s.t, err)
	s.addr = conn.LocalAddr().String()
	s.conn.Store(conn)
	go s.serve(conn)
}

// die makes the server fail in a random way.
func (s *nameServer) die(random *rand.Rand) {
	s.state.Store(silent + random.Int32N(3))
	if s.state.Load() == refuses {
		s.conn.Load().Close()
	}
}

func (s *nameServer) revive() {
	if s.state.Swap(answers) == refuses {
		s.listen()
	}
}

func (s *nameServer) serve(conn *net.UDPConn) {
	question := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(question)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(question[:n]) != nil || s.state.Load() == silent || len(m.Questions) == 0 {
			continue
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if s.state.Load() == fails {
			m.RCode = dnsmessage.RCodeServerFailure
		} else {
			s.answer(&m)
		}
		if packed, err := m.Pack(); err == nil {
			_, _ = conn.WriteToUDPAddrPort(packed, from) // an error recurs at the next question
		}
	}
}

func (s *nameServer) answer(m *dnsmessage.Message) {
	q := m.Questions[0]
	host, known := s.web.Host(strings.TrimSuffix(q.Name.String(), "."))
	switch {
	case q.Name.String() == ".": // the root has no address
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
			Body:   &dnsmessage.AResource{A: host.Addr.As4()},
		}}
	}
}
