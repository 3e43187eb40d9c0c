package schedulerhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// TestConnectionsAreNotHeld: a request that waits for an address holds no connection that others, with
// leases, are waiting for.
func TestConnectionsAreNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 2, Addrs: 1}, scheduler.Options{
			HostDelay: 5 * time.Second, AddrDelay: 5 * time.Second, MaxPerHost: 2, MaxPerAddr: 1, LeaseTimeout: time.Hour,
		})
		b.base.MaxConnsPerHost = 1
		start := time.Now()
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				body := struct{ io.Reader }{strings.NewReader("text")} // which cannot be read twice
				resp, err := b.client.Post(root(i%2), "text/plain", body)
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
			})
		}
		all.Wait()
		require.Less(t, time.Since(start), 2*time.Minute)
		require.Empty(t, b.web.Early(5*time.Second))
		require.Len(t, b.web.Log(), 8)
	})
}

// localError is an error of a layer that refuses a request.
type localError struct{ error }

func (localError) Local() bool { return true }

// TestOwnFailures: what fails on our side lengthens no delay of the host.
func TestOwnFailures(t *testing.T) {
	diskFull := &os.PathError{Op: "write", Path: "a.warc", Err: syscall.ECONNRESET} // a number that networks use, too
	for name, fail := range map[string]func(*http.Request) error{
		"a layer that refuses":      func(*http.Request) error { return fmt.Errorf("robots: %w", localError{errors.New("no")}) },
		"a header field":            func(*http.Request) error { return errors.New(`net/http: invalid header field name "a b"`) },
		"a disk":                    func(*http.Request) error { return diskFull },
		"an unsupported URL scheme": func(*http.Request) error { return http.ErrSkipAltProtocol },
		"a guard, while it dials": func(r *http.Request) error {
			httptrace.ContextClientTrace(r.Context()).GetConn("a.test:80")
			return localError{errors.New("a private address")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
					return nil, fail(r)
				}), scheduler.Options{HostDelay: time.Second})
				start := time.Now()
				for range 5 {
					_, err := (&http.Client{Transport: transport}).Get("http://a.test/")
					require.Error(t, err)
				}
				require.LessOrEqual(t, time.Since(start), 4*time.Second)
				require.Zero(t, transport.Hosts().Explain("a.test").Failures)
			})
		})
	}
}

// TestClosedPorts: links to ports at which nobody listens do not slow down the pages of their host.
func TestClosedPorts(t *testing.T) {
	for port, failures := range map[string]int{":9000": 0, ":443": 0, "": 1, ":080": 1} {
		transport := schedulerhttp.NewTransport(&http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			},
		}, scheduler.Options{HostDelay: time.Millisecond})
		_, err := (&http.Client{Transport: transport}).Get("http://a.test" + port)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.EqualValues(t, failures, transport.Hosts().Explain("a.test").Failures, port)
	}
}

// TestOpenPorts: nor do links to ports with servers of other protocols. But one that has answered before is in
// trouble.
func TestOpenPorts(t *testing.T) {
	answers := true
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
		if r.URL.Port() != "22" && answers {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}
		return nil, errors.New(`malformed HTTP response "SSH-2.0-OpenSSH_9.9"`)
	}), scheduler.Options{HostDelay: time.Millisecond, Backoff: time.Millisecond})
	for _, tt := range []struct {
		url      string
		answers  bool
		failures int
	}{
		{"http://a.test:22", true, 0},
		{"http://a.test:8080", true, 0},
		{"http://a.test:08080", false, 1},
		{"https://a.test:8080", false, 1}, // another server, which says nothing
	} {
		answers = tt.answers
		_, err := (&http.Client{Transport: transport}).Get(tt.url)
		require.Equal(t, answers && !strings.HasSuffix(tt.url, ":22"), err == nil, "%v", err)
		require.Equal(t, tt.failures, transport.Hosts().Explain("a.test").Failures, tt.url)
	}
}

// TestGivenUpWhileItIsWritten: a request that is given up while it is written may have arrived,
// although nothing has reported yet that it was written.
func TestGivenUpWhileItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("a.test:80")
			trace.GotConn(httptrace.GotConnInfo{Conn: unknown{}})
			return nil, localError{context.DeadlineExceeded}
		}), scheduler.Options{HostDelay: time.Second})
		start := time.Now()
		for range 3 {
			_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a.test/", nil))
			require.Error(t, err)
		}
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

// TestResponseIsTheCallers: a response has the request that the caller made.
func TestResponseIsTheCallers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "text") }))
	defer s.Close()
	transport := schedulerhttp.NewTransport(nil, scheduler.Options{HostDelay: -1})
	r, err := http.NewRequest(http.MethodGet, s.URL, nil)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Same(t, r, resp.Request)
	require.NoError(t, resp.Request.Context().Err())
}

// TestCrawlDelays: neither another server of a host nor the operator's delay shortens what a site asks
// for, nor the other way round.
func TestCrawlDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
		}), scheduler.Options{HostDelay: time.Second})
		last := time.Now()
		get := func(url string, delay time.Duration) (waited time.Duration) {
			ctx := context.WithValue(t.Context(), httpctx.CrawlDelay{}, delay)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(r)
			require.NoError(t, err)
			waited, last = time.Since(last), time.Now()
			return waited
		}
		require.Zero(t, get("http://a.test/", 0))
		require.Equal(t, 20*time.Second, get("http://a.test/", 20*time.Second))
		require.Equal(t, 20*time.Second, get("https://a.test/", 0), "of http")
		require.Equal(t, 30*time.Second, get("https://A.test:8443/", 30*time.Second))
		require.Equal(t, 30*time.Second, get("http://A.test:080/", 2*time.Second))
		require.Equal(t, 2*time.Second, get("https://a.test:8443/", 2*time.Second))
		transport.SetHost("A.TEST.", scheduler.Host{Delay: time.Minute})
		require.Equal(t, time.Minute, get("https://a.test:8443/", 2*time.Second))
		require.Equal(t, time.Minute, get("https://a.test:8443/", 0))
		transport.SetHost("a.test", scheduler.Host{Delay: -1})
		require.Equal(t, 2*time.Second, get("https://a.test:8443/", 0), "of http")
		require.Equal(t, time.Second, get("http://a.test/", 0))
	})
}

// TestCancelField: the older way to cancel a request ends its wait.
func TestCancelField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{HostDelay: time.Hour})
		b.get(root(0))
		r, err := http.NewRequest(http.MethodGet, root(0), nil)
		require.NoError(t, err)
		stop := make(chan struct{})
		//lint:ignore SA1019 older clients set it
		r.Cancel = stop
		time.AfterFunc(time.Minute, func() { close(stop) })
		start := time.Now()
		_, err = b.transport.RoundTrip(r)
		require.ErrorContains(t, err, "request canceled")
		require.Equal(t, time.Minute, time.Since(start))
	})
}

// TestCauses: the error of a wait has the cause that the caller gave.
func TestCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{HostDelay: time.Hour})
		b.get(root(0))
		why := errors.New("the user has left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, root(0), nil)
		require.NoError(t, err)
		_, err = b.transport.RoundTrip(r)
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestOtherSchemes: what needs no host waits for none.
func TestOtherSchemes(t *testing.T) {
	base := &http.Transport{}
	base.RegisterProtocol("file", http.NewFileTransport(http.Dir(t.TempDir())))
	transport := schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: time.Hour})
	for range 3 {
		resp, err := (&http.Client{Transport: transport}).Get("file:///")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	_, err := transport.RoundTrip(&http.Request{Method: http.MethodGet})
	require.Error(t, err)
	require.Zero(t, transport.Hosts().Stats().Hosts)
}

// TestPanickingFailure: the lease ends, whatever the caller's function does.
func TestPanickingFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{})
		b.transport.Failure = func(*http.Response) bool { panic("no") }
		r, err := http.NewRequest(http.MethodGet, root(0), nil)
		require.NoError(t, err)
		require.Panics(t, func() { _, _ = b.transport.RoundTrip(r) })
		require.Zero(t, b.transport.Hosts().Stats().Out)
	})
}

// TestCloseDuringRead: a caller who stops reading does not blame the host.
func TestCloseDuringRead(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	transport := schedulerhttp.NewTransport(nil, scheduler.Options{HostDelay: -1, Backoff: time.Hour})
	resp, err := (&http.Client{Transport: transport}).Get(s.URL)
	require.NoError(t, err)
	read := make(chan error)
	go func() {
		_, err := resp.Body.Read(make([]byte, 1))
		read <- err
	}()
	time.Sleep(10 * time.Millisecond) // so that the Read has probably begun
	require.NoError(t, resp.Body.Close())
	require.Error(t, <-read)
	require.Zero(t, transport.Hosts().Explain("127.0.0.1").Failures)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// TestCopiesBelow has a layer below that sends a copy. The response is that of the caller's request, whose
// context lasts longer than the body.
func TestCopiesBelow(t *testing.T) {
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: &body{}, Request: r.Clone(r.Context())}, nil
	}), scheduler.Options{})
	r := httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Same(t, r, resp.Request)
}

// TestHedging has a layer below that sends a request twice at the same time. Only one is written.
func TestHedging(t *testing.T) {
	var mu sync.Mutex
	arrived := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		arrived++
		fmt.Fprint(w, "text")
	}))
	defer s.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		type result struct {
			resp *http.Response
			err  error
		}
		results := make(chan result, 2)
		for range 2 {
			go func() {
				resp, err := base.RoundTrip(r.Clone(r.Context()))
				results <- result{resp, err}
			}()
		}
		first := <-results
		if first.err != nil {
			first = <-results
		}
		return first.resp, first.err
	}), scheduler.Options{HostDelay: -1})
	for n := range 20 {
		resp, err := (&http.Client{Transport: transport}).Get(s.URL)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		mu.Lock()
		require.Equal(t, n+1, arrived)
		mu.Unlock()
	}
	require.Zero(t, transport.Hosts().Stats().Out)
}

// TestLostLease: a lease that has ended by its timeout while a layer below was connecting permits
// nothing, also if the address is unknown.
func TestLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{LeaseTimeout: time.Second, Backoff: -1})
		dial, slow := dialer(b.web), true
		b.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if slow {
				slow = false
				time.Sleep(2 * time.Second)
			}
			conn, err := dial(ctx, network, addr)
			return unknown{conn}, err
		}
		start := time.Now()
		b.get(root(0))
		require.GreaterOrEqual(t, time.Since(start), 5*time.Second, "another lease after the lost one")
	})
}

// unknown is a connection whose address is not known.
type unknown struct{ net.Conn }

func (unknown) RemoteAddr() net.Addr { return nil }

// TestAFailedHandshakeIsAVisit of its address, though there is no connection for the request. That of
// a proxy is not the server's.
func TestAFailedHandshakeIsAVisit(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	server, err := url.Parse(s.URL)
	require.NoError(t, err)
	for _, proxied := range []bool{false, true} {
		base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Host)
		}}
		if proxied {
			base.Proxy = http.ProxyURL(server)
		}
		transport := schedulerhttp.NewTransport(base, scheduler.Options{})
		for _, host := range []string{"a.test", "b.test"} {
			_, err := (&http.Client{Transport: transport}).Get("https://" + host)
			require.Error(t, err)
		}
		hosts := transport.Hosts()
		require.Equal(t, !proxied, hosts.Explain("b.test").Addr.IsValid())
		failures := map[string]int{}
		for entry := range hosts.All(time.Now()) {
			if entry.Addr.IsValid() {
				failures[entry.Addr.String()] = entry.Failures
			}
		}
		require.Equal(t, !proxied, failures["127.0.0.1"] == 1, "%v", failures)
		base.CloseIdleConnections()
	}
}
