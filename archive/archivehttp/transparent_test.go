package archivehttp_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
)

// seen is everything a client can observe of a response.
type seen struct {
	err, proto, status, final, body, bodyErr, closeErr string
	header                                             http.Header
	length                                             int64
	uncompressed, tls                                  bool
	coding                                             []string
}

// see sends a request and returns what it observes.
func see(t *testing.T, c *http.Client, method, url string, body io.Reader, read int64) (s seen) {
	req, err := http.NewRequest(method, url, body)
	require.NoError(t, err)
	resp, err := c.Do(req)
	if err != nil {
		return seen{err: err.Error()}
	}
	s = seen{proto: resp.Proto, status: resp.Status, final: resp.Request.URL.String(),
		header: resp.Header, length: resp.ContentLength, uncompressed: resp.Uncompressed,
		tls: resp.TLS != nil, coding: resp.TransferEncoding}
	data, err := io.ReadAll(io.LimitReader(resp.Body, read))
	s.body, s.bodyErr = string(data), fmt.Sprint(err)
	s.closeErr = fmt.Sprint(resp.Body.Close())
	_, err = resp.Body.Read(make([]byte, 1))
	s.bodyErr += fmt.Sprint(err != nil)
	s.header.Del("Date")
	return s
}

// A client sees the same with and without the recorder.
func TestTransparent(t *testing.T) {
	starts := map[string]func(*httptest.Server){
		"http":  (*httptest.Server).Start,
		"https": (*httptest.Server).StartTLS,
		"http2": func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	}
	for name, start := range starts {
		for _, disabled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/DisableCompression=%v", name, disabled), func(t *testing.T) {
				s := serve(t, start)
				base := s.Client().Transport.(*http.Transport)
				base.DisableCompression = disabled
				plain := &http.Client{Transport: base}
				recorded, a := client(t, base)
				for _, path := range []string{"/gzip", "/notgzip", "/emptygzip", "/morethangzip", "/chunks",
					"/empty", "/204", "/304", "/404", "/redirect", "/hints", "/broken", "/abort"} {
					for _, method := range []string{"GET", "HEAD", "POST"} {
						for _, read := range []int64{1 << 30, 3} {
							want := see(t, plain, method, s.URL+path, nil, read)
							got := see(t, recorded, method, s.URL+path, nil, read)
							require.Equal(t, want, got, "%s %s, %d bytes", method, path, read)
						}
					}
				}
				require.Equal(t, see(t, plain, "GET", s.URL+"/large", nil, 1<<30),
					see(t, recorded, "GET", s.URL+"/large", nil, 1<<30))
				for _, body := range []string{"", "a=b", strings.Repeat("x", 2<<20)} {
					want := see(t, plain, "POST", s.URL+"/post", strings.NewReader(body), 1<<30)
					got := see(t, recorded, "POST", s.URL+"/post", strings.NewReader(body), 1<<30)
					require.Equal(t, want, got)
					want = see(t, plain, "PUT", s.URL+"/post", unknown(body), 1<<30)
					got = see(t, recorded, "PUT", s.URL+"/post", unknown(body), 1<<30)
					require.Equal(t, want, got)
				}
				_, err := a.Versions(s.URL + "/chunks")
				require.NoError(t, err)
			})
		}
	}
}

// unknown is a body whose length net/http does not know.
func unknown(body string) io.Reader { return io.MultiReader(strings.NewReader(body)) }

// The caller's request is not modified.
func TestRequestIsNotChanged(t *testing.T) {
	s := serve(t, (*httptest.Server).Start)
	c, _ := client(t, nil)
	req, err := http.NewRequest("POST", s.URL+"/post", strings.NewReader("abc"))
	require.NoError(t, err)
	body, header := req.Body, req.Header.Clone()
	resp, err := c.Transport.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, header, req.Header)
	require.Equal(t, body, req.Body)
	require.Same(t, req, resp.Request)
}

// The end of the context ends the body, and the part read so far is recorded.
func TestContext(t *testing.T) {
	for _, name := range []string{"canceled", "deadline"} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, (*httptest.Server).Start)
			c, a := client(t, nil)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			want, reason := context.Canceled, "unspecified"
			if name == "deadline" {
				want, reason = context.DeadlineExceeded, "time"
			}
			req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/wait", nil)
			require.NoError(t, err)
			resp, err := c.Do(req)
			require.NoError(t, err)
			first := make([]byte, 5)
			_, err = io.ReadFull(resp.Body, first)
			require.NoError(t, err)
			cancel(want)
			_, err = io.ReadAll(resp.Body)
			require.ErrorIs(t, err, want)
			require.NoError(t, resp.Body.Close())
			_, response := only(t, a, s.URL+"/wait")
			require.Equal(t, reason, response.fields.Get("WARC-Truncated"))
			require.Contains(t, response.block, "first")
		})
	}
}

// Close ends a blocked Read, as with net/http.
func TestCloseWhileReading(t *testing.T) {
	s := serve(t, (*httptest.Server).Start)
	c, a := client(t, nil)
	resp, err := c.Get(s.URL + "/wait")
	require.NoError(t, err)
	_, err = io.ReadFull(resp.Body, make([]byte, 5))
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		_, err := io.ReadAll(resp.Body)
		done <- err
	}()
	require.NoError(t, resp.Body.Close())
	require.Error(t, <-done)
	_, response := only(t, a, s.URL+"/wait")
	require.Equal(t, "unspecified", response.fields.Get("WARC-Truncated"))
}

// Any other RoundTripper works as the base. The heads are rebuilt.
func TestOtherBase(t *testing.T) {
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Proto: "HTTP/1.1",
			Header:        http.Header{"X-A": {"1", "2"}, "Content-Type": {"text/plain"}},
			ContentLength: -1, Body: io.NopCloser(bytes.NewReader([]byte("made up")))}, nil
	})
	c, a := client(t, base)
	resp, err := c.Get("http://user:secret@made.up.test:80/x?y#z")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "made up", string(body))
	request, response := only(t, a, "http://made.up.test:80/x?y")
	require.Equal(t, "GET /x?y HTTP/1.1\r\nHost: made.up.test:80\r\n"+
		"User-Agent: Go-http-client/1.1\r\nAccept-Encoding: gzip\r\n"+
		"Authorization: redacted\r\n\r\n", request.block)
	require.Equal(t, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\nX-A: 2\r\n\r\n"+
		"made up", response.block)
	require.False(t, request.wire())
	require.False(t, response.wire())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A base that decodes bodies itself provides the bytes as sent, also through layers that know
// nothing of it.
func TestEncodedBody(t *testing.T) {
	for name, base := range map[string]http.RoundTripper{
		"directly":          decoding{},
		"another layer":     foreign{decoding{}},
		"a copied response": copying{decoding{}},
		"a retry":           &retrying{base: decoding{}},
		"a race of two":     &retrying{base: decoding{}, first: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, a := client(t, base)
			resp, err := c.Get("http://tapped.test/")
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			request, response := only(t, a, "http://tapped.test/")
			require.Contains(t, request.block, "\r\nAccept-Encoding: lower\r\n", "as it was sent")
			require.Contains(t, response.block, "\r\nContent-Encoding: lower\r\n")
			require.True(t, strings.HasSuffix(response.block, "\r\n\r\n"+strings.ToUpper(string(body))))
		})
	}
}

// Two recorders, with a base that decodes bodies, each record them as sent.
func TestTwoRecorders(t *testing.T) {
	below, a := client(t, decoding{})
	c, b := client(t, below.Transport)
	resp, err := c.Get("http://tapped.test/")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "hello", string(body))
	for _, kept := range []*archive.Archive{a, b} {
		_, response := only(t, kept, "http://tapped.test/")
		require.Contains(t, response.block, "\r\nContent-Encoding: lower\r\n")
		require.True(t, strings.HasSuffix(response.block, "\r\n\r\nHELLO"))
	}
}

// decoding is a base that decodes a content coding of capital letters.
type decoding struct {
	body   string // "" means HELLO
	length int64  // as the server says; 0 if it does not
}

func (d decoding) RoundTrip(req *http.Request) (*http.Response, error) {
	tap, ok := req.Context().Value(struct{ EncodedBody struct{} }{}).(func(*http.Response) io.Writer)
	if !ok {
		return nil, fmt.Errorf("no tap")
	}
	sent := req.Clone(req.Context())
	sent.Header.Set("Accept-Encoding", "lower")
	body := cmp.Or(d.body, "HELLO") + req.Header.Get("X-Try")
	resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Encoding": {"lower"}},
		ContentLength: cmp.Or(d.length, -1), Request: sent}
	w := tap(resp)
	resp.Header.Del("Content-Encoding")
	resp.Uncompressed, resp.ContentLength, resp.Request = true, -1, req
	resp.Body = io.NopCloser(lower{&tee{strings.NewReader(body), w}})
	return resp, nil
}

// tee shows what is read, and its end.
type tee struct {
	r   io.Reader
	tap io.Writer
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if t.tap != nil {
		_, _ = t.tap.Write(p[:n])
		if c, ok := t.tap.(io.Closer); ok && err == io.EOF {
			_ = c.Close()
		}
	}
	return n, err
}

// foreign is a layer that knows nothing of others.
type foreign struct{ base http.RoundTripper }

func (f foreign) RoundTrip(r *http.Request) (*http.Response, error) { return f.base.RoundTrip(r) }

// copying returns another response than it got.
type copying struct{ base http.RoundTripper }

func (c copying) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.base.RoundTrip(r)
	another := *resp
	another.Header = resp.Header.Clone()
	return &another, err
}

// retrying sends each request several times, and returns the last response or the first one.
type retrying struct {
	base  http.RoundTripper
	first bool
}

func (l *retrying) RoundTrip(r *http.Request) (kept *http.Response, err error) {
	for try := range 3 {
		again := r.Clone(r.Context())
		again.Header.Set("X-Try", strings.Repeat("!", try))
		resp, err := l.base.RoundTrip(again)
		if err != nil {
			return nil, err
		}
		if kept == nil || !l.first {
			kept = resp
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	return kept, nil
}

type lower struct{ r io.Reader }

func (l lower) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	copy(p, bytes.ToLower(p[:n]))
	return n, err
}

var _ http.RoundTripper = new(archivehttp.Transport)
