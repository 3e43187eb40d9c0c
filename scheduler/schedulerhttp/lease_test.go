package schedulerhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// TestNothingIsSentWithoutALease has requests that learn from their connection that the address is
// busy, and whose deadline is too near to wait for it. Only the first request may arrive.
func TestNothingIsSentWithoutALease(t *testing.T) {
	for _, proto := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", proto), func(t *testing.T) {
			var arrived atomic.Int32
			hold := make(chan struct{})
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				arrived.Add(1)
				if r.URL.Path == "/held" {
					_ = http.NewResponseController(w).Flush()
					<-hold
				}
				fmt.Fprint(w, r.ProtoMajor)
			}))
			s.EnableHTTP2 = proto == 2
			s.StartTLS()
			defer s.Close()
			base := s.Client().Transport.(*http.Transport)
			base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
			}
			transport := schedulerhttp.NewTransport(base, scheduler.Options{
				HostDelay: -1, AddrDelay: time.Hour, MaxPerAddr: 2, LatencyFactor: -1,
			})
			client := &http.Client{Transport: transport}
			post := func(url string, body io.Reader) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
				require.NoError(t, err)
				resp, err := client.Do(r)
				if err == nil {
					resp.Body.Close()
				}
				return err
			}
			// The host of the certificate, so that HTTP/2 has a connection to share.
			first, err := client.Get("https://example.com/held")
			require.NoError(t, err)
			require.Equal(t, proto, first.ProtoMajor)
			for name, body := range map[string]io.Reader{
				"without a body":         nil,
				"that cannot be retried": struct{ io.Reader }{strings.NewReader("text")},
				"that can be retried":    strings.NewReader("text"),
			} {
				for _, host := range []string{"www.example.com", "example.com"} {
					err := post("https://"+host+"/", body)
					var wait *schedulerhttp.WaitError
					require.ErrorAs(t, err, &wait, "%s %s", name, host)
					require.Equal(t, host, wait.Host)
					require.True(t, os.IsTimeout(err))
				}
			}
			require.EqualValues(t, 1, arrived.Load())
			require.EqualValues(t, 1, transport.Hosts().Stats().Out)
			close(hold)
			text, err := io.ReadAll(first.Body)
			require.NoError(t, err, "the connection of another request is left alone")
			require.Equal(t, fmt.Sprint(proto), string(text))
			require.NoError(t, first.Body.Close())
		})
	}
}

// TestRoundRobin has a name with two addresses, both of which are busy.
func TestRoundRobin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 3}, scheduler.Options{AddrDelay: time.Minute})
		dial, dials := dialer(b.web), 0
		b.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if strings.HasPrefix(addr, "h00002") {
				known, _ := b.web.Host(fmt.Sprintf("h%05d.vweb.test", dials%2))
				conn, dials = addressed{conn.(addressed).Conn, netip.AddrPortFrom(known.Addr, 80)}, dials+1
			}
			return conn, err
		}
		b.get(root(0))
		b.get(root(1))
		b.client.Timeout = 30 * time.Second
		_, err := b.client.Get(root(2))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, b.web.Log(), 2)
	})
}

// TestARepeatedRequestNeedsAnotherLease: net/http repeats a request on a new connection if the old one
// turns out to be dead. The server may have seen it.
func TestARepeatedRequestNeedsAnotherLease(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{})
			var dead atomic.Bool
			var mu sync.Mutex
			var wrote []time.Duration
			start := time.Now()
			dial := dialer(b.web)
			b.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				return &dying{Conn: conn, dead: &dead, wrote: func() {
					mu.Lock()
					defer mu.Unlock()
					wrote = append(wrote, time.Since(start))
				}}, err
			}
			b.get(root(0))
			dead.Store(true)
			r, err := http.NewRequest(method, root(0), nil)
			require.NoError(t, err)
			if method == http.MethodPut {
				r.Header["Idempotency-Key"] = nil // so that net/http repeats it
			}
			resp, err := b.client.Do(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, []time.Duration{0, 5 * time.Second, 10 * time.Second}, wrote)
		})
	}
}

// dying is a connection that breaks when it is written to for the second time.
type dying struct {
	net.Conn
	dead   *atomic.Bool
	wrote  func()
	closed atomic.Bool
}

func (d *dying) Close() error {
	d.closed.Store(true)
	return d.Conn.Close()
}

func (d *dying) Write(p []byte) (int, error) {
	if !d.closed.Load() {
		d.wrote()
	}
	if d.dead.Swap(false) {
		_ = d.Close()
		return len(p), nil // in a buffer of the system
	}
	return d.Conn.Write(p)
}

func TestMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 2, Addrs: 1}, scheduler.Options{HostDelay: 5 * time.Second, AddrDelay: 5 * time.Second})
		b.transport.MaxWait = 7 * time.Second
		b.get(root(0))
		start := time.Now()
		b.get(root(0))
		require.Equal(t, 5*time.Second, time.Since(start))

		b.transport.MaxWait = time.Second
		var wait *schedulerhttp.WaitError
		_, err := b.client.Get(root(0))
		require.ErrorAs(t, err, &wait)
		require.Equal(t, 5*time.Second, time.Since(start), "at once")
		require.Equal(t, 10*time.Second, wait.Until.Sub(start))
		_, err = b.client.Get(root(1))
		require.ErrorAs(t, err, &wait, "so is the wait for an address that is not known beforehand")
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, 10*time.Second, wait.Until.Sub(start))
		require.Len(t, b.web.Log(), 2)

		b.transport.MaxWait = 20 * time.Second
		held, err := b.client.Get(root(0)) // until its body is closed
		require.NoError(t, err)
		_, err = b.client.Get(root(0))
		require.ErrorAs(t, err, &wait)
		require.Equal(t, 30*time.Second, time.Since(start), "when the time is over")
		require.NoError(t, held.Body.Close())
	})
}

// TestNoWaitAtAll: the shortest MaxWait refuses what would have to wait, and nothing else.
func TestNoWaitAtAll(t *testing.T) {
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}), scheduler.Options{HostDelay: time.Hour})
	transport.MaxWait = 1
	for host := range 100 {
		url := fmt.Sprintf("http://a%d.test/", host)
		_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, url, nil))
		require.NoError(t, err)
		_, err = transport.RoundTrip(httptest.NewRequest(http.MethodGet, url, nil))
		var wait *schedulerhttp.WaitError
		require.ErrorAs(t, err, &wait)
	}
}

// TestTenants has transports with a base each, which keep the delays together.
func TestTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{})
		b.transport.MaxWait = time.Minute
		used := 0
		other := b.transport.With(roundTrip(func(r *http.Request) (*http.Response, error) {
			used++
			return b.base.RoundTrip(r)
		}))
		require.Equal(t, time.Minute, other.MaxWait)
		require.Same(t, b.transport.Hosts(), other.Hosts())
		start := time.Now()
		b.get(root(0))
		resp, err := (&http.Client{Transport: other}).Get(root(0))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, 1, used)
	})
}

// TestFailure has a caller for whom 403 is a sign to slow down.
func TestFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r}, nil
		}), scheduler.Options{})
		transport.Failure = func(resp *http.Response) bool { return resp.StatusCode == http.StatusForbidden }
		start := time.Now()
		for range 3 {
			resp, err := (&http.Client{Transport: transport}).Get("http://a.test/")
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
		require.GreaterOrEqual(t, time.Since(start), 90*time.Second, "the back-off of failures")
		require.Less(t, time.Since(start), 99*time.Second)
	})
}

// TestExplainCallers: whoever asks why a request waits is told.
func TestExplainCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{HostDelay: time.Hour})
		b.get(root(0))
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 {
			go func() {
				r, _ := http.NewRequestWithContext(ctx, http.MethodGet, root(0), nil)
				_, err := b.client.Do(r)
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		for _, name := range []string{"h00000.vweb.test", "h00000.vweb.test:80"} {
			reason := b.transport.Hosts().Explain(name)
			require.Equal(t, 2, reason.Callers)
			require.Equal(t, "the delay of a host", reason.Rule)
			require.Equal(t, time.Hour, reason.Until.Sub(start))
			require.Contains(t, reason.String(), "waits for the delay of a host until")
			require.Contains(t, reason.String(), ", 2 callers waiting")
		}
		require.Equal(t, "is not known", b.transport.Hosts().Explain("other:80").String())
	})
}

// TestWhatAFailureMayBe: also the answer of a proxy, if the caller says so.
func TestWhatAFailureMayBe(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusForbidden, http.StatusProxyAuthRequired} {
		transport := schedulerhttp.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		}), scheduler.Options{})
		transport.Failure = func(*http.Response) bool { return true }
		_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a.test/", nil))
		require.NoError(t, err)
		require.Equal(t, 1, transport.Hosts().Explain("a.test").Failures, "%d", status)
	}
}

// TestAURLWithoutAHost waits for nobody.
func TestAURLWithoutAHost(t *testing.T) {
	transport := schedulerhttp.NewTransport(nil, scheduler.Options{HostDelay: time.Hour})
	transport.MaxWait = time.Minute
	for range 2 {
		_, err := (&http.Client{Transport: transport}).Get("http:///a")
		require.ErrorContains(t, err, "no Host in request URL")
	}
}
