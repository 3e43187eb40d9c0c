package schedulerhttp_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// TestClosedConnectionsAreForgotten: a connection to a proxy has buffers, and the certificates of a
// server that may send long ones.
func TestClosedConnectionsAreForgotten(t *testing.T) {
	const conns = 20
	var freed atomic.Int32
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		conn := tls.Client(&closing{}, &tls.Config{ServerName: "a.test"})
		runtime.AddCleanup(conn, func(int) { freed.Add(1) }, 0)
		trace := httptrace.ContextClientTrace(r.Context())
		trace.GetConn("proxy.test:8080")
		trace.GotConn(httptrace.GotConnInfo{Conn: conn})
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}), scheduler.Options{HostDelay: -1})
	for range conns {
		_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "https://a.test/", nil))
		require.NoError(t, err)
	}
	for deadline := time.Now().Add(10 * time.Second); freed.Load() < conns-1 && time.Now().Before(deadline); {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	require.GreaterOrEqual(t, freed.Load(), int32(conns-1), "a register may hold the last one")
	runtime.KeepAlive(transport)
}

// TestAProxyIsRememberedWhileItIsConnected: HTTP/2 names the proxy only when it makes the connection.
func TestAProxyIsRememberedWhileItIsConnected(t *testing.T) {
	secure := tls.Client(remote{&closing{}}, &tls.Config{ServerName: "a.test"})
	named := "proxy.test:8080"
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		trace.GetConn(named)
		trace.GotConn(httptrace.GotConnInfo{Conn: secure})
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}), scheduler.Options{HostDelay: -1})
	for range 3 {
		_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "https://a.test/", nil))
		require.NoError(t, err)
		require.Zero(t, transport.Hosts().Stats().Addrs)
		named = "a.test:443"
		runtime.GC()
	}
}

// remote is a connection to an address.
type remote struct{ net.Conn }

func (remote) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

// TestCrawlDelaysOfPorts: each server of a host asks for itself, and the longest delay applies.
func TestCrawlDelaysOfPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		}), scheduler.Options{HostDelay: time.Second})
		last := time.Now().Add(-time.Hour)
		for _, tt := range []struct {
			port        string
			delay, want time.Duration
		}{
			{"80", 10 * time.Second, time.Hour}, // the first request
			{"443", 20 * time.Second, 20 * time.Second},
			{"443", 0, 10 * time.Second},
			{"443", 0, 10 * time.Second},
			{"8080", 15 * time.Second, 15 * time.Second},
			{"8080", 5 * time.Second, 10 * time.Second},
			{"080", 0, 5 * time.Second}, // the same port as 80
			{"8080", 0, time.Second},
		} {
			ctx := context.WithValue(t.Context(), schedulerhttp.CrawlDelay{}, tt.delay)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test:"+tt.port+"/", nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(r)
			require.NoError(t, err)
			require.Equal(t, tt.want, time.Since(last), "port %s asks for %v", tt.port, tt.delay)
			last = time.Now()
		}
	})
}

// TestCrawlDelaysOfNames: a server that has no robots.txt for another name, or without TLS, cancels nothing.
func TestCrawlDelaysOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		}), scheduler.Options{HostDelay: time.Second})
		get := func(url, name string, delay time.Duration) (waited time.Duration) {
			start := time.Now()
			ctx := context.WithValue(t.Context(), schedulerhttp.CrawlDelay{}, delay)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			require.NoError(t, err)
			if name != "" {
				r.Host = name
			}
			_, err = transport.RoundTrip(r)
			require.NoError(t, err)
			return time.Since(start)
		}
		require.Zero(t, get("https://a.test/", "", time.Minute))
		require.Equal(t, time.Minute, get("https://a.test./", "", 0))
		require.Equal(t, time.Minute, get("http://a.test:443/", "", 0))
		require.Equal(t, time.Minute, get("https://a.test/", "b.test", 0))
		require.Equal(t, time.Minute, get("https://a.test/", "a.test:8443", 0))
		require.Equal(t, 2*time.Minute, get("https://a.test/", "b.test", 2*time.Minute))
		require.Equal(t, time.Minute, get("https://a.test/", "B.test:443", 0))
		require.Equal(t, time.Second, get("https://A.test:0443/", "A.test", 0))
	})
}

// TestRestoredCrawlDelays: another server of the host, which asks for none, does not cancel a delay that was
// restored. After an hour any server does, as the one that asked may have dropped it.
func TestRestoredCrawlDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		})
		get := func(transport http.RoundTripper, url string, delay time.Duration) (waited time.Duration) {
			start := time.Now()
			ctx := context.WithValue(t.Context(), schedulerhttp.CrawlDelay{}, delay)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(r)
			require.NoError(t, err)
			return time.Since(start)
		}
		before := schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: time.Second})
		for _, dropped := range []bool{true, false} {
			get(before, "https://a.test/", 10*time.Minute)
			after := schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: time.Second})
			time.Sleep(2 * time.Hour) // a crawl may take the hosts of another one over at any time
			for e := range before.Hosts().All(time.Now()) {
				require.NoError(t, after.Hosts().Restore(e, time.Now()))
			}
			if dropped {
				require.Equal(t, 10*time.Minute, get(after, "http://a.test/", 0))
				require.Equal(t, 10*time.Minute, get(after, "http://a.test/", 0))
				time.Sleep(time.Hour)
				require.Zero(t, get(after, "https://a.test/", 0))
				require.Equal(t, time.Second, get(after, "https://a.test/", 0))
				continue
			}
			require.Equal(t, 5*time.Second, get(after, "http://a.test/", 5*time.Second))
			require.Equal(t, 10*time.Minute, get(after, "https://a.test/", 10*time.Minute), "from its own server")
			require.Equal(t, 10*time.Minute, get(after, "http://a.test/", 5*time.Second), "the longest")
		}
	})
}

// TestDelaysDoNotKeepURLs: the name of a host is a few bytes of its URL, which may be long.
func TestDelaysDoNotKeepURLs(t *testing.T) {
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	})
	transport := schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: time.Second})
	heap := func() (bytes uint64) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	const hosts, length = 100, 100 << 10
	for i := range hosts {
		ctx := context.WithValue(t.Context(), schedulerhttp.CrawlDelay{}, time.Second)
		url := fmt.Sprintf("http://host%d.test:%d/", i, 8000+i) + strings.Repeat("x", length)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		require.NoError(t, err)
		_, err = transport.RoundTrip(r)
		require.NoError(t, err)
	}
	require.Less(t, int64(heap()-before), int64(hosts*length/10))
	runtime.KeepAlive(transport)
}

// TestManyPorts: a host that asks for delays on very many ports gets the longest, in little memory.
func TestManyPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		}), scheduler.Options{HostDelay: time.Millisecond})
		start := time.Now()
		const ports = 100
		for port := range ports {
			delay := time.Second
			if port == 0 {
				delay = time.Minute
			}
			ctx := context.WithValue(t.Context(), schedulerhttp.CrawlDelay{}, delay)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprint("http://a.test:", 8000+port, "/"), nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(r)
			require.NoError(t, err)
		}
		require.Equal(t, (ports-1)*time.Minute, time.Since(start))
	})
}
