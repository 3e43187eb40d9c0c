package spinneret_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/hostcache/resolve"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// TestTheDelayOfAnotherHost: a host whose address may not be visited in time, because another host
// there asks for patience, was not asked, so it is not out of reach. net/http reports that it has
// written the request which was given up, sooner or later: hence the repetitions.
func TestTheDelayOfAnotherHost(t *testing.T) {
	for range 20 {
		asked := make(chan string, 10)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Host
			if r.URL.Path != "/robots.txt" {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
		base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		}}
		polite := schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: time.Nanosecond})
		transport := robotshttp.NewTransport(polite, robots.Options{Agent: "foo"})
		client := &http.Client{Transport: transport}
		resp, err := client.Get("http://a.test/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		client.Timeout = 30 * time.Second
		_, err = client.Get("http://b.test/")
		require.ErrorAs(t, err, new(*scheduler.WaitError))
		require.NotErrorIs(t, err, robots.ErrUnreachable)
		_, known := transport.Cache().Entry("http://b.test/")
		require.False(t, known)
		base.CloseIdleConnections()
		server.Close()
		require.Len(t, asked, 2)
	}
}

// TestASilentHostHasBeenAsked: a crawler whose deadline for a page passes while the host keeps silent has
// made a request, whichever client reports that.
func TestASilentHostHasBeenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		dial := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
					asked.Add(1)
				}
				_, _ = io.Copy(io.Discard, theirs)
			}()
			return ours, nil
		}
		c, err := fetch.New(fetch.Options{Reach: fetch.Loopback, Dial: dial})
		require.NoError(t, err)
		do := func(rt http.RoundTripper) func(context.Context) error {
			return func(ctx context.Context) error {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/", nil)
				require.NoError(t, err)
				_, err = (&http.Client{Transport: rt}).Do(r)
				return err
			}
		}
		for name, get := range map[string]func(context.Context) error{
			"fetch.Client": func(ctx context.Context) error {
				_, err := c.Get(ctx, "http://127.0.0.1/")
				return err
			},
			"http.Client over it": do(c.Transport()),
			"net/http":            do(&http.Transport{DialContext: dial}),
		} {
			asked.Store(0)
			queue := scheduler.New[string](scheduler.Options{HostDelay: 5 * time.Second})
			for i := range 100 {
				queue.Add(scheduler.Task[string]{Host: "a.test", Item: fmt.Sprint(i)})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			for {
				lease, err := queue.Next(ctx)
				if err != nil {
					break
				}
				page, stop := context.WithTimeout(ctx, 200*time.Millisecond)
				start := time.Now()
				o := schedulerhttp.Outcome(start, nil, get(page))
				stop()
				require.True(t, o.Failed && !o.Skipped, "%s: %+v", name, o)
				lease.Done(o)
			}
			cancel()
			require.Equal(t, int32(1), asked.Load(), name)
		}
	})
}

// A site answers all requests at once, and notes them with their times.
type site struct {
	began time.Time
	log   []string
}

func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	s.log = append(s.log, fmt.Sprint(time.Since(s.began), " ", r.URL))
	text, resp := "", &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	switch r.URL.String() {
	case "http://a.test/busy":
		resp.StatusCode = http.StatusServiceUnavailable
		resp.Header.Set("Retry-After", "60")
	case "http://moved.test/robots.txt":
		resp.StatusCode = http.StatusFound
		resp.Header.Set("Location", "/other")
	case "http://slow.test/robots.txt":
		text = "user-agent: *\ncrawl-delay: 60\n"
		resp.Header.Set("Cache-Control", "max-age=300")
	}
	resp.Body = io.NopCloser(strings.NewReader(text))
	return resp, nil
}

// TestRobotsMayWait for as long as pages may: the time limit of the request for robots.txt is for the
// server, and not for what the scheduler below makes it wait.
func TestRobotsMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{began: time.Now()}
		polite := schedulerhttp.NewTransport(s, scheduler.Options{})
		client := &http.Client{Transport: robotshttp.NewTransport(polite, robots.Options{})}
		get := func(url string) {
			resp, err := client.Get(url)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
		for range 20 { // in which the file expires
			get("http://slow.test/")
		}
		require.Len(t, s.log, 23)
		require.Equal(t, 22*time.Minute, time.Since(s.began))

		s.began, s.log = time.Now(), nil
		for _, name := range []string{"a.test", "b.test"} {
			require.NoError(t, polite.SetHost(name, scheduler.Host{Addr: netip.MustParseAddr("192.0.2.1")}))
		}
		get("http://a.test/busy")
		get("http://b.test/")
		require.Equal(t, "0s http://a.test/robots.txt", s.log[0])
		require.Len(t, s.log, 4)
		require.Greater(t, time.Since(s.began), time.Minute)
	})
}

// TestHoldersShareARobots: two holders of leases need one robots.txt, which redirects. The one that
// fetches it waits for the address, which the other one must not hold while it waits for the file.
func TestHoldersShareARobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New[string](scheduler.Options{HostDelay: time.Second})
		cache := robots.NewCache(robots.Options{Client: &http.Client{
			Transport: schedulerhttp.Over(&site{began: time.Now()}, s),
		}})
		for _, host := range []string{"moved.test", "www.test"} {
			require.NoError(t, s.SetHost(host, scheduler.Host{Addr: netip.MustParseAddr("192.0.2.1")}))
			require.NoError(t, s.Add(scheduler.Task[string]{Host: host, Item: "http://moved.test/"}))
		}
		require.NoError(t, s.SetHost("moved.test", scheduler.Host{CrawlDelay: 10 * time.Second}))
		began := time.Now()
		var workers sync.WaitGroup
		for range 2 {
			workers.Go(func() {
				lease, err := s.Next(t.Context())
				if assert.NoError(t, err) {
					_, err = cache.Load(lease.Context(t.Context()), lease.Item())
					assert.NoError(t, err)
					lease.Requeue(scheduler.Outcome{}, time.Time{})
				}
			})
		}
		workers.Wait()
		require.Less(t, time.Since(began), time.Minute)
		require.Equal(t, 2, s.Stats().Queued)
	})
}

// TestASilentNameServer is no failure of the hosts whose addresses it keeps to itself.
func TestASilentNameServer(t *testing.T) {
	silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	names := resolve.New(resolve.Options{Servers: []netip.AddrPort{netip.MustParseAddrPort(silent.LocalAddr().String())}})
	base := &http.Transport{DialContext: names.DialContext}
	defer base.CloseIdleConnections()
	polite := schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: time.Nanosecond})
	client := &http.Client{Transport: polite, Timeout: 200 * time.Millisecond}
	_, err = client.Get("http://a.test/")
	require.Error(t, err)
	require.Zero(t, polite.Hosts().Explain("a.test").Failures, "%v", err)
}
