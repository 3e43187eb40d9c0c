package archivehttp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
)

// get reads a response to its end.
func get(t testing.TB, c *http.Client, url string) string {
	resp, err := c.Get(url)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(body)
}

// The heads of HTTP/1 are the bytes of the wire: order, case and spaces are preserved.
func TestHeadsOfTheWire(t *testing.T) {
	const head = "HTTP/1.1  200 all  right\r\nx-lower: 1\r\nX-UPPER:2\r\nServer:   spaces  \r\n" +
		"x-lower: 3\r\nContent-Length: 4\r\n\r\n"
	for name, answer := range map[string]string{
		"alone":      head + "body",
		"interim":    "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + head + "body",
		"interims":   strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 3) + head + "body",
		"no length":  strings.Replace(head, "Content-Length: 4\r\n", "", 1) + "body",
		"line feeds": strings.ReplaceAll(head, "\r\n", "\n") + "body",
	} {
		t.Run(name, func(t *testing.T) {
			url := raw(t, answer)
			c, a := client(t, nil)
			require.Equal(t, "body", get(t, c, url+"/"))
			request, response := only(t, a, url+"/")
			want := answer[strings.LastIndex(answer, "HTTP/1.1"):]
			require.Equal(t, want, response.block)
			require.True(t, response.wire())
			require.True(t, strings.HasPrefix(request.block, "GET / HTTP/1.1\r\nHost: 127.0.0.1:"))
			require.Empty(t, response.fields.Get("WARC-Truncated"))
			require.Equal(t, "127.0.0.1", response.fields.Get("WARC-IP-Address"))
		})
	}
}

// The heads arrive byte by byte, on a connection that is reused.
func TestHeadsOfKeptConnections(t *testing.T) {
	server, conn := net.Pipe()
	go func() {
		buf := make([]byte, 4096)
		for i := 0; ; i++ {
			if _, err := server.Read(buf); err != nil {
				return
			}
			for _, b := range []byte("HTTP/1.1 200 OK\r\nX-N: " + string(rune('a'+i)) +
				"\r\nContent-Length: 2\r\n\r\nok") {
				_, _ = server.Write([]byte{b})
			}
		}
	}()
	base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return conn, nil
	}}
	c, a := client(t, base)
	for i := range 5 {
		url := "http://kept.test/" + string(rune('a'+i))
		require.Equal(t, "ok", get(t, c, url))
		request, response := only(t, a, url)
		require.Contains(t, request.block, "GET /"+string(rune('a'+i))+" HTTP/1.1\r\n")
		require.Contains(t, response.block, "X-N: "+string(rune('a'+i))+"\r\n")
		require.True(t, response.wire())
	}
}

func TestTLS(t *testing.T) {
	t.Run("HTTP/1.1", func(t *testing.T) {
		s := serve(t, (*httptest.Server).StartTLS)
		c, a := client(t, s.Client().Transport)
		get(t, c, s.URL+"/chunks")
		request, response := only(t, a, s.URL+"/chunks")
		require.True(t, request.wire())
		require.True(t, response.wire())
		require.Equal(t, []string{"http/1.1", "tls/1.3"}, response.fields.Values("WARC-Protocol"))
		require.Contains(t, response.block, "\r\nTransfer-Encoding: chunked\r\n\r\n28\r\nchunk 0\n")
	})
	t.Run("HTTP/2", func(t *testing.T) {
		s := serve(t, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() })
		c, a := client(t, s.Client().Transport)
		get(t, c, s.URL+"/chunks")
		request, response := only(t, a, s.URL+"/chunks")
		require.False(t, request.wire())
		require.True(t,
			strings.HasPrefix(request.block, "GET /chunks HTTP/1.1\r\nHost: 127.0.0.1:"))
		require.True(t, strings.HasPrefix(response.block, "HTTP/1.1 200 OK\r\n"))
		require.Equal(t, []string{"h2", "tls/1.3"}, response.fields.Values("WARC-Protocol"))
		require.Equal(t, "127.0.0.1", response.fields.Get("WARC-IP-Address"))
	})
}

func TestRedirectsAndRevisits(t *testing.T) {
	s := serve(t, (*httptest.Server).Start)
	c, a := client(t, nil)
	get(t, c, s.URL+"/redirect")
	get(t, c, s.URL+"/chunks")
	_, response := only(t, a, s.URL+"/redirect")
	require.Contains(t, response.block, "HTTP/1.1 302 Found\r\n")
	versions, err := a.Versions(s.URL + "/chunks")
	require.NoError(t, err)
	require.Len(t, versions, 2)
	require.Equal(t, archive.Changed, versions[0].Kind)
	require.Equal(t, archive.Unchanged, versions[1].Kind)

	get(t, c, s.URL+"/304")
	v, err := a.At(s.URL+"/304", time.Time{})
	require.NoError(t, err)
	require.Equal(t, 304, v.Status)

	resp, err := c.Head(s.URL + "/large")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	request, response := only(t, a, s.URL+"/large")
	require.Contains(t, request.block, "HEAD /large HTTP/1.1\r\n")
	require.True(t, strings.HasSuffix(response.block, "\r\n\r\n"))
	require.Empty(t, response.fields.Get("WARC-Truncated"))
}

func TestRequestBodies(t *testing.T) {
	for _, tt := range []struct {
		name  string
		body  io.Reader
		limit int64
		want  string // after the head
		cut   string
	}{
		{"with a length", strings.NewReader("a=b&c=d"), 0, "a=b&c=d", ""},
		{"chunked", unknown("a=b&c=d"), 0, "7\r\na=b&c=d\r\n0\r\n\r\n", ""},
		{"empty", strings.NewReader(""), 0, "", ""},
		{"too long", strings.NewReader("a=b&c=d"), 3, "a=b", "length"},
		{"chunked, too long", unknown("a=b&c=d"), 3, "3\r\na=b\r\n0\r\n\r\n", "length"},
		{"not recorded", strings.NewReader("a=b&c=d"), -1, "", "length"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, (*httptest.Server).Start)
			a := open(t)
			transport := archivehttp.NewTransport(nil, a)
			transport.MaxRequest = tt.limit
			c := &http.Client{Transport: transport}
			defer c.CloseIdleConnections()
			resp, err := c.Post(s.URL+"/post", "text/plain", tt.body)
			require.NoError(t, err)
			_, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			request, response := only(t, a, s.URL+"/post")
			_, body, _ := strings.Cut(request.block, "\r\n\r\n")
			require.Equal(t, tt.want, body)
			require.Equal(t, tt.cut, request.fields.Get("WARC-Truncated"))
			require.Empty(t, response.fields.Get("WARC-Truncated"))
			require.True(t, request.wire())
		})
	}
}

// A record says whether and why its body is truncated.
func TestTruncated(t *testing.T) {
	s := serve(t, (*httptest.Server).Start)
	for _, tt := range []struct {
		name, path string
		read       int64
		max        int64
		want       string
		length     int
	}{
		{"whole", "/chunks", 1 << 30, 0, "", 40},
		{"closed immediately", "/chunks", 0, 0, "unspecified", 0},
		{"closed early", "/large", 1000, 0, "unspecified", -1},
		{"read to the last byte", "/post", 7, 0, "", 7}, // GET 0 0
		{"the connection broke", "/broken", 1 << 30, 0, "disconnect", 4},
		{"limited", "/chunks", 1 << 30, 10, "length", 10},
		{"exactly the limit", "/chunks", 1 << 30, 40, "", 40},
		{"large and limited", "/large", 1 << 30, 2 << 20, "length", 2 << 20},
		{"large", "/large", 1 << 30, -1, "", 3 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := open(t)
			transport := archivehttp.NewTransport(nil, a)
			transport.MaxBody = tt.max
			spill := t.TempDir()
			t.Setenv("TMPDIR", spill)
			c := &http.Client{Transport: transport}
			defer c.CloseIdleConnections()
			resp, err := c.Get(s.URL + tt.path)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, tt.read))
			require.NoError(t, resp.Body.Close())
			_, response := only(t, a, s.URL+tt.path)
			require.Equal(t, tt.want, response.fields.Get("WARC-Truncated"))
			v, err := a.At(s.URL+tt.path, time.Time{})
			require.NoError(t, err)
			require.Equal(t, tt.want != "", v.Truncated)
			if tt.length >= 0 {
				body, err := a.Body(v)
				require.NoError(t, err)
				require.Len(t, body, tt.length)
			}
			left, err := os.ReadDir(spill)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// A timeout of an http.Client has one reason, in whichever way it reaches the transport: it closes the
// field Cancel and sets a deadline.
func TestTruncatedByTime(t *testing.T) {
	a := open(t)
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		//lint:ignore SA1019 an http.Client sets it
		body := io.NopCloser(canceledReader{r.Cancel})
		return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Body: body, Request: r}, nil
	})
	c := &http.Client{Transport: archivehttp.NewTransport(base, a), Timeout: time.Millisecond}
	resp, err := c.Get("http://a.test/")
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err)
	_, response := only(t, a, "http://a.test/")
	require.Equal(t, "time", response.fields.Get("WARC-Truncated"))
}

// canceledReader fails like a body of net/http whose request is canceled.
type canceledReader struct{ canceled <-chan struct{} }

func (r canceledReader) Read([]byte) (int, error) {
	<-r.canceled
	return 0, errors.New("net/http: request canceled")
}

// A capture that cannot be written is reported by Close, and by the next request.
func TestFailedWrite(t *testing.T) {
	s := serve(t, (*httptest.Server).Start)
	a, err := archive.Open(t.TempDir(), archive.Options{})
	require.NoError(t, err)
	c := &http.Client{Transport: archivehttp.NewTransport(nil, a)}
	defer c.CloseIdleConnections()
	get(t, c, s.URL+"/chunks")
	require.NoError(t, a.Close())
	for _, path := range []string{"/chunks", "/empty", "/redirect"} {
		resp, err := c.Get(s.URL + path)
		if path == "/redirect" { // http.Client ignores the error of Close, and continues
			require.ErrorIs(t, err, archive.ErrClosed)
			continue
		}
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, err, "the client gets its body")
		require.ErrorIs(t, resp.Body.Close(), archive.ErrClosed)
		_, err = c.Post(s.URL+path, "", strings.NewReader("x"))
		require.ErrorIs(t, err, archive.ErrClosed)
	}

	// So is a temporary file that cannot be created.
	b := open(t)
	transport := archivehttp.NewTransport(nil, b)
	t.Setenv("TMPDIR", t.TempDir()+"/missing")
	c = &http.Client{Transport: transport}
	defer c.CloseIdleConnections()
	resp, err := c.Get(s.URL + "/large")
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.Equal(t, int64(3<<20), n)
	require.ErrorIs(t, resp.Body.Close(), os.ErrNotExist)
}

// What a server sends may be impossible to record. It never affects the next request.
func TestUnrecordable(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/latin1", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/?q=caf\xe9|x")
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/?"+strings.Repeat("x", 70<<10))
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/head", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 20<<10))
		}
		fmt.Fprint(w, "after a long head")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
	for _, http2 := range []bool{false, true} {
		s := httptest.NewUnstartedServer(mux)
		s.EnableHTTP2 = http2
		s.StartTLS()
		base := s.Client().Transport.(*http.Transport)
		base.MaxResponseHeaderBytes = 4 << 20
		c, a := client(t, base)
		resp, err := c.Get(s.URL + "/latin1")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		_, response := only(t, a, s.URL+"/latin1")
		require.Contains(t, response.block, "302 Found")
		require.NotEmpty(t, resp.Request.URL.String())
		versions, err := a.Versions(s.URL + "/?q=caf%E9|x")
		require.NoError(t, err)
		require.Len(t, versions, 1)

		resp, err = c.Get(s.URL + "/long")
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.ErrorIs(t, resp.Body.Close(), archive.ErrInvalid)
		require.Equal(t, "ok", get(t, c, s.URL+"/next"))

		resp, err = c.Get(s.URL + "/head")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "after a long head", string(body))
		require.ErrorIs(t, resp.Body.Close(), archive.ErrInvalid)
		require.Equal(t, "ok", get(t, c, s.URL+"/next2"))
		s.Close()
	}
}

// layerError is an error of a layer below, with a word for what has ended a body.
type layerError struct {
	word    string
	timeout bool
}

func (e *layerError) Error() string { return "body cut: " + e.word }

func (e *layerError) String() string { return e.word }

func (e *layerError) Timeout() bool { return e.timeout }

func (e *layerError) Temporary() bool { return true }

func (e *layerError) Unwrap() error { return io.ErrUnexpectedEOF }

// A body that a limit or a decoder of a layer below has ended is not one whose connection broke.
func TestTruncatedByALayer(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&layerError{"ratio", false}, "unspecified"},
		{&layerError{"coding", false}, "unspecified"},
		{&layerError{"slow", true}, "time"},
		{&layerError{"length", false}, "length"},
		{&layerError{"disconnect", false}, "disconnect"},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, "disconnect"},
	} {
		c, a := client(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			body := io.NopCloser(iotest.ErrReader(tt.err))
			return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Body: body, Request: r}, nil
		}))
		resp, err := c.Get("http://a.test/")
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, tt.err)
		_, response := only(t, a, "http://a.test/")
		require.Equal(t, tt.want, response.fields.Get("WARC-Truncated"), "%v", tt.err)
	}
}

// A proxy and its password are not recorded, and each TLS handshake is reported once.
func TestProxy(t *testing.T) {
	plain := serve(t, (*httptest.Server).Start)
	secure := serve(t, (*httptest.Server).StartTLS)
	proxy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}).ServeHTTP(w, r)
			return
		}
		server, err := net.Dial("tcp", r.Host)
		if err != nil {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(conn, server); _ = conn.Close() }()
		_, _ = io.Copy(server, conn)
		_ = server.Close()
	})
	for _, start := range []func(http.Handler) *httptest.Server{httptest.NewServer, httptest.NewTLSServer} {
		proxy := start(proxy)
		defer proxy.Close()
		through, err := url.Parse(proxy.URL)
		require.NoError(t, err)
		through.User = url.UserPassword("me", "secret")
		for _, s := range []*httptest.Server{plain, secure} {
			base := s.Client().Transport.(*http.Transport).Clone()
			if proxy.TLS != nil {
				base.TLSClientConfig = proxy.Client().Transport.(*http.Transport).TLSClientConfig
			}
			base.Proxy = http.ProxyURL(through)
			c, a := client(t, base)
			want := strings.Count(through.Scheme+s.URL, "https")
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				TLSHandshakeDone: func(tls.ConnectionState, error) { want-- },
			})
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/chunks", nil)
			require.NoError(t, err)
			resp, err := c.Do(req)
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Contains(t, string(body), "chunk 4")
			require.Zero(t, want, "handshakes with %s through %s", s.URL, through.Redacted())
			request, response := only(t, a, s.URL+"/chunks")
			require.True(t, strings.HasPrefix(request.block, "GET /chunks HTTP/1.1\r\n"))
			require.NotContains(t, request.block, "Proxy-Authorization")
			require.False(t, request.wire())
			require.Empty(t, response.fields.Get("WARC-IP-Address"))
		}
	}
}

func TestConcurrent(t *testing.T) {
	s := serve(t, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() })
	c, a := client(t, s.Client().Transport)
	var group sync.WaitGroup
	errs := make(chan error, 100)
	for i := range 20 {
		group.Go(func() {
			path := []string{"/chunks", "/gzip", "/post", "/404", "/large"}[i%5]
			resp, err := c.Get(s.URL + path)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				err = errors.Join(err, resp.Body.Close())
			}
			errs <- err
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.EqualValues(t, 20, a.Stats().Captures)
}
