package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// nextPorts gives parallel tests of this process different ports.
var nextPorts atomic.Int64

// freePorts returns the first port of a free range for three brokers. Other processes that run the
// same tests start their search elsewhere, since a port may be taken before the brokers listen.
func freePorts(t *testing.T) int {
	t.Helper()
	mine := 22000 + 200*(os.Getpid()%50)
	for range 10 {
		tr := trio{port: mine + 10*int(nextPorts.Add(1)-1)}
		if tr.free() == nil {
			return tr.port
		}
	}
	t.Fatal("no free ports")
	return 0
}

// start starts the three brokers as processes, each by the command prefix that wrap returns for it.
func (tr *trio) start(t *testing.T, wrap func(i int) []string) []*child {
	t.Helper()
	var all []*child
	for i := range brokers {
		all = append(all, start(t, wrap(i), tr.args(i)...))
	}
	require.NoError(t, tr.ready(t.Context()))
	return all
}

func plain(int) []string { return nil }

// leader returns the broker that leads the stream of the crawl.
func (tr *trial) leader(t *testing.T) int {
	t.Helper()
	conn, err := nats.Connect(tr.urls)
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "crawl")
	require.NoError(t, err)
	name := stream.CachedInfo().Cluster.Leader
	var n int
	_, err = fmt.Sscanf(name, "n%d", &n)
	require.NoError(t, err, name)
	return n - 1
}

// TestABrokerOfThreeIsKilled kills the broker that leads the stream of the crawl, and restarts it
// after the crawl has continued without it.
func TestABrokerOfThreeIsKilled(t *testing.T) {
	t.Parallel()
	three := &trio{dir: t.TempDir(), port: freePorts(t)}
	all := three.start(t, plain)
	tr := begin(t, three.urls(), brokers)
	tr.member(t, "a")
	tr.member(t, "b")
	tr.seed(t, "a", "b")
	tr.waitFor(t, len(tr.reachable())/4)
	victim := tr.leader(t)
	all[victim].kill()
	tr.waitFor(t, len(tr.reachable())/2)
	start(t, nil, three.args(victim)...)
	tr.finish(t)
}

// TestANetworkThatIsCutHeals cuts off the broker that leads the stream of the crawl from the others
// and from all clients. They only notice that it is silent.
func TestANetworkThatIsCutHeals(t *testing.T) {
	t.Parallel()
	three := &trio{dir: t.TempDir(), port: 4222}
	net := newNetwork(t)
	for i := range brokers {
		three.addrs[i] = net.join(t, i)
	}
	three.start(t, func(i int) []string { return []string{"ip", "netns", "exec", net.space(i)} })
	tr := begin(t, three.urls(), brokers)
	tr.member(t, "a")
	tr.member(t, "b")
	tr.seed(t, "a", "b")
	tr.waitFor(t, len(tr.reachable())/4)
	victim := tr.leader(t)
	net.run(t, "link", "set", net.link(victim), "down")
	tr.waitFor(t, len(tr.reachable())/2)
	net.run(t, "link", "set", net.link(victim), "up")
	tr.finish(t)
}

// A network is a bridge to a namespace for each broker. This process is on the bridge.
type network struct{ name string }

// newNetwork creates a bridge, or skips the test without permission.
func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{fmt.Sprintf("spn%d", os.Getpid()%100_000)}
	if out, err := exec.Command("ip", "link", "add", n.name, "type", "bridge").CombinedOutput(); err != nil {
		t.Skipf("cannot create networks here: %v: %s", err, out)
	}
	t.Cleanup(func() { n.run(t, "link", "del", n.name) })
	n.run(t, "addr", "add", n.addr(9)+"/24", "dev", n.name)
	n.run(t, "link", "set", n.name, "up")
	return n
}

// join creates a namespace, connects it to the bridge and returns its address.
func (n *network) join(t *testing.T, i int) string {
	t.Helper()
	if out, err := exec.Command("ip", "netns", "add", n.space(i)).CombinedOutput(); err != nil {
		t.Skipf("cannot create namespaces here: %v: %s", err, out)
	}
	t.Cleanup(func() { n.run(t, "netns", "del", n.space(i)) })
	// The kernel removes the link with the namespace, but only some time after its last process ends.
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", n.link(i)).Run() })
	n.run(t, "link", "add", n.link(i), "type", "veth", "peer", "name", "eth0", "netns", n.space(i))
	n.run(t, "link", "set", n.link(i), "master", n.name, "up")
	inside := []string{"netns", "exec", n.space(i), "ip"}
	n.run(t, append(inside, "addr", "add", n.addr(i)+"/24", "dev", "eth0")...)
	n.run(t, append(inside, "link", "set", "eth0", "up")...)
	n.run(t, append(inside, "link", "set", "lo", "up")...)
	return n.addr(i)
}

func (n *network) space(i int) string { return fmt.Sprintf("%s-%d", n.name, i) }
func (n *network) link(i int) string  { return fmt.Sprintf("%s-%d", n.name, i) }

// addr returns the address of broker i. It depends on the process, so that tests of several
// processes at the same time have different networks.
func (n *network) addr(i int) string {
	return fmt.Sprintf("10.%d.%d.%d", 128+os.Getpid()>>8%64, os.Getpid()%256, i+1)
}

func (n *network) run(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", strings.Join(args, " "), out)
}
