package schedulerhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// A bench is an in-memory web, and a polite client for it.
type bench struct {
	t         *testing.T
	web       *webtest.Web
	base      *http.Transport
	transport *schedulerhttp.Transport
	client    *http.Client
}

func newBench(t *testing.T, w webtest.Options, o scheduler.Options) *bench {
	t.Helper()
	w.Network = memnet.New()
	web, err := webtest.Start(w)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, web.Close()) })
	b := &bench{t: t, web: web, base: &http.Transport{DialContext: dialer(web)}}
	t.Cleanup(b.base.CloseIdleConnections)
	b.transport = schedulerhttp.NewTransport(b.base, o)
	b.client = &http.Client{Transport: b.transport}
	return b
}

// addressed is a connection to an in-memory web, with the address that a socket would have.
type addressed struct {
	net.Conn
	remote netip.AddrPort
}

func (c addressed) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

func dialer(web *webtest.Web) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := web.Dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(addr)
		known, _ := web.Host(host)
		return addressed{conn, netip.AddrPortFrom(known.Addr, 80)}, nil
	}
}

// get reads a page and returns its status.
func (b *bench) get(url string) (status int) {
	b.t.Helper()
	resp, err := b.client.Get(url)
	require.NoError(b.t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(b.t, err)
	require.NoError(b.t, resp.Body.Close())
	return resp.StatusCode
}

// root returns the root of the n-th host.
func root(n int) string { return fmt.Sprintf("http://h%05d.vweb.test/", n) }

func TestRequestsToAHostAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{})
		start := time.Now()
		for _, url := range []string{root(0), "http://H00000.VWEB.test/", "http://h00000.vweb.test./nothing"} {
			b.get(url)
		}
		require.Equal(t, 10*time.Second, time.Since(start), "all spellings are one host")
		require.Empty(t, b.web.Early(5*time.Second))
	})
}

// TestHostsOfOneAddressAreSpaced has clients that request pages of many hosts concurrently, before
// their addresses are known. No two requests arrive too early, not even the first ones.
func TestHostsOfOneAddressAreSpaced(t *testing.T) {
	for _, keepAlive := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, webtest.Options{
				Hosts: 7, Addrs: 2, Pages: 3, Traits: func(host int) webtest.Traits {
					return webtest.Traits{Latency: webtest.Latency{Median: time.Second, Sigma: 1}}
				},
			}, scheduler.Options{HostDelay: 5 * time.Second, AddrDelay: 2 * time.Second, LatencyFactor: -1})
			b.base.DisableKeepAlives = !keepAlive
			var clients sync.WaitGroup
			for h := range b.web.Hosts() {
				for url := range h.Pages() {
					clients.Go(func() { b.get(url) })
				}
			}
			clients.Wait()
			log := b.web.Log()
			require.Len(t, log, 21)
			require.Empty(t, webtest.Violations(log,
				func(string) time.Duration { return 5 * time.Second },
				func(netip.Addr) time.Duration { return 2 * time.Second }))
			for h := range b.web.Hosts() {
				require.Equal(t, h.Addr, b.transport.Hosts().Explain(h.Name).Addr)
			}
		})
	}
}

// TestAPostIsNotSentTwice has requests with and without a body that can be read again, to a host
// that turns out to have a busy address.
func TestAPostIsNotSentTwice(t *testing.T) {
	for name, hide := range map[string]func(io.Reader) io.Reader{
		"a body that can be read again": func(r io.Reader) io.Reader { return r },
		"a body that cannot":            func(r io.Reader) io.Reader { return struct{ io.Reader }{r} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, webtest.Options{Hosts: 2, Addrs: 1}, scheduler.Options{})
				b.get(root(0))
				start := time.Now()
				resp, err := b.client.Post(root(1), "text/plain", hide(strings.NewReader("text")))
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
				require.Equal(t, 5*time.Second, time.Since(start))
				require.Len(t, b.web.Log(), 2)
				require.Empty(t, b.web.Early(5*time.Second))
			})
		})
	}
}

// TestAnAddressIsBusyTwice has a connection that goes to another address each time, as with names
// that have several addresses: no connection is kept until its address is free.
func TestAnAddressIsBusyTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 3}, scheduler.Options{})
		dial, dials := dialer(b.web), 0
		b.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if strings.HasPrefix(addr, "h00002") {
				known, _ := b.web.Host(fmt.Sprintf("h%05d.vweb.test", dials))
				conn, dials = addressed{conn.(addressed).Conn, netip.AddrPortFrom(known.Addr, 80)}, dials+1
			}
			return conn, err
		}
		start := time.Now()
		b.get(root(0))
		time.Sleep(time.Second)
		b.get(root(1))
		b.get(root(2))
		require.Equal(t, 3, dials)
		require.Equal(t, 5*time.Second, time.Since(start), "its turn at the first address, whichever the third one is")
	})
}

func TestTheVisitEndsWithTheBody(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(body io.ReadCloser)
		want time.Duration
	}{
		"when it is closed": {func(body io.ReadCloser) { body.Close() }, time.Minute},
		"when it is read": {func(body io.ReadCloser) {
			_, _ = io.Copy(io.Discard, body)
		}, time.Minute},
		"or by the lease timeout": {func(io.ReadCloser) {}, 10*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{})
				start := time.Now()
				resp, err := b.client.Get(root(0))
				require.NoError(t, err)
				time.AfterFunc(time.Minute, func() { tt.end(resp.Body) })
				b.get(root(0))
				resp.Body.Close()
				require.GreaterOrEqual(t, time.Since(start), tt.want)
				require.Less(t, time.Since(start), tt.want+4*time.Second, "a tenth of the back-off at most")
			})
		})
	}
}

func TestResponsesSetTheDelay(t *testing.T) {
	for name, tt := range map[string]struct {
		path string
		want time.Duration
	}{
		"Retry-After":               {"trap/429", time.Hour},
		"Retry-After with a date":   {"trap/503", time.Hour},
		"a body that ends too soon": {"trap/short", scheduler.DefaultBackoff},
		"no HTTP":                   {"trap/garbage", scheduler.DefaultBackoff},
		"nothing unusual":           {"", scheduler.DefaultHostDelay},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, webtest.Options{Hosts: 1, Traits: func(int) webtest.Traits {
					return webtest.Traits{Traps: webtest.TrapAll}
				}}, scheduler.Options{})
				start := time.Now()
				if resp, err := b.client.Get(root(0) + tt.path); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				b.get(root(0))
				took := time.Since(start).Round(time.Second)
				require.GreaterOrEqual(t, took, tt.want)
				require.LessOrEqual(t, took, tt.want+tt.want/10)
			})
		})
	}
}

func TestSlowServerGetsLongerDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1, Traits: func(int) webtest.Traits {
			return webtest.Traits{Latency: webtest.Latency{Median: 20 * time.Second}}
		}}, scheduler.Options{})
		start := time.Now()
		b.get(root(0))
		b.get(root(0))
		require.Equal(t, (20+100+20)*time.Second, time.Since(start))
	})
}

// TestTimeouts has clients with timeouts shorter than the delay of the host.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{HostDelay: time.Minute})
		b.get(root(0))
		start := time.Now()
		b.client.Timeout = 30 * time.Second
		_, err := b.client.Get(root(0))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "h00000.vweb.test may not be visited before ")
		require.True(t, os.IsTimeout(err), "like any timeout of net/http")
		require.Zero(t, time.Since(start), "the request fails without waiting")

		b.client.Timeout = 2 * time.Minute
		b.get(root(0))
		require.Equal(t, time.Minute, time.Since(start))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, root(0), nil)
		require.NoError(t, err)
		_, err = b.client.Do(r)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, time.Minute+time.Second, time.Since(start))
		require.Len(t, b.web.Log(), 2)
	})
}

// TestCanceledIsNotAFailure of the server: neither before the response nor during the body.
func TestCanceledIsNotAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1, Traits: func(int) webtest.Traits {
			return webtest.Traits{Traps: webtest.TrapAll}
		}}, scheduler.Options{})
		for _, path := range []string{"trap/hang", "trap/drip"} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, root(0)+path, nil)
			require.NoError(t, err)
			resp, err := b.client.Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			require.ErrorIs(t, err, context.Canceled)
			require.Zero(t, b.transport.Hosts().Explain("h00000.vweb.test").Failures)
		}
		require.Zero(t, b.transport.Hosts().Stats().Out)
	})
}

// TestCanceledWithACauseIsNotAFailure: net/http returns the cause in place of context.Canceled.
func TestCanceledWithACauseIsNotAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1, Traits: func(int) webtest.Traits {
			return webtest.Traits{Traps: webtest.TrapAll}
		}}, scheduler.Options{})
		cause := errors.New("the crawler is being stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, root(0)+"trap/hang", nil)
		require.NoError(t, err)
		_, err = b.client.Do(r)
		require.ErrorIs(t, err, cause)
		require.Zero(t, b.transport.Hosts().Explain("h00000.vweb.test").Failures)
	})
}

// withCrawlDelay is a layer above that knows the Crawl-delay of robots.txt.
func withCrawlDelay(r *http.Request, delay time.Duration) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), struct{ RobotsCrawlDelay struct{} }{}, delay))
}

func TestCrawlDelayComesFromTheLayerAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, root(0), nil)
		require.NoError(t, err)
		start := time.Now()
		var at []time.Duration
		for _, r := range []*http.Request{
			r,                              // immediately
			withCrawlDelay(r, time.Minute), // applies from this request on
			r,                              // no change
			withCrawlDelay(r, 0),           // cancels it
		} {
			resp, err := b.client.Do(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			at = append(at, time.Since(start))
		}
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute, 2*time.Minute + 5*time.Second}, at)
	})
}

// TestRedirectsWait: each redirect waits for its host.
func TestRedirectsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 2, Traits: func(int) webtest.Traits {
			return webtest.Traits{Traps: webtest.TrapAll}
		}}, scheduler.Options{})
		start := time.Now()
		require.Equal(t, http.StatusOK, b.get(root(0)+"trap/chain/3"))
		require.Equal(t, 15*time.Second, time.Since(start))
		require.Len(t, b.web.Log(), 4)
	})
}

// TestNothingIsLearnedFromAProxy: otherwise all hosts would share its address.
func TestNothingIsLearnedFromAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 3}, scheduler.Options{})
		b.base.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "127.16.0.1:80"})
		b.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := b.web.Dial(ctx, network, addr)
			return addressed{conn, netip.MustParseAddrPort(addr)}, err
		}
		start := time.Now()
		for n := range 3 {
			b.get(root(n))
		}
		require.Zero(t, time.Since(start))
		require.Len(t, b.web.Log(), 3)
		require.Zero(t, b.transport.Hosts().Stats().Addrs)
	})
}

// body records that it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// TestBodiesOfRequestsAreClosed: a RoundTripper must close the body, whatever happens to the
// request.
func TestBodiesOfRequestsAreClosed(t *testing.T) {
	transport := schedulerhttp.NewTransport(nil, scheduler.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sent := &body{Reader: strings.NewReader("text")}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://a.test/", sent)
	require.NoError(t, err)
	_, err = transport.RoundTrip(r)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, sent.closed)
}

// roundTrip is a RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestABrokenRoundTripperBlocksNoHost: it panics, or returns nothing. The caller may recover.
func TestABrokenRoundTripperBlocksNoHost(t *testing.T) {
	panics := true
	transport := schedulerhttp.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) {
		if panics {
			panic("broken")
		}
		return nil, nil
	}), scheduler.Options{HostDelay: -1})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/", nil)
	require.NoError(t, err)
	require.PanicsWithValue(t, "broken", func() { _, _ = transport.RoundTrip(r) })
	require.Zero(t, transport.Hosts().Stats().Out)
	panics = false
	_, err = transport.RoundTrip(r)
	require.ErrorContains(t, err, "neither a response nor an error")
	require.Zero(t, transport.Hosts().Stats().Out)
	require.Zero(t, transport.Hosts().Explain("a.test").Failures, "not the fault of the host")
}

// TestASwitchedProtocolCanBeWrittenTo, as net/http promises for status 101.
func TestASwitchedProtocolCanBeWrittenTo(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	transport := schedulerhttp.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: client}, nil
	}), scheduler.Options{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/", nil)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	go func() { _, _ = resp.Body.(io.Writer).Write([]byte("hello")) }()
	got := make([]byte, 5)
	_, err = io.ReadFull(server, got)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	require.NoError(t, resp.Body.Close())
	require.Zero(t, transport.Hosts().Stats().Out)
	transport.CloseIdleConnections() // the base has no such method
}

// TestResponsesWithoutABody end the visit immediately.
func TestResponsesWithoutABody(t *testing.T) {
	for _, none := range []io.ReadCloser{nil, http.NoBody} {
		transport := schedulerhttp.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNotModified, Body: none}, nil
		}), scheduler.Options{})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/", nil)
		require.NoError(t, err)
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, none, resp.Body)
		require.Zero(t, transport.Hosts().Stats().Out)
	}
}
