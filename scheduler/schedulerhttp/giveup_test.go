package schedulerhttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strconv"
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

// closing is a connection that says whether it was closed. Its address is not known.
type closing struct {
	unknown
	closed atomic.Bool
}

func (c *closing) Close() error {
	c.closed.Store(true)
	return nil
}

// wroteHead reports what HTTP/1 reports of a head.
func wroteHead(trace *httptrace.ClientTrace) {
	if trace.WroteHeaderField != nil {
		trace.WroteHeaderField("Host", nil)
	}
	if trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
}

// TestAKeptConnectionIsClosed has a layer below that sends a second request on the connection of the
// first one, as those do that answer a challenge. HTTP/1 writes it even if the context has ended,
// unless the connection is closed.
func TestAKeptConnectionIsClosed(t *testing.T) {
	kept := &closing{}
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		for range 2 {
			trace.GetConn("a.test:80")
			trace.GotConn(httptrace.GotConnInfo{Conn: kept, Reused: true})
			wroteHead(trace)
		}
		require.ErrorIs(t, r.Context().Err(), context.Canceled)
		return nil, context.Canceled
	}), scheduler.Options{HostDelay: time.Hour})
	transport.MaxWait = time.Minute
	_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a.test/", nil))
	require.ErrorAs(t, err, new(*schedulerhttp.WaitError), "of the next attempt")
	require.True(t, kept.closed.Load())
}

// TestAConnectionThatIsPassedOn has a request that is given up on a connection that another exchange
// seems to use. If that is HTTP/2, it must stay open. With HTTP/1, the other exchange is over, and only
// closing keeps the request from the server.
func TestAConnectionThatIsPassedOn(t *testing.T) {
	for _, proto := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			kept := &closing{}
			transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GetConn(r.URL.Host + ":80")
				if r.URL.Host == "b.test" {
					time.Sleep(2 * time.Second) // the lease is lost
				}
				trace.GotConn(httptrace.GotConnInfo{Conn: kept, Reused: true})
				if r.Context().Err() == nil {
					wroteHead(trace)
					return &http.Response{StatusCode: http.StatusOK, ProtoMajor: proto, Body: &body{}, Request: r}, nil
				}
				if proto == 1 {
					wroteHead(trace)
				}
				return nil, r.Context().Err()
			}), scheduler.Options{HostDelay: time.Hour, LeaseTimeout: time.Second})
			transport.MaxWait = time.Minute
			_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a.test/", nil))
			require.NoError(t, err)
			_, err = transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://b.test/", nil))
			require.Error(t, err)
			require.Equal(t, proto == 1, kept.closed.Load())
		})
	}
}

// TestSharedBase has a request that is given up on a connection which a client of another Transport uses.
func TestSharedBase(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		release := make(chan struct{})
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				_ = http.NewResponseController(w).Flush()
				<-release
				_, _ = io.WriteString(w, "text")
			}
		}))
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(http2)
		protocols.SetHTTP1(!http2)
		server.Config.Protocols = protocols
		server.Start()
		defer server.Close()
		base := &http.Transport{Protocols: protocols, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		}}
		defer base.CloseIdleConnections()
		other := &http.Client{Transport: schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: -1})}
		slow, err := other.Get("http://a.test/slow")
		require.NoError(t, err)
		transport := schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: -1, AddrDelay: time.Hour})
		transport.MaxWait = time.Minute
		client := &http.Client{Transport: transport}
		resp, err := client.Get("http://b.test/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		_, err = client.Get("http://a.test/") // at the same address
		require.ErrorAs(t, err, new(*schedulerhttp.WaitError))
		close(release)
		text, err := io.ReadAll(slow.Body)
		require.NoError(t, err)
		require.Equal(t, "text", string(text))
		require.NoError(t, slow.Body.Close())
	}
}

// TestALongHeadIsNotWritten has requests that are given up with heads that do not fit into the buffer of
// net/http. No piece of one may reach the server, also if connections may be of HTTP/2.
func TestALongHeadIsNotWritten(t *testing.T) {
	for _, proto := range []int{1, 2} {
		var arrived atomic.Int64
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var served sync.WaitGroup
		served.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				served.Go(func() {
					n, _ := io.Copy(io.Discard, conn)
					arrived.Add(n)
					_ = conn.Close()
				})
			}
		})
		base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
		}}
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != "a.test" {
				return base.RoundTrip(r)
			}
			conn, err := base.DialContext(r.Context(), "tcp", "")
			require.NoError(t, err)
			httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: conn})
			require.NoError(t, conn.Close())
			return &http.Response{StatusCode: http.StatusOK, ProtoMajor: proto, Body: http.NoBody, Request: r}, nil
		}), scheduler.Options{HostDelay: -1, AddrDelay: time.Hour})
		transport.MaxWait = time.Minute
		client := &http.Client{Transport: transport}
		_, err = client.Get("http://a.test/")
		require.NoError(t, err)
		for n := range 300 {
			r, err := http.NewRequest(http.MethodGet, "http://b"+strconv.Itoa(n)+".test/", nil)
			require.NoError(t, err)
			r.Header.Set("Cookie", strings.Repeat("c", 64_000))
			_, err = client.Do(r)
			require.ErrorAs(t, err, new(*schedulerhttp.WaitError))
		}
		base.CloseIdleConnections()
		require.NoError(t, l.Close())
		served.Wait()
		require.Zero(t, arrived.Load(), "bytes")
	}
}

// plainHTTP2 starts a server of HTTP/2 without TLS, and returns a base that reaches it by any name.
func plainHTTP2(t *testing.T, handler http.HandlerFunc) *http.Transport {
	server := httptest.NewUnstartedServer(handler)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server.Config.Protocols = protocols
	server.Start()
	t.Cleanup(server.Close)
	base := &http.Transport{Protocols: protocols, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	t.Cleanup(base.CloseIdleConnections)
	return base
}

// TestAMirrorOverPlainHTTP2 has a layer below that asks another server if the first one fails, over a
// connection of HTTP/2 without TLS on which another request has its response.
func TestAMirrorOverPlainHTTP2(t *testing.T) {
	release := make(chan struct{})
	base := plainHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			_ = http.NewResponseController(w).Flush()
			<-release
			_, _ = io.WriteString(w, "text")
		case "/fail":
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	all := schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: -1, AddrDelay: -1, Backoff: -1, MaxPerAddr: 10, MaxPerHost: 10})
	slow, err := (&http.Client{Transport: all}).Get("http://b.test/slow")
	require.NoError(t, err)
	mirrored := all.With(roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := base.RoundTrip(r)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
			return resp, err
		}
		_ = resp.Body.Close()
		r = r.Clone(r.Context())
		r.URL.Host = "b.test"
		return base.RoundTrip(r)
	}))
	mirrored.MaxWait = time.Minute
	_, err = (&http.Client{Transport: mirrored}).Get("http://a.test/fail")
	require.Error(t, err)
	close(release)
	text, err := io.ReadAll(slow.Body)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	require.NoError(t, slow.Body.Close())
}

// TestHedgingOverPlainHTTP2 fails as with TLS, and spares the requests of others on the connection.
func TestHedgingOverPlainHTTP2(t *testing.T) {
	release := make(chan struct{})
	base := plainHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			_ = http.NewResponseController(w).Flush()
			<-release
			_, _ = io.WriteString(w, "text")
		}
	})
	all := schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: -1, AddrDelay: -1, Backoff: -1, MaxPerAddr: 10, MaxPerHost: 10})
	slow, err := (&http.Client{Transport: all}).Get("http://a.test/slow")
	require.NoError(t, err)
	twice := all.With(roundTrip(func(r *http.Request) (*http.Response, error) {
		failed := make(chan error, 2)
		for range 2 {
			go func() {
				resp, err := base.RoundTrip(r.Clone(r.Context()))
				if err == nil {
					_ = resp.Body.Close()
				}
				failed <- err
			}()
		}
		return nil, errors.Join(<-failed, <-failed)
	}))
	for range 100 {
		_, err := (&http.Client{Transport: twice}).Get("http://a.test/")
		require.Error(t, err)
	}
	close(release)
	text, err := io.ReadAll(slow.Body)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	require.NoError(t, slow.Body.Close())
}

// file is a body that cannot be read once it is closed, as an os.File.
type file struct {
	io.Reader
	closed bool
}

func (f *file) Read(p []byte) (int, error) {
	if f.closed {
		return 0, os.ErrClosed
	}
	return f.Reader.Read(p)
}

func (f *file) Close() error {
	f.closed = true
	return nil
}

// TestAClosedBodyIsOpenedAgain has a layer below that closes the body of a request unread, because
// the connection broke, and wants to repeat the request.
func TestAClosedBodyIsOpenedAgain(t *testing.T) {
	var got []string
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		trace.GotConn(httptrace.GotConnInfo{Conn: &closing{}, Reused: true})
		if len(got) == 0 {
			got = append(got, "broken")
			require.NoError(t, r.Body.Close())
			trace.GotConn(httptrace.GotConnInfo{Conn: &closing{}})
			return nil, net.ErrClosed
		}
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		got = append(got, string(text))
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}), scheduler.Options{HostDelay: -1})
	r, err := http.NewRequest(http.MethodPut, "http://a.test/", &file{Reader: strings.NewReader("text")})
	require.NoError(t, err)
	r.GetBody = func() (io.ReadCloser, error) { return &file{Reader: strings.NewReader("text")}, nil }
	_, err = transport.RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, []string{"broken", "text"}, got)
}

// TestALateCloseDoesNoHarm: net/http may close the body of an attempt after it has returned.
func TestALateCloseDoesNoHarm(t *testing.T) {
	var late io.Closer
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		trace.GotConn(httptrace.GotConnInfo{Conn: &closing{}, Reused: true})
		if late == nil {
			late = r.Body
			trace.GotConn(httptrace.GotConnInfo{Conn: &closing{}})
			return nil, net.ErrClosed
		}
		require.NoError(t, late.Close())
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, "text", string(text))
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}), scheduler.Options{HostDelay: -1})
	r, err := http.NewRequest(http.MethodPut, "http://a.test/", &file{Reader: strings.NewReader("text")})
	require.NoError(t, err)
	_, err = transport.RoundTrip(r)
	require.NoError(t, err)
}

// TestALayerThatNeedsTwoAnswers cannot be below. The error says where it belongs.
func TestALayerThatNeedsTwoAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, webtest.Options{Hosts: 1}, scheduler.Options{})
		digest := func(base http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				for range 2 {
					resp, err := base.RoundTrip(r)
					if err != nil {
						return nil, err
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
			})
		}
		_, err := (&http.Client{Transport: b.transport.With(digest(b.base))}).Get(root(0))
		require.ErrorContains(t, err, "h00000.vweb.test was asked 6 times")
		require.ErrorContains(t, err, "belongs above")
		require.Len(t, b.web.Log(), 6)
		require.Empty(t, b.web.Early(5*time.Second))

		_, err = (&http.Client{Transport: digest(b.transport)}).Get(root(0))
		require.NoError(t, err)
		require.Len(t, b.web.Log(), 8)
		require.Empty(t, b.web.Early(5*time.Second))
	})
}

// TestWhatIsGivenUpIsNotReported has a transport that, as that of HTTP/1, reports that it has written
// an attempt which was given up. Layers above hear of what may have been written only.
func TestWhatIsGivenUpIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("a.test:80")
			if r.URL.Path == "/slow" {
				time.Sleep(2 * time.Second) // the lease is lost
			}
			trace.GotConn(httptrace.GotConnInfo{Conn: &closing{}})
			wroteHead(trace)
			trace.WroteRequest(httptrace.WroteRequestInfo{})
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		}), scheduler.Options{HostDelay: time.Hour, LeaseTimeout: time.Second})
		transport.MaxWait = time.Minute
		for path, want := range map[string]int{"/": 2, "/slow": 0} {
			reports := 0
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				WroteHeaders: func() { reports++ },
				WroteRequest: func(httptrace.WroteRequestInfo) { reports++ },
			})
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+path[1:]+"a.test"+path, nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(r)
			var late *schedulerhttp.WaitError
			require.Equal(t, want == 0, errors.As(err, &late), "%v", err)
			require.Equal(t, want, reports)
			if late != nil { // nor does a scheduler above blame the host
				o := schedulerhttp.Outcome(time.Now(), nil, err)
				require.True(t, o.Skipped)
				require.False(t, o.Failed)
			}
		}
	})
}

// TestHedgingOverHTTP2 cannot be below: both attempts have one context, and ending it is the only way
// to keep the second one from the server. Each further lease leads to the same.
func TestHedgingOverHTTP2(t *testing.T) {
	var arrived atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if arrived.Add(1); r.URL.Path != "/first" {
			<-r.Context().Done()
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	base := s.Client().Transport
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/first" {
			return base.RoundTrip(r)
		}
		failed := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := base.RoundTrip(r.Clone(r.Context()))
				failed <- err
			}()
		}
		return nil, errors.Join(<-failed, <-failed)
	}), scheduler.Options{HostDelay: -1, Backoff: -1})
	resp, err := (&http.Client{Transport: transport}).Get(s.URL + "/first")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	for n := range 10 {
		_, err := (&http.Client{Transport: transport}).Get(s.URL)
		require.ErrorContains(t, err, "belongs above")
		require.LessOrEqual(t, arrived.Load(), int32(6*n+7))
	}
	require.Zero(t, transport.Hosts().Stats().Out)
}

// TestConnectingTakesLongerThanLeases: a request does not connect for ever if each of its leases is
// lost before it has a connection.
func TestConnectingTakesLongerThanLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connected := 0
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			connected++
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("a.test:80")
			time.Sleep(11 * time.Second)
			trace.GotConn(httptrace.GotConnInfo{})
			require.ErrorIs(t, r.Context().Err(), context.Canceled, "nothing may be sent")
			return nil, context.Canceled
		}), scheduler.Options{LeaseTimeout: 10 * time.Second})
		_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a.test/", nil))
		require.ErrorContains(t, err, "connecting to a.test took longer than Options.LeaseTimeout")
		require.Equal(t, 6, connected)
	})
}
