package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/internal/httpwire"
	"github.com/stretchr/testify/require"
)

// viaTransport sends a request with an http.Client over the transport of c, and reads all of the
// body.
func viaTransport(t *testing.T, c *fetch.Client, req *http.Request) (*http.Response, string, error) {
	t.Helper()
	client := &http.Client{Transport: c.Transport()}
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, resp.Body.Close())
	return resp, string(body), err
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	return req
}

// The guards that count bytes and time also apply to a body that is streamed, decoded or not.
func TestTransportGuardsStreamedBodies(t *testing.T) {
	lines := strings.Repeat("to be or not to be, ", 50_000) // a million bytes
	z := zipped(t, lines)
	coded := func(body string) string {
		return fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", ok, len(body), body)
	}
	tests := []struct {
		name  string
		opts  fetch.Options
		serve server
		read  int // bytes
		want  error
		after time.Duration
	}{
		{"a whole body", fetch.Options{}, says(ok + "\r\nhello"), 5, nil, 0},
		{"no body", fetch.Options{}, says("HTTP/1.1 204 No\r\n\r\n"), 0, nil, 0},
		{"just MaxBody", fetch.Options{MaxBody: 5}, says(ok + "\r\nhello"), 5, nil, 0},
		{"more than MaxBody", fetch.Options{MaxBody: 4}, says(ok + "\r\nhello"), 4, fetch.CutLength, 0},
		{"gzip", fetch.Options{MaxRatio: -1}, says(coded(z)), len(lines), nil, 0},
		{"more than MaxBody in gzip", fetch.Options{MaxRatio: -1, MaxBody: 100_000}, says(coded(z)),
			100_000, fetch.CutLength, 0},
		{"an empty body in gzip", fetch.Options{}, says(coded("")), 0, nil, 0},
		{"broken gzip", fetch.Options{}, says(coded(z[:100] + "xxxxxxxxxxxxxxxxxxx")), -1, fetch.CutCoding, 0},
		{"not gzip at all", fetch.Options{}, says(coded("hello")), 0, fetch.CutCoding, 0},
		{"truncated gzip", fetch.Options{MaxRatio: -1},
			says(ok + "Content-Encoding: gzip\r\nContent-Length: 99999\r\n\r\n" + z[:1000]), -1,
			io.ErrUnexpectedEOF, 0},
		{"a truncated body", fetch.Options{}, says(ok + "Content-Length: 10\r\n\r\nshort"), 5,
			io.ErrUnexpectedEOF, 0},
		{"a body that stops", fetch.Options{}, func(s *session) {
			s.request()
			s.say(ok + "\r\n" + strings.Repeat("x", 2048))
			silent(s)
		}, 2048, fetch.CutSlow, 12 * time.Second},
		{"a body byte by byte", fetch.Options{MinRate: -1, Timeout: 30500 * time.Millisecond},
			drip(ok + "\r\n"), 30, fetch.CutTime, 30500 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, stop := inMemory(t, tt.opts, tt.serve)
				defer stop()
				start := time.Now()
				resp, body, err := viaTransport(t, c, request(t, "http://a.test/"))
				require.ErrorIs(t, err, tt.want)
				if tt.read >= 0 {
					require.Len(t, body, tt.read)
				}
				require.Equal(t, tt.after, time.Since(start))
				if strings.Contains(tt.name, "gzip") && tt.name != "an empty body in gzip" {
					require.True(t, resp.Uncompressed)
					require.Empty(t, resp.Header.Get("Content-Encoding"))
				}
			})
		})
	}
}

// A bomb is detected while it is decoded: its output is bounded by the ratio to its input.
func TestTransportDefusesBombs(t *testing.T) {
	bomb := zipped(t, strings.Repeat("\x00", 8<<20))
	base := listen(t, says(ok+"Content-Encoding: gzip\r\n\r\n"+bomb))
	_, body, err := viaTransport(t, newClient(t, fetch.Options{}), request(t, base))
	require.ErrorIs(t, err, fetch.CutRatio)
	require.Less(t, len(body), 64<<10+100*len(bomb)+64<<10)
}

// A slow reader is not the server's fault.
func TestTransportAllowsASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{Timeout: -1}, says(ok+"\r\n"+strings.Repeat("x", 1<<20)))
		defer stop()
		resp, err := c.Transport().RoundTrip(request(t, "http://a.test/"))
		require.NoError(t, err)
		defer resp.Body.Close()
		n, buf := 0, make([]byte, 32<<10)
		for err == nil {
			time.Sleep(time.Hour)
			var m int
			m, err = resp.Body.Read(buf)
			n += m
		}
		require.Equal(t, io.EOF, err)
		require.Equal(t, 1<<20, n)
	})
}

// The guards that precede a body also apply, and their errors have the right kind.
func TestTransportGuardsBeforeTheBody(t *testing.T) {
	public := newClient(t, fetch.Options{UserAgent: "testbot (bot@a.test)", Resolve: resolveTo("10.0.0.1")})
	local := newClient(t, fetch.Options{MaxHeader: 5000})
	tests := []struct {
		name, url string
		c         *fetch.Client
		want      fetch.Kind
	}{
		{"a private address", "http://a.test/", public, fetch.Blocked},
		{"a loopback address", "http://127.0.0.1/", public, fetch.Blocked},
		{"another form of it", "http://0x7f.1/", public, fetch.Blocked},
		{"a mail port", "http://a.test:25/", public, fetch.Blocked},
		{"another scheme", "ftp://a.test/", public, fetch.BadURL},
		{"no listener", "http://127.0.0.1:65535/", local, fetch.Connect},
		{"a large head", listen(t, says(ok+"X: "+strings.Repeat("x", 10_000)+"\r\n\r\n")), local, fetch.HeaderTooLarge},
		{"not HTTP", listen(t, says("SSH-2.0\r\n")), local, fetch.Protocol},
		{"a switch of protocols", listen(t, says("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")), local,
			fetch.Protocol},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := viaTransport(t, tt.c, request(t, tt.url))
			require.ErrorIs(t, err, tt.want)
			var failure *fetch.Error
			require.ErrorAs(t, err, &failure)
			require.Empty(t, failure.URL, "the http.Client says it")
		})
	}
	// The guards check each redirect that the http.Client follows.
	base := listen(t, says("HTTP/1.1 302 Go\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n"))
	_, _, err := viaTransport(t, local, request(t, base))
	require.ErrorIs(t, err, fetch.Blocked)
	// A body is closed, whether it is sent or not.
	closed := make(chan struct{}, 2)
	for _, url := range []string{"http://a.test:25/", listen(t, says(ok+"\r\n"))} {
		req := request(t, url)
		req.Method, req.Body = http.MethodPost, closer{strings.NewReader("x"), func() { closed <- struct{}{} }}
		_, _, _ = viaTransport(t, local, req)
		<-closed
	}
}

type closer struct {
	io.Reader
	closed func()
}

func (c closer) Close() error { c.closed(); return nil }

// Header fields missing from another client's request are added to a copy; the other fields and the
// request itself are unchanged.
func TestTransportCompletesRequests(t *testing.T) {
	var heads []string
	base := listen(t, func(s *session) {
		for head := s.request(); head != ""; head = s.request() {
			heads = append(heads, head)
			s.say(ok + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nraw")
		}
	})
	c := newClient(t, fetch.Options{
		UserAgent: "testbot (bot@a.test)", Reach: fetch.Loopback,
		Header: http.Header{"Accept-Language": {"ja"}, "From": {"bot@a.test"}},
	})
	req := request(t, base)
	_, _, err := viaTransport(t, c, req)
	require.ErrorIs(t, err, fetch.CutCoding)
	require.Empty(t, req.Header)
	for _, field := range []string{"User-Agent: testbot (bot@a.test)", "From: bot@a.test", "Accept-Language: ja",
		"Accept-Encoding: gzip, zstd, deflate"} {
		require.Contains(t, heads[0], "\r\n"+field+"\r\n")
	}
	require.NotContains(t, heads[0], "\r\nAccept:", "net/http would not add it")
	req = request(t, base)
	req.Header = http.Header{"User-Agent": {"other/1.0"}, "Accept-Encoding": {"gzip"}, "Accept": {"image/*"}}
	resp, body, err := viaTransport(t, c, req)
	require.NoError(t, err)
	require.Equal(t, "raw", body, "the transport decodes only codings that it requested")
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	require.Contains(t, heads[1], "\r\nUser-Agent: other/1.0\r\n")
	require.Contains(t, heads[1], "\r\nAccept: image/*\r\n")
	req = request(t, base)
	req.Header = http.Header{"Range": {"bytes=1-3"}}
	_, _, err = viaTransport(t, c, req)
	require.NoError(t, err)
	require.NotContains(t, heads[2], "zstd", "a range of encoded bytes cannot be decoded")
	req = request(t, base)
	req.Header = http.Header{"Accept-Encoding": nil, "Range": {}, "User-Agent": nil}
	_, _, err = viaTransport(t, c, req)
	require.ErrorIs(t, err, fetch.CutCoding, "as from net/http, to which such fields are missing")
	require.NotContains(t, heads[3], "User-Agent", "with which net/http suppresses its own")
}

// An observer that only uses net/http sees the heads as on the wire, and the dialed address.
func TestTransportShowsTheWireToObservers(t *testing.T) {
	base := listen(t, func(s *session) {
		for n := 0; s.request() != ""; n++ {
			s.say(fmt.Sprintf("HTTP/1.1 200 Fine\r\nx-ODD:  %d \r\nContent-Length: 2\r\n\r\nok", n))
		}
	})
	c := newClient(t, fetch.Options{})
	for n := range 3 {
		var heads *httpwire.Heads
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			require.Equal(t, strings.TrimPrefix(base, "http://"), info.Conn.RemoteAddr().String())
			heads = info.Conn.(*httpwire.Conn).Begin()
		}}
		req := request(t, fmt.Sprint(base, "/", n))
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
		if n == 1 { // a body is not part of a head
			req.Method, req.Body, req.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader("a body")), 6
			req.Header.Set("Content-Type", "text/plain")
		}
		resp, _, err := viaTransport(t, c, req)
		require.NoError(t, err)
		asked, got, ok := heads.Take(resp)
		require.True(t, ok)
		require.True(t, strings.HasSuffix(string(asked), "\r\n\r\n"), "%q", asked)
		require.True(t, strings.HasPrefix(string(asked), req.Method+fmt.Sprintf(" /%d HTTP/1.1\r\n", n)), "%q", asked)
		if n == 1 {
			return // the server parses the body as a request
		}
		require.Equal(t, fmt.Sprintf("HTTP/1.1 200 Fine\r\nx-ODD:  %d \r\nContent-Length: 2\r\n\r\n", n), string(got))
	}
}

// A layer above gets the body as it was sent if the client gets it decoded.
func TestTransportShowsEncodedBodies(t *testing.T) {
	lines := strings.Repeat("to be or not to be, ", 100)
	z := zipped(t, lines)
	for _, tt := range []struct {
		name, answer, sent, read string
		opts                     fetch.Options
	}{
		{"plain", ok + "\r\nhello", "", "hello", fetch.Options{}},
		{"gzip", ok + "Content-Encoding: gzip\r\n\r\n" + z, z, lines, fetch.Options{}},
		{"cut", ok + "Content-Encoding: gzip\r\n\r\n" + z, z, lines[:100], fetch.Options{MaxBody: 100}},
		{"unknown", ok + "Content-Encoding: compress\r\n\r\nhello", "", "hello", fetch.Options{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var head string
				c, stop := inMemory(t, tt.opts, func(s *session) {
					head = s.request()
					s.say(tt.answer)
				})
				defer stop()
				var sent tapped
				req := request(t, "http://a.test/")
				req.Header.Set("Accept-Encoding", "gzip")
				req = req.WithContext(context.WithValue(req.Context(), struct{ EncodedBody struct{} }{},
					func(resp *http.Response) io.Writer {
						require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"), "as it was sent")
						return &sent
					}))
				resp, err := c.Transport().RoundTrip(req)
				require.NoError(t, err)
				require.Contains(t, head, "Accept-Encoding: gzip, zstd, deflate\r\n")
				require.Equal(t, []string{"gzip"}, req.Header["Accept-Encoding"])
				read, _ := io.ReadAll(resp.Body)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, tt.sent, sent.String())
				require.Equal(t, tt.name == "gzip", sent.closed == 1, "at the end only")
				require.Equal(t, tt.read, string(read))
			})
		})
	}
}

// tapped gets an encoded body.
type tapped struct {
	strings.Builder
	closed int
}

func (t *tapped) Close() error {
	t.closed++
	return nil
}

// leaver leaves at the first byte of a body.
type leaver struct{ leave func() }

func (l leaver) Write(p []byte) (int, error) {
	l.leave()
	return len(p), nil
}

// A caller who leaves while a decoder skips a frame is not the server's fault.
func TestTransportDoesNotBlameTheServerForTheCaller(t *testing.T) {
	skipped := "\x50\x2a\x4d\x18\x00\x00\x01\x00" + strings.Repeat("x", 1<<16)
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{}, func(s *session) {
			s.request()
			s.say(ok + "Content-Encoding: zstd\r\n\r\n" + skipped)
		})
		defer stop()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		ctx = context.WithValue(ctx, struct{ EncodedBody struct{} }{}, func(*http.Response) io.Writer { return leaver{leave} })
		req := request(t, "http://a.test/").WithContext(ctx)
		resp, err := c.Transport().RoundTrip(req)
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, resp.Body.Close())
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, fetch.CutCoding)
	})
}

// A connection is free for the next request once a body has been read, decoded or not. It is closed
// if the reader stops in the middle.
func TestTransportReusesConnections(t *testing.T) {
	z := zipped(t, noise(100_000))
	base := listen(t, func(s *session) {
		for s.request() != "" {
			s.say(fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", ok, len(z), z))
		}
	})
	c := newClient(t, fetch.Options{})
	client := &http.Client{Transport: c.Transport()}
	reused := false
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
	ctx := httptrace.WithClientTrace(t.Context(), trace)
	for n, all := range []bool{true, true, false, true} {
		resp, err := client.Do(request(t, base).WithContext(ctx))
		require.NoError(t, err)
		if all {
			_, err = io.Copy(io.Discard, resp.Body)
		} else {
			_, err = resp.Body.Read(make([]byte, 10))
		}
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		_, err = resp.Body.Read(make([]byte, 1))
		require.Error(t, err, "closed")
		require.Equal(t, n == 1 || n == 2, reused, "%d", n)
	}
	client.CloseIdleConnections()
}

// The caller's context ends a body as well, with the context's error.
func TestTransportObeysContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{MinRate: -1}, drip(ok+"\r\n"))
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		_, body, err := viaTransport(t, c, request(t, "http://a.test/").WithContext(ctx))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "xxx", body)
		_, _, err = viaTransport(t, c, request(t, "http://a.test/").WithContext(ctx))
		require.ErrorIs(t, err, fetch.Canceled)
	})
}

// The field Cancel ends a request like a context. An http.Client with a Timeout closes it when the
// deadline passes, and either may come first.
func TestTransportObeysCancel(t *testing.T) {
	for i := range 20 {
		synctest.Test(t, func(t *testing.T) {
			c, stop := inMemory(t, fetch.Options{}, silent)
			defer stop()
			req := request(t, "http://a.test/")
			var failure *fetch.Error
			client := &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
				_, err := c.Transport().RoundTrip(r)
				require.ErrorAs(t, err, &failure)
				return nil, err
			})}
			if i == 0 {
				quit := make(chan struct{})
				time.AfterFunc(time.Second, func() { close(quit) })
				//lint:ignore SA1019 older clients set it
				req.Cancel = quit
			} else {
				client.Timeout = time.Second
			}
			_, err := client.Do(req)
			require.Error(t, err)
			require.Equal(t, fetch.Canceled, failure.Kind, "%v", failure)
			require.Equal(t, i > 0, failure.Timeout(), "%v", failure)
		})
	}
}

func TestBadPorts(t *testing.T) {
	errNone := errors.New("none")
	none := func(context.Context, string) ([]netip.Addr, error) { return nil, errNone }
	c := newClient(t, fetch.Options{Resolve: none})
	for _, port := range []int{1, 22, 25, 110, 143, 6000, 6566, 6667, 10080} {
		url := fmt.Sprintf("http://a.test:%d/", port)
		e := fails(t, c, url)
		require.Equal(t, fetch.Blocked, e.Kind)
		require.EqualError(t, e, fmt.Sprintf("fetch: %s: blocked: port %d is not for HTTP", url, port))
		require.False(t, e.Temporary())
	}
	for _, port := range []string{"", ":80", ":443", ":8080", ":6670", ":65535"} {
		require.ErrorIs(t, fails(t, c, "http://a.test"+port+"/"), errNone)
	}
}

func ExampleClient_Transport() {
	client, err := fetch.New(fetch.Options{UserAgent: "examplebot/1.0 (+https://a.test/bot)"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// It guards any library that accepts an http.Client or a RoundTripper.
	web := &http.Client{Transport: client.Transport()}
	_, err = web.Get("http://169.254.169.254/latest/meta-data/")
	fmt.Println(errors.Is(err, fetch.Blocked))
	// Output:
	// true
}
