package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/stretchr/testify/require"
)

// Resolve and Dial may use HTTP themselves, with their context. Their requests are not the client's.
func TestHooksMaySendRequests(t *testing.T) {
	dns := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer dns.Close()
	ask := func(ctx context.Context) error {
		for _, key := range []any{httpctx.CrawlDelay{}, httpctx.EncodedBody{}} {
			if ctx.Value(key) != nil { // what a layer wants for the page is not for its name server
				return fmt.Errorf("%T is in the context", key)
			}
		}
		for range 5 { // more than a request has attempts
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, dns.URL, nil)
			if err != nil {
				return err
			}
			resp, err := dns.Client().Do(req)
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
		}
		return nil
	}
	base, asked := heads(t)
	host := strings.TrimPrefix(base, "http://")
	opts := fetch.Options{
		Resolve: func(ctx context.Context, _ string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, ask(ctx)
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if err := ask(ctx); err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, host)
		},
	}
	var got, wrote int
	ctx := context.WithValue(t.Context(), httpctx.CrawlDelay{}, time.Second)
	ctx = context.WithValue(ctx, httpctx.EncodedBody{}, func(*http.Response) io.Writer { return nil })
	for i, trace := range []*httptrace.ClientTrace{
		{}, {ConnectStart: func(string, string) {}}, {},
	} {
		if i == 2 {
			opts.Proxy = base
		}
		c := newClient(t, opts)
		got, wrote = 0, 0
		trace.GotConn = func(httptrace.GotConnInfo) { got++ }
		trace.WroteRequest = func(httptrace.WroteRequestInfo) { wrote++ }
		r, err := c.Get(httptrace.WithClientTrace(ctx, trace), "http://a.test/")
		require.NoError(t, err)
		require.Equal(t, 1, r.Attempts)
		require.Equal(t, opts.Proxy == "", r.Addr.String() == "127.0.0.1:80")
		require.Equal(t, []int{1, 1}, []int{got, wrote})
		c.CloseIdleConnections()
	}
	require.Len(t, *asked, 3)
}

// Where one of the families of addresses leads nowhere, the other one is tried, however many addresses
// the first has.
func TestBothFamiliesAreTried(t *testing.T) {
	const four, six = "127.0.0.1", "::1"
	for name, addrs := range map[string][]string{
		"many of IPv6": {"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4", "2001:db8::5", four},
		"many of IPv4": {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", six, "192.0.2.5"},
	} {
		base, _ := heads(t)
		c := newClient(t, fetch.Options{
			UserAgent: "testbot (bot@a.test)", Reach: fetch.Anywhere,
			Resolve: func(context.Context, string) (found []netip.Addr, _ error) {
				for _, a := range addrs {
					found = append(found, netip.MustParseAddr(a))
				}
				return found, nil
			},
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if host, _, _ := net.SplitHostPort(addr); host != four && host != six {
					return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ENETUNREACH}
				}
				return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(base, "http://"))
			},
		})
		require.Equal(t, http.StatusOK, get(t, c, "http://a.test/").Status, name)
	}
}

// Interim responses without end cost a bounded number of bytes and fields, whether there is a hook for
// them or not.
func TestInterimResponsesAreBounded(t *testing.T) {
	urls, opts := both(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.WriteHeader(http.StatusEarlyHints)
		}
	})
	c := newClient(t, opts)
	for _, base := range urls {
		e := fails(t, c, base)
		require.Equal(t, fetch.HeaderTooLarge, e.Kind, "%v", e)

		seen := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(int, textproto.MIMEHeader) error { seen++; return nil },
		})
		_, err := c.Get(ctx, base)
		require.ErrorIs(t, err, fetch.HeaderTooLarge)
		require.NotZero(t, seen)

		refused := errors.New("refused")
		ctx = httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(int, textproto.MIMEHeader) error { return refused },
		})
		_, err = c.Get(ctx, base)
		e = nil
		require.ErrorAs(t, err, &e)
		require.Equal(t, fetch.Canceled, e.Kind, "by the caller, not the server")
		require.ErrorIs(t, err, refused)
	}
}

// The time for a response's head starts anew with each attempt, and does not run while a layer above
// holds the request back.
func TestHeadTimeoutOfALaterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var connections atomic.Int32
		c, stop := inMemory(t, fetch.Options{HeadTimeout: time.Second}, func(s *session) {
			first := connections.Add(1) == 1
			for n := 0; s.request() != "" && !(first && n == 1); n++ {
				s.say(ok + "Content-Length: 2\r\n\r\nok")
			}
		})
		defer stop()
		get(t, c, "http://a.test/")
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { time.Sleep(5 * time.Second) },
		})
		r, err := c.Get(ctx, "http://a.test/")
		require.NoError(t, err)
		require.Equal(t, 2, r.Attempts)
	})
}

// A layer may send the request twice at the same time. The response comes whole, also if the other attempt
// is on a later connection.
func TestSentTwice(t *testing.T) {
	const size = 4 << 20
	var arrived atomic.Int32
	first, second := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == 2 {
			close(second)
			<-r.Context().Done()
			return
		}
		close(first)
		<-second
		_, _ = w.Write(make([]byte, size))
	}))
	s.StartTLS()
	defer s.Close()
	c := newClient(t, fetch.Options{
		TLSConfig: s.Client().Transport.(*http.Transport).TLSClientConfig,
		Wrap: func(next http.RoundTripper) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) {
				go func() {
					<-first
					_, _ = next.RoundTrip(r.Clone(r.Context()))
				}()
				return next.RoundTrip(r)
			})
		},
	})
	resp, err := c.Get(t.Context(), s.URL)
	require.NoError(t, err)
	require.Equal(t, fetch.Whole, resp.RawCut)
	require.Len(t, resp.Raw, size)
	require.Equal(t, 2, resp.Attempts)
}

// A layer may send the request twice at the same time, and another one hold both back.
func TestHeldBackTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{Wrap: func(next http.RoundTripper) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) {
				go func() { _, _ = next.RoundTrip(r) }()
				return next.RoundTrip(r)
			})
		}}, silent)
		defer stop()
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { time.Sleep(time.Second) },
		})
		start := time.Now()
		_, err := c.Get(ctx, "http://a.test/")
		require.ErrorIs(t, err, fetch.HeadTimeout)
		require.Equal(t, fetch.DefaultHeadTimeout+time.Second, time.Since(start))
	})
}

// A deadConn swallows what is written once its network has died, and nothing arrives any more.
type deadConn struct {
	net.Conn
	dead <-chan struct{}
}

func (c deadConn) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

// A connection of HTTP/2 whose network has died costs the requests of a few seconds, and not all until
// the kernel gives up.
func TestDeadConnectionIsReplaced(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	synctest.Test(t, func(t *testing.T) {
		dead, dials := make(chan struct{}), 0
		c, stop := inMemory2(t, fetch.Options{HeadTimeout: 3 * time.Second}, srv.TLS.Certificates[0],
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") },
			func(conn net.Conn) net.Conn {
				if dials++; dials > 1 {
					return conn
				}
				return deadConn{conn, dead}
			})
		defer stop()
		require.Equal(t, "HTTP/2.0", get(t, c, "https://example.com/").Proto)
		close(dead)
		failed := 0
		for range 20 {
			if _, err := c.Get(t.Context(), "https://example.com/"); err != nil {
				failed++
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, 2, dials)
		require.LessOrEqual(t, failed, 1)
	})
}

// Errors about a proxy or a URL do not show passwords, whatever is wrong with them.
func TestErrorsHideCredentials(t *testing.T) {
	for _, proxy := range []string{
		"http://user:secret%@proxy:8080", "http://user:secret@proxy:port", "ftp://user:secret@proxy", "socks5://user:secret@\x7f",
	} {
		_, err := fetch.New(fetch.Options{Reach: fetch.Loopback, Proxy: proxy})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
	}
	c := newClient(t, fetch.Options{})
	for _, url := range []string{
		"http:/\t/user:secret@127.0.0.1:9/", "http:\n//user:secret@127.0.0.1:9/", "http://user:secret@127.0.0.1:9/",
		"http://user:secret#1@127.0.0.1/", "http://user:se/cret?@127.0.0.1/", `http://user:se\cret@127.0.0.1/`,
		"http://user:1#secret@127.0.0.1/", "http://user:1?secret@127.0.0.1/", "http://user:secret@x#@127.0.0.1/",
	} {
		_, err := c.Get(t.Context(), url)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, err.Error(), "cret@")
	}
	for _, url := range []string{
		"ftp://a.test/x@y", "ftp://a.test:80/x@y", "ftp://a.test?x@y", "ftp://a.test#x@y", "ftp://[::1]?x@y", "ftp://[::1]:80/x@y", "ftp:x",
	} {
		_, err := c.Get(t.Context(), url)
		require.ErrorContains(t, err, url+":", "nothing to hide")
	}
}

// An error says what time ran out in: of a proxy that cannot be reached, and not of the server.
func TestTimeOfAProxy(t *testing.T) {
	for _, proxy := range []string{"socks5://192.0.2.1:1080", "http://192.0.2.1:8080"} {
		for _, connect := range []time.Duration{200 * time.Millisecond, time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, fetch.Options{
					Proxy: proxy, Timeout: time.Second, ConnectTimeout: connect,
					Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					},
				})
				e := fails(t, c, "http://127.0.0.1/")
				require.Equal(t, fetch.Proxy, e.Kind, "%s, %v: %v", proxy, connect, e)
			})
		}
		refused := errors.New("no key")
		c := newClient(t, fetch.Options{Proxy: proxy, Wrap: func(http.RoundTripper) http.RoundTripper {
			return tripper(func(*http.Request) (*http.Response, error) { return nil, refused })
		}})
		_, err := c.Get(t.Context(), "http://127.0.0.1/")
		require.ErrorIs(t, err, refused)
		require.NotErrorIs(t, err, fetch.Proxy, "a layer has refused, not the proxy")
	}
}

// What a caller does with his header fields after New changes nothing, and they replace neither the
// host nor the name of the crawler.
func TestHeaderOfOptionsIsCopied(t *testing.T) {
	base, asked := heads(t)
	header := http.Header{"Accept-Language": {"de"}}
	c := newClient(t, fetch.Options{Header: header})
	header["Accept-Language"][0] = "x\r\nUser-Agent: other"
	header.Set("Accept", "none")
	get(t, c, base)
	require.Contains(t, (*asked)[0], "\r\nAccept-Language: de\r\n")
	require.NotContains(t, (*asked)[0], "none")
	for _, name := range []string{"User-Agent", "Host", "user-agent"} {
		_, err := fetch.New(fetch.Options{Reach: fetch.Loopback, Header: http.Header{name: {"other"}}})
		require.ErrorContains(t, err, http.CanonicalHeaderKey(name))
	}
}
