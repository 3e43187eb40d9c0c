package fetch_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/stretchr/testify/require"
)

// both serves h over HTTP/1 and HTTP/2, and returns the URLs and options for both.
func both(t *testing.T, h http.HandlerFunc) (urls []string, opts fetch.Options) {
	plain, secure := httptest.NewServer(h), httptest.NewUnstartedServer(h)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	return []string{plain.URL, secure.URL},
		fetch.Options{TLSConfig: secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()}
}

// A body of a request that fails is no failure of the server, whatever its error is.
func TestBodiesThatCannotBeSent(t *testing.T) {
	urls, opts := both(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	opts.TLSConfig.NextProtos = nil
	c := newClient(t, opts)
	half := func(err error) io.Reader { return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)) }
	for _, url := range urls {
		for name, tt := range map[string]struct {
			body   io.Reader
			length int64
		}{
			"a disk":     {half(&os.PathError{Op: "read", Path: "upload", Err: errors.New("input/output error")}), -1},
			"the end":    {half(io.ErrUnexpectedEOF), -1},
			"a timeout":  {half(os.ErrDeadlineExceeded), -1},
			"at once":    {iotest.ErrReader(os.ErrDeadlineExceeded), -1},
			"too short":  {strings.NewReader("half"), 8},
			"no failure": {strings.NewReader("whole"), 5},
		} {
			req := request(t, url)
			req.Method, req.Body, req.ContentLength = http.MethodPost, io.NopCloser(tt.body), tt.length
			resp, err := c.Transport().RoundTrip(req)
			if err == nil { // over HTTP/2, the server may take a short body
				require.NoError(t, resp.Body.Close())
				require.Contains(t, []string{"no failure", "too short"}, name, url)
				continue
			}
			var e *fetch.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, fetch.BadURL, e.Kind, "%s: %s: %v", url, name, err)
			require.True(t, e.Local())
		}
	}
}

// What net/http would not send is refused before a server is asked.
func TestRequestsThatCannotBeSent(t *testing.T) {
	urls, opts := both(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	opts.TLSConfig.NextProtos = nil
	c := newClient(t, opts)
	refused := func(err error) {
		t.Helper()
		var e *fetch.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, fetch.BadURL, e.Kind, "%v", err)
		require.Zero(t, e.Attempts)
	}
	for _, url := range urls {
		for _, h := range []http.Header{
			{"Upgrade": {"websocket"}}, {"Connection": {"upgrade"}}, {"Connection": {"close", "x"}},
			{"Transfer-Encoding": {"gzip"}},
		} {
			_, err := c.Do(t.Context(), fetch.Request{URL: url, Header: h})
			refused(err)
			req := request(t, url)
			req.Header = h
			_, err = c.Transport().RoundTrip(req)
			refused(err)
		}
		req := request(t, url)
		req.ContentLength = 10
		_, err := c.Transport().RoundTrip(req)
		refused(err)
		req = request(t, url)
		req.URL.Opaque = "/a\nb"
		_, err = c.Transport().RoundTrip(req)
		refused(err)
		for _, name := range []string{"Content-Length", "trailer", "Transfer-Encoding"} {
			req := request(t, url)
			req.Method, req.Body, req.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader("x")), -1
			req.Trailer = http.Header{name: {"x"}}
			_, err = c.Transport().RoundTrip(req)
			refused(err)
		}
	}
	// Over HTTP/2, net/http itself refuses more.
	for _, change := range []func(r *http.Request){
		func(r *http.Request) { r.Host = "a b" }, func(r *http.Request) { r.URL.Opaque = "noslash" },
	} {
		req := request(t, urls[1])
		change(req)
		_, err := c.Transport().RoundTrip(req)
		require.ErrorIs(t, err, fetch.BadURL)
	}
}

// Hooks that return nothing fail a request, and not the server.
func TestHooksThatReturnNothing(t *testing.T) {
	for name, opts := range map[string]fetch.Options{
		"Wrap": {Wrap: func(http.RoundTripper) http.RoundTripper {
			return tripper(func(*http.Request) (*http.Response, error) { return nil, nil })
		}},
		"Dial": {Dial: func(context.Context, string, string) (net.Conn, error) { return nil, nil }},
		"Dial below a proxy": {Proxy: "http://192.0.2.1:8080",
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, nil }},
	} {
		e := fails(t, newClient(t, opts), "https://127.0.0.1/")
		require.ErrorContains(t, e, "neither", name)
		require.True(t, e.Local(), name)
	}
}

// A proxy that says nothing has not heard of the server yet. Once it has, silence is the server's.
func TestASilentProxy(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	certificate := &tls.Config{Certificates: srv.TLS.Certificates}
	srv.Close()
	const connected = "HTTP/1.1 200 OK\r\n\r\n"
	for _, limit := range []fetch.Options{{ConnectTimeout: time.Second}, {Timeout: time.Second}} {
		for name, tt := range map[string]struct {
			proxy string
			serve server
			want  fetch.Kind
		}{
			"SOCKS":                {"socks5", silent, fetch.Proxy},
			"SOCKS, later":         {"socks5", greeted("\x05\x00"), fetch.ConnectTimeout},
			"SOCKS, names":         {"socks5h", silent, fetch.Proxy},
			"SOCKS, names, later":  {"socks5h", greeted("\x05\x00"), fetch.ConnectTimeout},
			"HTTP":                 {"http", silent, fetch.ConnectTimeout},
			"HTTP, connected":      {"http", greeted(connected), fetch.TLSTimeout},
			"HTTPS":                {"https", silent, fetch.Proxy},
			"HTTPS, connected":     {"https", overTLS(certificate, greeted(connected)), fetch.TLSTimeout},
			"none, in a handshake": {"", silent, fetch.TLSTimeout},
		} {
			synctest.Test(t, func(t *testing.T) {
				opts := limit
				if tt.proxy != "" {
					opts.Proxy = tt.proxy + "://192.0.2.1:1080"
				}
				opts.TLSConfig = &tls.Config{InsecureSkipVerify: true}
				c, stop := inMemory(t, opts, tt.serve)
				defer stop()
				e := fails(t, c, "https://127.0.0.1/")
				require.Equal(t, tt.want, e.Kind, "%s, %+v: %v", name, limit, e)
				require.Equal(t, tt.want == fetch.Proxy, e.Local())
				require.True(t, e.Timeout(), "%s, %+v: %v", name, limit, e)
			})
		}
	}
}

// A reader that takes longer than Timeout for what the server sent at once is to blame itself.
func TestTimeoutOfASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{Timeout: time.Minute, MinRate: -1}, func(s *session) {
			s.request()
			s.say(ok + "Content-Length: 10000\r\n\r\n" + strings.Repeat("x", 5000))
			silent(s)
		})
		defer stop()
		for _, slow := range []bool{true, false} {
			resp, err := c.Transport().RoundTrip(request(t, "http://a.test/"))
			require.NoError(t, err)
			if slow {
				time.Sleep(time.Hour)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			require.ErrorIs(t, err, fetch.CutTime)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var e *fetch.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, slow, e.Local())
			require.True(t, e.Timeout())
			require.NoError(t, resp.Body.Close())
		}
	})
}
