package fetch_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// tunnel serves a healthy proxy, which connects with whatever it is asked for.
func tunnel(s *session) {
	if line, _, _ := strings.Cut(s.request(), "\r\n"); strings.HasPrefix(line, "CONNECT ") {
		s.say("HTTP/1.1 200 OK\r\n\r\n")
		relay(s, strings.Fields(line)[1])
		return
	}
	s.say(ok + "Content-Length: 7\r\n\r\nproxied")
}

// overTLS serves over TLS with config.
func overTLS(config *tls.Config, serve server) server {
	return func(s *session) {
		conn := tls.Server(s.Conn, config)
		if conn.Handshake() == nil {
			serve(&session{Conn: conn, br: bufio.NewReader(conn)})
		}
	}
}

// greeted answers the first message of a client with text.
func greeted(text string) server {
	return func(s *session) {
		_, _ = s.br.Peek(1)
		s.say(text)
		_, _ = io.Copy(io.Discard, s.br)
	}
}

// proxies starts two healthy proxies, one with TLS, and returns them with options that trust the
// certificate of all servers here.
func proxies(t *testing.T) (urls []string, certificate *tls.Config, opts fetch.Options) {
	srv := httptest.NewTLSServer(nil)
	t.Cleanup(srv.Close)
	certificate = &tls.Config{Certificates: srv.TLS.Certificates}
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	secure := listen(t, overTLS(certificate, tunnel))
	return []string{listen(t, tunnel), strings.Replace(secure, "http:", "https:", 1)}, certificate,
		fetch.Options{TLSConfig: &tls.Config{RootCAs: roots}}
}

// What a server does behind a proxy is its own doing, and the proxy's is not: layers above would go
// on asking a server as if nobody had asked it.
func TestServersBehindAProxyAreToBlame(t *testing.T) {
	urls, certificate, opts := proxies(t)
	old := certificate.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for name, tt := range map[string]struct {
		serve server
		kind  fetch.Kind
	}{
		"an alert":                    {greeted("\x15\x03\x03\x00\x02\x02\x28"), fetch.TLS},
		"an old version":              {overTLS(old, silent), fetch.TLS},
		"a record without a meaning":  {greeted("\x16\x03\x03\x00\x04\x02\x00\x00\x00"), fetch.TLS},
		"no TLS":                      {greeted("HTTP/1.1 400 Bad Request\r\n\r\n"), fetch.TLS},
		"the end in the handshake":    {func(s *session) { _, _ = s.br.Peek(1) }, fetch.TLS},
		"the end without an answer":   {overTLS(certificate, func(s *session) { s.request() }), fetch.Disconnected},
		"a head without an end":       {overTLS(certificate, says(ok+"X: "+strings.Repeat("x", fetch.DefaultMaxHeader))), fetch.HeaderTooLarge},
		"a status of proxies":         {overTLS(certificate, says("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")), fetch.Whole},
		"a failure after a dead conn": {nil, fetch.TLS},
	} {
		serve := tt.serve
		if serve == nil { // the second request of a connection gets no answer, and the second handshake fails
			serve = oneAnswer(certificate, greeted("\x15\x03\x03\x00\x02\x02\x28"))
		}
		base := strings.Replace(listen(t, serve), "http:", "https:", 1)
		for _, proxy := range append(urls, "") {
			opts.Proxy = proxy
			c := newClient(t, opts)
			if tt.kind == fetch.Whole {
				require.Equal(t, 407, get(t, c, base).Status)
				continue
			}
			attempts := 0
			if tt.serve == nil {
				get(t, c, base)
				attempts = 1
			}
			e := fails(t, c, base)
			require.Equal(t, tt.kind, e.Kind, "%s through %q: %v", name, proxy, e)
			require.False(t, e.Local())
			if attempts > 0 {
				require.Equal(t, attempts, e.Attempts)
			}
		}
	}
}

// The reverse: a proxy that fails is not blamed on the server.
func TestBadProxies(t *testing.T) {
	urls, certificate, opts := proxies(t)
	base := listen(t, overTLS(certificate, says(ok+"\r\nsecure")))
	for _, proxy := range urls {
		opts := opts
		opts.Proxy = proxy
		c := newClient(t, opts)
		r := get(t, c, "http://127.0.0.1:2/")
		require.Equal(t, "proxied", string(r.Body), proxy)
		require.Nil(t, r.TLS, "that would be the proxy's")
		r = get(t, c, strings.Replace(base, "http:", "https:", 1))
		require.Equal(t, "secure", string(r.Body), proxy)
		require.NotNil(t, r.TLS)
	}
	for name, serve := range map[string]func() server{
		"another certificate": func() server { return overTLS(certificate, tunnel) },
		"plain text":          func() server { return greeted("HTTP/1.1 400 Bad Request\r\n\r\n") },
		"an alert":            func() server { return greeted("\x15\x03\x03\x00\x02\x02\x28") },
		"silence":             func() server { return silent },
		"the end":             func() server { return func(*session) {} },
		"silence later":       func() server { return oneAnswer(certificate, silent) },
	} {
		for _, url := range []string{"http://127.0.0.1:2/", "https://127.0.0.1:2/"} {
			for _, opts := range []fetch.Options{{ConnectTimeout: time.Second}, {Timeout: time.Second}} {
				synctest.Test(t, func(t *testing.T) {
					opts.Proxy = "https://192.0.2.1:3128"
					opts.TLSConfig = &tls.Config{InsecureSkipVerify: name == "silence later"}
					c, stop := inMemory(t, opts, serve())
					defer stop()
					if name == "silence later" {
						url = "http://127.0.0.1:2/"
						require.Equal(t, "ok", string(get(t, c, url).Body))
					}
					e := fails(t, c, url)
					var op *net.OpError
					require.Equal(t, fetch.Proxy, e.Kind, "%s, %s, %+v: %v", name, url, opts, e)
					require.ErrorAs(t, e, &op)
					require.Equal(t, "proxyconnect", op.Op)
				})
			}
		}
	}
}

// oneAnswer serves one request of the first connection over TLS, and the second connection with serve.
func oneAnswer(certificate *tls.Config, serve server) server {
	var connections atomic.Int32
	first := overTLS(certificate, func(s *session) {
		s.request()
		s.say(ok + "Content-Length: 2\r\n\r\nok")
		s.request()
	})
	return func(s *session) {
		if connections.Add(1)%2 == 1 {
			first(s)
			return
		}
		serve(s)
	}
}

// What a proxy is asked for is checked in each of its forms, and nothing that browsers do not take for
// a host gets to the proxy, whose resolver may take it for an address.
func TestReachOfAnHTTPProxy(t *testing.T) {
	var asked atomic.Int32
	proxy := listen(t, func(s *session) {
		s.request()
		asked.Add(1)
		s.say(ok + "\r\n")
	})
	c := newClient(t, fetch.Options{UserAgent: "testbot (bot@a.test)", Proxy: proxy})
	for _, host := range []string{
		"127.0.0.08", "10.0.0.256", "4294967297", "1.127.0.0.1", "127.0.0.1...", "0x7f.1..", "localhost..", "127.0.0.1",
		"a.localhost..", "a.test:25", "a.test:65561", "[::1]", "169.254.169.254:80",
	} {
		for _, req := range []*http.Request{
			{URL: &url.URL{Scheme: "http", Host: host, Path: "/"}},
			{URL: &url.URL{Scheme: "https", Host: host, Path: "/"}},
			{URL: &url.URL{Scheme: "http", Host: "a.test", Path: "/"}, Host: host},
			{URL: &url.URL{Scheme: "http", Host: "a.test", Opaque: "//" + host + "/"}},
			{URL: &url.URL{Scheme: "http", Host: "a.test", Opaque: "//" + host + "?a.test/"}},
			{URL: &url.URL{Scheme: "http", Host: "a.test", Opaque: "http://" + host + "/"}},
			{URL: &url.URL{Scheme: "http", Host: "a.test", Opaque: "//a.test@" + host + "/"}},
		} {
			_, err := c.Transport().RoundTrip(req.WithContext(t.Context()))
			var e *fetch.Error
			require.ErrorAs(t, err, &e, "%+v", req)
			require.True(t, e.Kind == fetch.Blocked || e.Kind == fetch.BadURL, "%+v: %v", req, err)
		}
		for _, scheme := range []string{"http://", "https://"} {
			e := fails(t, c, scheme+host+"/")
			require.True(t, e.Kind == fetch.Blocked || e.Kind == fetch.BadURL, "%v", e)
		}
	}
	require.Zero(t, asked.Load())
	for _, req := range []*http.Request{
		{URL: &url.URL{Scheme: "http", Host: "a.test.", Path: "/"}},
		{URL: &url.URL{Scheme: "http", Host: "a.test:8080", Path: "/"}, Host: "a.test:8080"},
		{URL: &url.URL{Scheme: "https", Host: "a.test", Path: "/"}, Host: "b.test"},
		{URL: &url.URL{Scheme: "http", Host: "1.1.1.1", Opaque: "/x"}},
	} {
		resp, err := c.Transport().RoundTrip(req.WithContext(t.Context()))
		if req.URL.Scheme == "https" { // the proxy is asked, and has no TLS behind it
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, "%+v", req)
		require.NoError(t, resp.Body.Close())
	}
	require.EqualValues(t, 4, asked.Load())
	for _, req := range []*http.Request{
		{URL: &url.URL{Scheme: "http", Host: "a.test", Path: "/"}, Host: "b.test"},
		{URL: &url.URL{Scheme: "http", Host: "a.test", Opaque: "//a.test/?x@y"}},
	} {
		_, err := c.Transport().RoundTrip(req.WithContext(t.Context()))
		require.ErrorIs(t, err, fetch.BadURL)
		require.ErrorContains(t, err, "by default")
	}
}

// A proxy that does not get through to a server costs ConnectTimeout, and then its connection is closed, also
// if it has begun to answer.
func TestAProxyThatDoesNotConnect(t *testing.T) {
	for _, proxy := range []string{"http://192.0.2.1:8080", "http://192.0.2.2:8080", "socks5h://192.0.2.1:1080"} {
		synctest.Test(t, func(t *testing.T) {
			closed := make(chan time.Time, 1)
			c := newClient(t, fetch.Options{
				Proxy: proxy, ConnectTimeout: time.Second,
				Dial: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go func() {
						if strings.Contains(proxy, "192.0.2.2") {
							_, _ = near.Read(make([]byte, 4096))
							_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\nVia: ")
						}
						_, _ = io.Copy(io.Discard, near)
						closed <- time.Now()
					}()
					return far, nil
				},
			})
			start := time.Now()
			e := fails(t, c, "https://127.0.0.1/")
			require.Equal(t, proxy[0] == 'h', e.Kind == fetch.ConnectTimeout, "%s: %v", proxy, e)
			require.Equal(t, time.Second, time.Since(start), proxy)
			require.Equal(t, time.Second, (<-closed).Sub(start), proxy)
		})
	}
}
