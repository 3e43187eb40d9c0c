package fetch_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
)

// buffering is a layer that reads each body before it returns, as a cache or a checksum does, but for
// a path.
func buffering(except string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err != nil || strings.HasSuffix(r.URL.Path, except) {
				return resp, err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			resp.Body = io.NopCloser(bytes.NewReader(text))
			return resp, err
		})
	}
}

// A layer that reads a long body gets all of it, and other requests on the connection go on.
func TestWrapThatReadsBodies(t *testing.T) {
	page := strings.Repeat("0123456789abcdef", 8<<20/16)
	release := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/other" {
			fmt.Fprint(w, page)
			return
		}
		fmt.Fprint(w, "begin ")
		_ = http.NewResponseController(w).Flush()
		<-release
		fmt.Fprint(w, "end")
	})
	for _, http2 := range []bool{true, false} {
		s := httptest.NewUnstartedServer(handler)
		s.EnableHTTP2 = http2
		s.StartTLS()
		t.Cleanup(s.Close)
		c := newClient(t, fetch.Options{
			TLSConfig: s.Client().Transport.(*http.Transport).TLSClientConfig, HTTP1: !http2, Wrap: buffering("/other"),
		})
		resp, err := c.Transport().RoundTrip(request(t, s.URL+"/other"))
		require.NoError(t, err)
		r := get(t, c, s.URL)
		require.Equal(t, fetch.Whole, r.Truncated)
		require.Equal(t, page, string(r.Body))
		require.Equal(t, http2, r.Reused)
		if http2 {
			close(release)
		}
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "begin end", string(text))
		require.NoError(t, resp.Body.Close())
	}
}

// The time for the head ends with the head, and not when a layer has read the body.
func TestWrapThatReadsASlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := inMemory(t, fetch.Options{HeadTimeout: 2 * time.Second, Wrap: buffering("none")}, func(s *session) {
			s.request()
			s.say(ok + "\r\n")
			for range 6 {
				time.Sleep(time.Second)
				s.say("text")
			}
		})
		defer stop()
		require.Equal(t, strings.Repeat("text", 6), string(get(t, c, "http://a.test/").Body))
	})
}

// The address of a request is not that of another host that a layer asks: a page must not answer for
// where it redirects to.
func TestWrapThatAsksAnotherHost(t *testing.T) {
	opts := addresses(t, "http", "192.0.2.2", "192.0.2.1")
	opts.Wrap = func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close()
			other, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://b.test/new", nil)
			require.NoError(t, err)
			return next.RoundTrip(other)
		})
	}
	c := newClient(t, opts)
	r, err := c.Do(context.Background(), fetch.Request{URL: "http://a.test/old", Addr: netip.MustParseAddr("192.0.2.1")})
	require.NoError(t, err)
	require.Equal(t, "192.0.2.2 b.test /new 1", string(r.Body))
	require.Equal(t, "192.0.2.2", r.Addr.Addr().String())
}

// TestWrapThatAddsToErrors: what failed is known although the layer says which one it is.
func TestWrapThatAddsToErrors(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler) // resets the stream
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	for _, add := range []string{"layer: %w", "%w: %w"} {
		c := newClient(t, fetch.Options{
			TLSConfig: srv.Client().Transport.(*http.Transport).TLSClientConfig,
			Wrap: func(next http.RoundTripper) http.RoundTripper {
				return tripper(func(r *http.Request) (*http.Response, error) {
					resp, err := next.RoundTrip(r)
					if err != nil {
						err = fmt.Errorf(add, []any{io.ErrNoProgress, err}[2-strings.Count(add, "%w"):]...)
					}
					return resp, err
				})
			},
		})
		e := fails(t, c, srv.URL)
		require.Equal(t, fetch.Disconnected, e.Kind, "%v", e)
		require.True(t, e.Temporary())
	}
}

// TestWrapThatReadsOn: a piece of the request's body that is asked for after the deadline of the caller is not
// what the server waited for when it passed.
func TestWrapThatReadsOn(t *testing.T) {
	base := listen(t, func(s *session) {
		s.request()
		s.request() // never answers
	})
	c := newClient(t, fetch.Options{Wrap: func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			ask := r.Clone(r.Context())
			ask.Body, ask.GetBody, ask.ContentLength = nil, nil, 0
			resp, err := next.RoundTrip(ask)
			_, _ = r.Body.Read(make([]byte, 1))
			_ = r.Body.Close()
			return resp, err
		})
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base, strings.NewReader("text"))
	require.NoError(t, err)
	_, err = c.Transport().RoundTrip(req)
	var e *fetch.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, 1, e.Attempts)
	require.False(t, e.Local())
}
