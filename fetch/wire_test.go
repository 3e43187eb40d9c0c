package fetch_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/httpwire"
	"github.com/stretchr/testify/require"
)

func TestHeadIsWhatTheServerSent(t *testing.T) {
	tests := []struct{ name, before, head, body string }{
		{"odd spelling and order", "",
			"HTTP/1.1 200\r\nz-z: 1\r\nA-a:2\r\nz-Z:   3  \r\nContent-Length: 2\r\n\r\n", "ok"},
		{"bare line feeds", "", "HTTP/1.1 200 OK\nContent-Length: 2\n\n", "ok"},
		{"a folded field", "", "HTTP/1.1 200 OK\r\nX: a\r\n  b\r\nContent-Length: 2\r\n\r\n", "ok"},
		{"a body that looks like a head", "", "HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n",
			"HTTP/1.1 200 OK\r\nX: y\r\n\r\nhi"},
		{"chunks", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\nok\r\n0\r\n\r\n"},
		{"early hints", "HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "ok"},
		{"several interim responses", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102\n\n",
			"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n", "no"},
		{"no fields", "", "HTTP/1.0 200 OK\r\n\r\n", "to the end"},
	}
	for _, tt := range tests {
		for _, piece := range []int{1, 7, 1 << 20} {
			t.Run(fmt.Sprintf("%s/piece=%d", tt.name, piece), func(t *testing.T) {
				answer := tt.before + tt.head + tt.body
				base := listen(t, func(s *session) {
					s.request()
					for rest := answer; rest != ""; {
						n := min(piece, len(rest))
						s.say(rest[:n])
						rest = rest[n:]
					}
				})
				r := get(t, newClient(t, fetch.Options{}), base)
				require.Equal(t, tt.head, string(r.Head))
				require.True(t, r.HeadExact)
				require.Equal(t, fetch.Whole, r.Truncated)
			})
		}
	}
}

func TestHeadOfEachExchangeOnOneConnection(t *testing.T) {
	base := listen(t, func(s *session) {
		for n := 1; s.request() != ""; n++ {
			body := strings.Repeat("x", n*1000)
			s.say(fmt.Sprintf("HTTP/1.1 %d N%d\r\nX-%d: y\r\nContent-Length: %d\r\n\r\n%s",
				210+n, n, n, len(body), body))
		}
	})
	c := newClient(t, fetch.Options{})
	for n := 1; n <= 5; n++ {
		r := get(t, c, fmt.Sprintf("%s/%d", base, n))
		require.Equal(t, fmt.Sprintf("HTTP/1.1 %d N%d\r\nX-%d: y\r\nContent-Length: %d\r\n\r\n",
			210+n, n, n, n*1000), string(r.Head))
		require.True(t, strings.HasPrefix(string(r.RequestHead), fmt.Sprintf("GET /%d HTTP/1.1\r\n", n)))
		require.Equal(t, 1, strings.Count(string(r.RequestHead), "GET "))
		require.True(t, r.HeadExact)
		require.Equal(t, n > 1, r.Reused)
		require.Len(t, r.Body, n*1000)
	}
}

// A response without a body frees its connection before its Get has collected the heads. The next
// Get may have finished by then; each must have its own heads.
func TestHeadsOfGetsThatShareAConnection(t *testing.T) {
	base := listen(t, func(s *session) {
		for n := 1; s.request() != ""; n++ {
			s.say(fmt.Sprintf("HTTP/1.1 304 Not Modified\r\nX-%d: y\r\n\r\n", n))
		}
	})
	arrived := make(chan bool)
	leave := map[string]chan bool{"/1": make(chan bool), "/2": make(chan bool)}
	c := newClient(t, fetch.Options{Wrap: func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			arrived <- true
			<-leave[req.URL.Opaque]
			return resp, err
		})
	}})
	got := make(chan *fetch.Response)
	for _, path := range []string{"/1", "/2"} {
		go func() {
			r, err := c.Get(t.Context(), base+path)
			if err != nil {
				t.Error(err)
			}
			got <- r
		}()
		<-arrived
	}
	for n, path := range []string{"/1", "/2"} {
		close(leave[path])
		r := <-got
		require.NotNil(t, r)
		require.Equal(t, n > 0, r.Reused)
		require.True(t, r.HeadExact, path)
		require.True(t, strings.HasPrefix(string(r.RequestHead), "GET "+path+" "), path)
		require.Contains(t, string(r.Head), fmt.Sprintf("\r\nX-%d: y\r\n", n+1))
	}
}

// A kept-alive connection that the server has closed is only detected when it is used.
func TestAttemptsCountsADeadConnection(t *testing.T) {
	base := listen(t, func(s *session) {
		s.request()
		s.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		s.request() // without an answer
	})
	c := newClient(t, fetch.Options{})
	require.Equal(t, 1, get(t, c, base).Attempts)
	r := get(t, c, base)
	require.Equal(t, 2, r.Attempts)
	require.False(t, r.Reused)
	require.Equal(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", string(r.Head))
}

func TestKeepAliveIsOptional(t *testing.T) {
	for _, opts := range []fetch.Options{{MaxIdle: -1}, {MaxIdlePerHost: -1}} {
		base := listen(t, func(s *session) {
			for s.request() != "" {
				s.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		c := newClient(t, opts)
		for range 3 {
			r := get(t, c, base)
			require.False(t, r.Reused, "%+v", opts)
			require.Contains(t, string(r.RequestHead), "Connection: close\r\n")
		}
	}
}

// tlsServer starts a server over TLS, with HTTP/2 or without, and returns options that trust it.
func tlsServer(t *testing.T, http2 bool) (base string, opts fetch.Options) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Path", r.URL.Path)
		for range 200 * strings.Count(r.URL.Path, "hints") {
			w.WriteHeader(http.StatusEarlyHints)
		}
		for n := range 200 * strings.Count(r.URL.Path, "many") {
			w.Header().Set(fmt.Sprintf("X-Field-%d", n), "some value")
		}
		fmt.Fprint(w, "over "+r.Proto)
	}))
	srv.EnableHTTP2 = http2
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return srv.URL, fetch.Options{TLSConfig: &tls.Config{RootCAs: roots}}
}

// An idle connection does not keep the heads of its last exchange, which can be of the size of
// MaxHeader.
func TestIdleConnectionsKeepNoHeads(t *testing.T) {
	base, _ := heads(t)
	c := newClient(t, fetch.Options{})
	for name, ask := range map[string]func(*http.Request){
		"a Get": func(req *http.Request) {
			r, err := c.Get(req.Context(), base)
			require.NoError(t, err)
			c.Release(r)
		},
		"the transport": func(req *http.Request) {
			_, _, err := viaTransport(t, c, req)
			require.NoError(t, err)
		},
	} {
		var kept weak.Pointer[httpwire.Heads]
		req := request(t, base)
		ask(req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) {
				kept = weak.Make(info.Conn.(*httpwire.Conn).Begin())
			},
		})))
		require.Eventually(t, func() bool { // goroutines of net/http may still end
			runtime.GC()
			return kept.Value() == nil
		}, time.Minute, time.Millisecond, name)
	}
	runtime.KeepAlive(c)
}

func TestHeadOverTLS(t *testing.T) {
	base, opts := tlsServer(t, false)
	c := newClient(t, opts)
	for n := range 3 {
		r := get(t, c, base+"/x")
		require.Equal(t, "over HTTP/1.1", string(r.Body))
		require.True(t, r.HeadExact)
		require.Contains(t, string(r.Head), "HTTP/1.1 200 OK\r\n")
		require.Equal(t, uint16(tls.VersionTLS13), r.TLS.Version)
		require.NotEmpty(t, r.TLS.PeerCertificates)
		require.Contains(t, string(r.RequestHead), "GET /x HTTP/1.1\r\n")
		require.Equal(t, strings.TrimPrefix(base, "https://"), r.Addr.String())
		require.Equal(t, n > 0, r.Reused)
	}
}

func TestHeadOverHTTP2IsSynthesized(t *testing.T) {
	base, opts := tlsServer(t, true)
	c := newClient(t, opts)
	for n := range 3 {
		r := get(t, c, base+"//x?y")
		require.Equal(t, "over HTTP/2.0", string(r.Body))
		require.False(t, r.HeadExact)
		require.Equal(t, "HTTP/2.0", r.Proto)
		require.Equal(t, "h2", r.TLS.NegotiatedProtocol)
		require.True(t, strings.HasPrefix(string(r.Head), "HTTP/2.0 200 OK\r\n"), "%q", r.Head)
		require.True(t, strings.HasSuffix(string(r.Head), "X-Path: //x\r\n\r\n"), "%q", r.Head)
		require.True(t, strings.HasPrefix(string(r.RequestHead), "GET //x?y HTTP/2.0\r\nHost: "),
			"%q", r.RequestHead)
		require.Equal(t, strings.TrimPrefix(base, "https://"), r.Addr.String())
		require.Equal(t, n > 0, r.Reused)
	}
}

func TestHeaderTooLargeOverHTTP2(t *testing.T) {
	base, opts := tlsServer(t, true)
	opts.MaxHeader = 4000
	c := newClient(t, opts)
	for _, path := range []string{"/many", "/hints"} {
		e := fails(t, c, base+path)
		require.Equal(t, fetch.HeaderTooLarge, e.Kind, "%v", e)
		require.False(t, e.Temporary())
		require.Equal(t, 200, get(t, c, base+"/x").Status)
	}

	opts.MaxHeader = 0
	c = newClient(t, opts)
	e := fails(t, c, base+"/many-many-many-many-many")
	require.Equal(t, fetch.HeaderTooLarge, e.Kind, "%v", e)
	require.Equal(t, 200, get(t, c, base+"/x").Status)
}

func TestTLSFailures(t *testing.T) {
	base, _ := tlsServer(t, false)
	e := fails(t, newClient(t, fetch.Options{}), base)
	require.Equal(t, fetch.TLS, e.Kind)
	require.False(t, e.Temporary(), "a bad certificate is a permanent failure")
	var bad *tls.CertificateVerificationError
	require.ErrorAs(t, e, &bad)

	plain := listen(t, func(s *session) {
		s.say("HTTP/1.1 400 Bad Request\r\n\r\n")
		s.request()
	})
	e = fails(t, newClient(t, fetch.Options{}), strings.Replace(plain, "http:", "https:", 1))
	require.Equal(t, fetch.TLS, e.Kind)
	require.False(t, e.Temporary(), "a server without TLS is a permanent failure")

	deaf := listen(t, func(*session) {})
	e = fails(t, newClient(t, fetch.Options{}), strings.Replace(deaf, "http:", "https:", 1))
	require.Equal(t, fetch.TLS, e.Kind)
	require.True(t, e.Temporary(), "a handshake that was cut off may succeed later")
}
