package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// A cable connects a process to a web. It can be pulled.
type cable struct {
	web    *webtest.Web
	pulled atomic.Bool
	tried  chan struct{} // gets a value when a lookup has failed
}

func (c *cable) lookup(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	if c.pulled.Load() {
		select {
		case c.tried <- struct{}{}:
		default:
		}
		return nil, 0, errors.New("no name server answers")
	}
	addrs, err := c.web.Resolve(ctx, host)
	return addrs, 0, err
}

func (c *cable) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.pulled.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ENETUNREACH}
	}
	return c.web.Dial(ctx, network, addr)
}

func (c *cable) process(t *testing.T, url string, log *strings.Builder) *Worker {
	t.Helper()
	crawl, err := Open(t.Context(), connect(t, url))
	require.NoError(t, err)
	w, err := crawl.NewWorker(WorkerOptions{
		Name: "p", Workers: 4, TTL: time.Minute, Every: 10 * time.Millisecond,
		Dir: filepath.Join(t.TempDir(), "p"), Dial: c.dial, Lookup: c.lookup,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	require.NoError(t, err)
	w.uplink.Probe = w.names.Ping // on loopback, too
	return w
}

// TestAMachineThatIsOfflineWaits starts a crawl without retries on a machine without a network. No
// page is given up.
func TestAMachineThatIsOfflineWaits(t *testing.T) {
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 1, Hosts: 5, Addrs: 3, Pages: 4})
	wire := &cable{web: web, tried: make(chan struct{})}
	wire.pulled.Store(true)
	url := startBroker(t)
	c, err := Create(t.Context(), connect(t, url), testOptions())
	require.NoError(t, err)
	seed(t, c, web)
	var log strings.Builder
	stop := run(t, wire.process(t, url, &log))
	<-wire.tried // for the host
	<-wire.tried // for the probe
	wire.pulled.Store(false)
	require.NoError(t, c.Wait(t.Context(), 50*time.Millisecond))
	stop()
	requireAllOnce(t, web)
	require.Contains(t, log.String(), "this machine is offline")
	require.Contains(t, log.String(), "the network is back")
}

// TestADeadNetworkIsNotTheHostsFailure attributes a failed request to this machine or to the host.
func TestADeadNetworkIsNotTheHostsFailure(t *testing.T) {
	web := serve(t, webtest.Options{Seed: 1, Hosts: 1, Pages: 1})
	wire := &cable{web: web, tried: make(chan struct{})}
	url := startBroker(t)
	o := testOptions()
	o.Loopback, o.Contact = false, "https://you.test/bot"
	_, err := Create(t.Context(), connect(t, url), o)
	require.NoError(t, err)
	var log strings.Builder
	f := &fetcher{Worker: wire.process(t, url, &log)}
	public := netip.MustParseAddr("93.0.0.1")
	get := func() (time.Time, error) {
		start := time.Now()
		_, err := f.client.Do(t.Context(), fetch.Request{URL: "http://a.test/", Addr: public})
		require.Error(t, err)
		return start, err
	}
	wire.pulled.Store(true)
	start, err := get()
	page := message.Item{Kind: message.Page, URL: "http://a.test/", Addr: public}
	v := f.failed(t.Context(), page, stage.State{}, start, err)
	require.Equal(t, stage.Interrupted, v.fate)
	require.False(t, v.outcome.Failed)
	trouble, _ := f.uplink.State()
	require.NotEmpty(t, trouble)

	f.uplink.Answered()
	wire.pulled.Store(false)
	f.opts.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}
	}
	require.NoError(t, f.newClient())
	start, err = get()
	require.NotEqual(t, stage.Interrupted, f.failed(t.Context(), page, stage.State{}, start, err).fate,
		"the name server answers, so the host is to blame")
	require.Equal(t, stage.UnclearFault, stage.Attribute(err, public))
}

// TestDeadNameServersDelayOnlyTheirHosts has a thousand names of one owner whose name servers do
// not answer. The names of others do not wait for them.
func TestDeadNameServersDelayOnlyTheirHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lookup := func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
			if host != "honest.org" {
				<-ctx.Done()
				return nil, 0, context.Cause(ctx)
			}
			time.Sleep(time.Second)
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, 0, nil
		}
		w := &Worker{Crawl: &Crawl{Options: Options{}.withDefaults()},
			opts:  WorkerOptions{Log: slog.New(slog.DiscardHandler)},
			names: resolve.New(resolve.Options{Lookup: lookup}), turns: stage.NewLookups(),
		}
		w.uplink = stage.NewUplink(func(context.Context) error { return nil }, w.tellTrouble)
		ctx, cancel := context.WithCancel(t.Context())
		var dead sync.WaitGroup
		for n := range 1000 {
			dead.Go(func() { w.locate(ctx, fmt.Sprintf("h%d.dead.org", n)) })
		}
		synctest.Wait()
		start := time.Now()
		require.True(t, w.locate(ctx, "honest.org").Addr.IsValid())
		require.Equal(t, time.Second, time.Since(start))
		cancel()
		dead.Wait()
	})
}
