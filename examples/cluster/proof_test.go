package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/crawl"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/jet"
	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// roundsVariable sets the number of rounds of the proof: by default 1; the long form has 100 and
// takes an hour.
const roundsVariable = "SPINNERET_CLUSTER_ROUNDS"

// TestProof crawls a virtual web while everything fails that can: processes are killed and
// suspended, one has a full disk, networks are cut, and the broker is killed and restarted. The
// web's log must show that each page was fetched, and only once unless it was in flight when its
// owner changed. No request came before the delay of its host or address, or before a Retry-After.
func TestProof(t *testing.T) {
	t.Parallel()
	rounds := 1
	if text := os.Getenv(roundsVariable); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		rounds = n
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { proveRound(t, seed) })
	}
}

// retryAfter is the Retry-After of some hosts.
const retryAfter = time.Second

func hostile(seed uint64) func(port int) (site, error) {
	return func(port int) (site, error) {
		return webtest.Start(webtest.Options{
			Seed: seed, Hosts: 20, Addrs: 8, Pages: 10, Port: port, Traits: func(host int) webtest.Traits {
				tr := webtest.Traits{Redirects: 0.1, Gzip: host%2 == 0}
				if host%5 == 1 {
					tr.Throttle = webtest.Throttle{Every: 4, RetryAfter: retryAfter}
				}
				return tr
			},
		})
	}
}

// A siege is a crawl under attack.
type siege struct {
	*trial
	rand    *rand.Rand
	dir     string // of the broker
	port    int
	broker  *child
	doors   []*door // between each process and the broker
	members []*child
	args    [][]string
}

func proveRound(t *testing.T, seed uint64) {
	s := &siege{rand: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir()}
	var urls string
	s.broker, urls = lone(t, s.dir, 0)
	addr := strings.TrimPrefix(urls, "nats://")
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	s.port, err = strconv.Atoi(port)
	require.NoError(t, err)
	s.trial = serveTrial(t, hostile(seed+100))
	s.urls = urls
	bus, err := jet.Connect(t.Context(), jet.Options{URL: urls, MaxBytes: 16 << 20})
	require.NoError(t, err)
	t.Cleanup(bus.Close)
	s.crawl, err = crawl.Create(t.Context(), bus, crawl.Options{
		Parts: 4, Delay: s.delay, Loopback: true, MaxDepth: -1,
		Retries: 50, Retry: 100 * time.Millisecond, Backoff: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	for i := range 3 {
		s.enlist(t, addr, fmt.Sprintf("p%d", i), filepath.Join(t.TempDir(), "archive"))
	}
	if small := smallDisk(t); small != "" {
		s.enlist(t, addr, "full", small)
	}
	s.seed(t, "p0", "p1", "p2")
	for n := 1; n <= 5; n++ {
		s.waitFor(t, len(s.reachable())*n/8)
		s.attack(t)
	}
	require.NoError(t, s.crawl.Wait(t.Context(), 100*time.Millisecond))
	s.check(t)
}

// enlist starts a process with its own network to the broker.
func (s *siege) enlist(t *testing.T, broker, name, dir string) {
	t.Helper()
	d := newDoor(t, broker)
	args := []string{"run", "-nats", "nats://" + d.addr(), "-name", name, "-dir", dir, "-log", "error",
		"-workers", strconv.Itoa(fetchers), "-ttl", "1s", "-commit", "20ms", "-hosts", s.hosts,
		"-web-port", strconv.Itoa(s.trial.port)}
	s.doors, s.args = append(s.doors, d), append(s.args, args)
	s.members = append(s.members, start(t, nil, args...))
}

// attack makes one random attack on one of the first three processes or on the broker.
func (s *siege) attack(t *testing.T) {
	t.Helper()
	victim := s.rand.IntN(3)
	switch s.rand.IntN(4) {
	case 0:
		t.Logf("process %d is killed", victim)
		s.members[victim].kill()
		s.members[victim] = start(t, nil, s.args[victim]...)
	case 1:
		t.Logf("process %d is suspended", victim)
		suspend(t, s.members[victim].Process)
		time.Sleep(2 * time.Second) // until others have taken its partitions
		resume(t, s.members[victim].Process)
	case 2:
		t.Logf("process %d is cut off", victim)
		s.doors[victim].set(false)
		time.Sleep(2 * time.Second)
		require.Zero(t, s.doors[victim].connections(), "the process bypasses its door")
		s.doors[victim].set(true)
		for s.doors[victim].connections() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	case 3:
		t.Log("the broker is killed")
		s.broker.kill()
		s.broker, _ = lone(t, s.dir, s.port)
	}
}

// check checks the web's log.
func (s *siege) check(t *testing.T) {
	t.Helper()
	log := s.web.Log()
	fetched, again := map[string]bool{}, 0
	blocked := map[string]time.Time{} // until when, by host
	for _, r := range log {
		if r.Path == "/robots.txt" {
			continue
		}
		if until, ok := blocked[r.Host]; ok {
			require.False(t, r.Time.Before(until), "%s got a request %v before its Retry-After",
				r.Host, until.Sub(r.Time))
		}
		switch {
		case r.Status == http.StatusTooManyRequests:
			blocked[r.Host] = r.Time.Add(retryAfter)
		case r.Status == http.StatusOK && s.web.IsPage(r.URL()):
			if fetched[r.URL()] {
				again++
			}
			fetched[r.URL()] = true
		}
	}
	for _, url := range s.reachable() {
		require.True(t, fetched[url], "%s is lost; fates of all: %v", url, s.fates(t))
	}
	require.Len(t, fetched, len(s.reachable()))
	twice := s.inFlight(t)
	require.LessOrEqual(t, again, twice, "pages fetched twice")
	require.NotEmpty(t, blocked, "no host has sent a Retry-After")
	require.Empty(t, webtest.Violations(log, func(string) time.Duration { return s.delay },
		func(netip.Addr) time.Duration { return s.delay }))
	t.Logf("%d pages, %d of them fetched twice (limit %d)", len(fetched), again, twice)
}

// smallDisk returns a directory of 64 KiB, or "" without the permission to mount one.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Logf("no process with a full disk: %v: %s", err, out)
		return ""
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}

// A door is the network between a process and the broker.
type door struct {
	listener net.Listener
	broker   string

	mu    sync.Mutex
	open  bool
	conns map[net.Conn]struct{}
}

func newDoor(t *testing.T, broker string) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &door{listener: l, broker: broker, open: true, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() { l.Close(); d.set(false) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go d.pass(conn)
		}
	}()
	return d
}

func (d *door) addr() string { return d.listener.Addr().String() }

// set opens or shuts the door. Existing connections are closed.
func (d *door) set(open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = open
	for conn := range d.conns {
		conn.Close()
	}
	clear(d.conns)
}

func (d *door) connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// pass forwards one connection.
func (d *door) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", d.broker)
	if err != nil {
		return
	}
	defer out.Close()
	d.mu.Lock()
	open := d.open
	if open {
		d.conns[in], d.conns[out] = struct{}{}, struct{}{}
	}
	d.mu.Unlock()
	if !open {
		return
	}
	go func() { _, _ = io.Copy(out, in); out.Close() }()
	_, _ = io.Copy(in, out)
}
