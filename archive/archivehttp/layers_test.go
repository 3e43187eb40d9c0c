package archivehttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/internal/httpwire"
)

// socks starts a SOCKS5 proxy (RFC 1928) without authentication for addresses of IPv4.
func socks(t *testing.T) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	relay := func(conn net.Conn) {
		defer conn.Close()
		buf := make([]byte, 10)
		if _, err := io.ReadFull(conn, buf[:3]); err != nil {
			return
		}
		_, _ = conn.Write([]byte{5, 0})
		if _, err := io.ReadFull(conn, buf); err != nil {
			return
		}
		server, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: buf[4:8], Port: int(buf[8])<<8 | int(buf[9])})
		if err != nil {
			return
		}
		defer server.Close()
		_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		go func() { _, _ = io.Copy(server, conn) }()
		_, _ = io.Copy(conn, server)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go relay(conn)
		}
	}()
	return "socks5://" + l.Addr().String()
}

// The address of a proxy is not recorded as that of the server.
func TestSOCKS(t *testing.T) {
	proxy, err := url.Parse(socks(t))
	require.NoError(t, err)
	for _, start := range []func(*httptest.Server){(*httptest.Server).Start, (*httptest.Server).StartTLS} {
		s := serve(t, start)
		base := s.Client().Transport.(*http.Transport).Clone()
		base.Proxy = http.ProxyURL(proxy)
		c, a := client(t, base)
		for range 2 { // over a new connection, and a kept one
			require.Contains(t, get(t, c, s.URL+"/chunks"), "chunk 4")
		}
		_, responses := records(t, a, s.URL+"/chunks")
		for _, r := range responses {
			require.Empty(t, r.fields.Get("WARC-IP-Address"))
		}
		require.NotEmpty(t, responses)
	}
}

// What passes through a SOCKS proxy to a server with TLS has no head that could be recorded, and is not kept
// in search of one.
func TestMemoryOfSOCKS(t *testing.T) {
	proxy, err := url.Parse(socks(t))
	require.NoError(t, err)
	const n, size = 20, 900 << 10 // less than the longest head
	var together sync.WaitGroup
	together.Add(n)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		together.Done()
		together.Wait() // so that each request has a connection of its own
	}))
	defer s.Close()
	base := s.Client().Transport.(*http.Transport).Clone()
	base.Proxy, base.MaxIdleConnsPerHost = http.ProxyURL(proxy), n
	a := open(t)
	recording := archivehttp.NewTransport(base, a)
	recording.MaxRequest = -1
	c := &http.Client{Transport: recording}
	defer c.CloseIdleConnections()
	body := make([]byte, size)
	var wg sync.WaitGroup
	before := heap()
	for range n {
		wg.Go(func() {
			resp, err := c.Post(s.URL, "", bytes.NewReader(body))
			if assert.NoError(t, err) {
				assert.NoError(t, resp.Body.Close())
			}
		})
	}
	wg.Wait()
	require.Less(t, heap()-before, int64(n*size/2))
	runtime.KeepAlive(body)
}

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The address of a proxy at the port of the server is not that of the server, and with a layer in between,
// that is all that the connection shows.
func TestAProxyBelowALayer(t *testing.T) {
	s := serve(t, (*httptest.Server).Start)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skip("no other address of this machine: ", err)
	}
	proxy := &httptest.Server{Listener: l, Config: &http.Server{Handler: s.Config.Handler}}
	proxy.Start()
	defer proxy.Close()
	through, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	for base, want := range map[*http.Transport]string{
		{Proxy: http.ProxyURL(through)}: "", {}: "127.0.0.1",
	} {
		c, a := client(t, foreign{base})
		require.Contains(t, get(t, c, s.URL+"/chunks"), "chunk 4")
		_, response := only(t, a, s.URL+"/chunks")
		require.Equal(t, want, response.fields.Get("WARC-IP-Address"))
		base.CloseIdleConnections()
	}
}

// A capture has the time at which its request was sent, not that at which a layer below began to hold
// it back.
func TestTimeOfAHeldRequest(t *testing.T) {
	s := serve(t, (*httptest.Server).Start)
	var sent time.Time
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		time.Sleep(20 * time.Millisecond)
		sent = time.Now()
		return http.DefaultTransport.RoundTrip(req)
	})
	c, a := client(t, base)
	get(t, c, s.URL+"/post")
	v, err := a.At(s.URL+"/post", time.Time{})
	require.NoError(t, err)
	require.False(t, v.Time.Before(sent.Truncate(time.Microsecond)), "%v, sent %v", v.Time, sent)
}

// What is behind a member of gzip is read as net/http does, and only a body that was read to its end is
// whole: one that breaks off between two members looks complete to a decoder, but is not.
func TestBehindAMember(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, "the first half")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	member := b.String()
	for _, behind := range []string{"", "x", strings.Repeat("\x00", 20), strings.Repeat("x", 20_000), member, member + "x", member[:5]} {
		for form, head := range map[string]string{
			"length":  fmt.Sprintf("Content-Length: %d\r\n\r\n", len(member+behind)),
			"cut":     fmt.Sprintf("Content-Length: %d\r\n\r\n", len(member+behind)+5),
			"chunked": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(member+behind)),
			"closed":  "Connection: close\r\n\r\n",
		} {
			body, end := member+behind, ""
			if form == "chunked" {
				end = "\r\n0\r\n\r\n"
			}
			url := raw(t, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"+head+body+end)
			recording, a := client(t, nil)
			plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			said := see(t, plain, http.MethodGet, url+"/", nil, 1<<20)
			require.Equal(t, said, see(t, recording, http.MethodGet, url+"/", nil, 1<<20))
			_, response := only(t, a, url+"/")
			cut := response.fields.Get("WARC-Truncated")
			switch whole := strings.HasSuffix(response.block, body+end); {
			case form == "cut" && cut != "unspecified":
				require.Equal(t, "disconnect", cut, "%.5q", behind)
			case cut == "":
				require.True(t, whole, "%.5q, %s", behind, form)
			default: // it was not read to its end, since the decoder had failed before
				require.Contains(t, said.bodyErr, "gzip", "%.5q, %s", behind, form)
			}
		}
	}
}

// What an http.Transport was told before it was given to NewTransport is obeyed.
func TestSettingsOfTheBase(t *testing.T) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.RegisterProtocol("memory", roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("text")), Request: req}, nil
	}))
	c, _ := client(t, base)
	require.Equal(t, "text", get(t, c, "memory://a/b"))

	l, err := net.Listen("tcp", "127.0.0.1:0") // it never answers
	require.NoError(t, err)
	defer l.Close()
	base = &http.Transport{TLSHandshakeTimeout: time.Millisecond}
	c, _ = client(t, base)
	var said []string
	for _, c := range []*http.Client{{Transport: base}, c} {
		_, err := c.Get("https://" + l.Addr().String())
		require.Error(t, err)
		said = append(said, err.Error())
		require.True(t, err.(*url.Error).Timeout())
	}
	require.Equal(t, said[0], said[1])
}

// A request without a URL is an error, as it is for net/http.
func TestNoURL(t *testing.T) {
	c, _ := client(t, nil)
	for _, transport := range []http.RoundTripper{c.Transport, &archivehttp.Player{Archive: open(t)}} {
		_, err := transport.RoundTrip(&http.Request{Method: "GET", Header: http.Header{}})
		require.ErrorContains(t, err, "nil Request.URL")
	}
}

// After 101 a client can end its side of the connection, as it can without the recorder.
func TestCloseWriteAfter101(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		text, _ := io.ReadAll(rw)
		_, _ = conn.Write(text)
	}))
	defer s.Close()
	recorded, _ := client(t, nil)
	for _, c := range []*http.Client{s.Client(), recorded} {
		req, err := http.NewRequest("GET", s.URL, nil)
		require.NoError(t, err)
		req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}}
		resp, err := c.Do(req)
		require.NoError(t, err)
		stream := resp.Body.(interface {
			io.ReadWriteCloser
			CloseWrite() error
		})
		_, err = io.WriteString(stream, "hello")
		require.NoError(t, err)
		require.NoError(t, stream.CloseWrite())
		text, err := io.ReadAll(stream)
		require.NoError(t, err)
		require.Equal(t, "hello", string(text))
		require.NoError(t, stream.Close())
	}
}

// A capture is found under the URL that was requested, also if its path is in Opaque.
func TestOpaqueURL(t *testing.T) {
	s := serve(t, (*httptest.Server).Start)
	c, a := client(t, nil)
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	for _, opaque := range []string{"/po%73t", "//" + u.Host + "/po%73t"} {
		req := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: u.Host, Opaque: opaque}, Header: http.Header{}}
		resp, err := c.Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	requests, responses := records(t, a, s.URL+"/po%73t")
	require.Len(t, requests, 2)
	for i, r := range responses { // net/http writes the second one as it would for a proxy
		require.True(t, r.wire() && requests[i].wire())
		require.Equal(t, "127.0.0.1", r.fields.Get("WARC-IP-Address"))
	}
	require.Contains(t, requests[1].block, "GET "+s.URL+"/po%73t HTTP/1.1\r\n")
}

// A layer below that follows redirects, as those of clients do that are made a RoundTripper, sends another
// request than that of the client. What came is recorded as the answer to that, and the client sees where
// it came from, as without the recorder.
func TestRedirectsBelow(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the page of another host")
	}))
	defer other.Close()
	site := httptest.NewServer(http.RedirectHandler(other.URL+"/new", http.StatusFound))
	defer site.Close()
	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	tapping := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := plain.RoundTrip(r)
		if err == nil && resp.StatusCode == http.StatusOK {
			tap := r.Context().Value(httpctx.EncodedBody{}).(func(*http.Response) io.Writer)
			resp.Body = io.NopCloser(&tee{resp.Body, tap(resp)})
		}
		return resp, err
	})
	for name, base := range map[string]http.RoundTripper{"plain": plain, "tapping": tapping} {
		c, a := client(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			return (&http.Client{Transport: base}).Do(r)
		}))
		resp, err := c.Post(site.URL+"/old", "text/plain", strings.NewReader("text"))
		require.NoError(t, err, name)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, other.URL+"/new", resp.Request.URL.String())
		require.NotContains(t, resp.Request.Header, "Accept-Encoding", "of the recorder")
		request, response := only(t, a, other.URL+"/new")
		require.Regexp(t, `^GET /new HTTP/1\.1\r\nHost: `+strings.TrimPrefix(other.URL, "http://"), request.block)
		require.True(t, strings.HasSuffix(request.block, "\r\n\r\n"), "%q: the body of the first request is none of this one", request.block)
		require.Empty(t, request.fields.Get("WARC-Truncated"))
		require.Equal(t, "127.0.0.1", response.fields.Get("WARC-IP-Address"))
		_, err = a.At(site.URL+"/old", time.Time{})
		require.ErrorIs(t, err, archive.ErrNotFound)
	}
}

// A layer below that sends a copy of a request is none of the client's business, whatever it has changed:
// the response is that of the client's request, and is recorded under its URL, with its body.
func TestCopiesBelow(t *testing.T) {
	s := serve(t, (*httptest.Server).Start)
	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	for name, change := range map[string]func(*http.Request){
		"another context": func(*http.Request) {},
		"an address": func(r *http.Request) {
			r.Host, r.URL.Host = r.URL.Host, strings.TrimPrefix(s.URL, "http://")
		},
		"a signed URL": func(r *http.Request) { r.URL.RawQuery = "key=secret" },
		"another body": func(r *http.Request) {
			r.Header.Set("Content-Encoding", "x")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("encoded")), 7
		},
	} {
		base := s.URL
		if name == "an address" {
			base = "http://a.test"
		}
		c, a := client(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			below := r.Clone(r.Context())
			change(below)
			if below.Body != r.Body {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			return plain.RoundTrip(below)
		}))
		req, err := http.NewRequest(http.MethodPost, base+"/post", strings.NewReader("text"))
		require.NoError(t, err)
		resp, err := c.Do(req)
		require.NoError(t, err, name)
		require.Same(t, req, resp.Request, name)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		request, _ := only(t, a, base+"/post")
		require.Regexp(t, `^POST /post HTTP/1\.1\r\nHost: `+strings.TrimPrefix(base, "http://"), request.block, name)
		require.Contains(t, request.block, "\r\nContent-Length: 4\r\n", name)
		require.NotContains(t, request.block, "Content-Encoding", name)
		require.True(t, strings.HasSuffix(request.block, "\r\n\r\ntext"), name)
	}
}

// A layer between the recorder and a fetch.Client, whose heads are those on the wire, may send another body
// than the client's, or none: a form that answers with a redirect to itself is asked again with GET.
func TestAnotherBodyOnTheWire(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/form" && r.Method == http.MethodPost {
			http.Redirect(w, r, "/form", http.StatusSeeOther)
		}
	}))
	defer s.Close()
	following := func(below http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			return (&http.Client{Transport: below}).Do(r)
		})
	}
	encoding := func(below http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, r.Body)
			r = r.Clone(r.Context())
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("encoded")), 7
			return below.RoundTrip(r)
		})
	}
	for path, tt := range map[string]struct {
		layer       func(http.RoundTripper) http.RoundTripper
		method, cut string
	}{
		"/form": {following, http.MethodGet, ""},
		"/text": {encoding, http.MethodPost, "unspecified"},
	} {
		wire := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return httpwire.New(conn, 1<<20, 1000), nil // as a fetch.Client has it
		}}
		defer wire.CloseIdleConnections()
		c, a := client(t, tt.layer(wire))
		resp, err := c.Post(s.URL+path, "text/plain", strings.NewReader("text"))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, tt.method, resp.Request.Method)
		request, _ := only(t, a, s.URL+path)
		require.True(t, request.wire())
		require.True(t, strings.HasPrefix(request.block, tt.method+" "+path), request.block)
		require.True(t, strings.HasSuffix(request.block, "\r\n\r\n"), request.block)
		require.Equal(t, tt.cut, request.fields.Get("WARC-Truncated"))
		player := &http.Client{Transport: &archivehttp.Player{Archive: a}}
		_, err = player.Post(s.URL+path, "text/plain", strings.NewReader("something else"))
		require.ErrorIs(t, err, archivehttp.ErrNotRecorded)
	}
}

// A base that returns nothing breaks its contract, and the client gets an error.
func TestNeitherResponseNorError(t *testing.T) {
	c, _ := client(t, roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil }))
	_, err := c.Get("http://a.test/")
	require.ErrorContains(t, err, "neither a response nor an error")
}
