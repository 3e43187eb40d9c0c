package robotshttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
)

// TestTheFieldHost: a crawler that has looked up a name itself sends a request to the address, and names
// the host in a field.
func TestTheFieldHost(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Host+r.URL.Path)
		if r.URL.Path == "/robots.txt" && r.Host == "private.test" {
			fmt.Fprint(w, "user-agent: *\ndisallow: /\n")
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: robotshttp.NewTransport(nil, robots.Options{Agent: "a"})}
	get := func(host string) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/page", nil)
		require.NoError(t, err)
		r.Host = host
		resp, err := client.Do(r)
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
		return err
	}
	require.ErrorIs(t, get("Private.test:80"), robots.ErrDisallowed)
	require.ErrorIs(t, get("private.test"), robots.ErrDisallowed)
	require.NoError(t, get("open.test"))
	require.Equal(t, []string{"private.test/robots.txt", "open.test/robots.txt", "open.test/page"}, got)
}

// TestAHostThatRedirectsToItself is asked at the same address, however it writes its name.
func TestAHostThatRedirectsToItself(t *testing.T) {
	for _, location := range []string{"/rules", "http://a.test/rules", "http://A.test/rules", "http://a.test:80/rules"} {
		var asked []string
		transport := robotshttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.Host+" "+r.Host+r.URL.Path)
			resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
			if r.URL.Path == "/robots.txt" {
				resp.StatusCode = http.StatusFound
				resp.Header.Set("Location", location)
			}
			return resp, nil
		}), robots.Options{})
		r := httptest.NewRequest(http.MethodGet, "http://192.0.2.1:8080/", nil)
		r.Host = "a.test"
		_, err := transport.RoundTrip(r)
		require.NoError(t, err)
		const at = "192.0.2.1:8080 a.test"
		require.Equal(t, []string{at + "/robots.txt", at + "/rules", at + "/"}, asked, location)
	}
}

// TestAnotherScheme: the port of a request is not that of the server with another scheme. A port for TLS
// answers 400 to those who come without, as if there were no robots.txt.
func TestAnotherScheme(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		other := map[string]string{"http": "https", "https": "http"}[scheme]
		var asked []string
		transport := robotshttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.String())
			resp := &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: http.NoBody, Request: r}
			switch r.URL.String() {
			case scheme + "://192.0.2.1:8080/robots.txt":
				resp.StatusCode = http.StatusFound
				resp.Header.Set("Location", other+"://a.test/robots.txt")
			case other + "://a.test/robots.txt":
				resp.StatusCode = http.StatusOK
				resp.Body = io.NopCloser(strings.NewReader("user-agent: *\ndisallow: /\n"))
			}
			return resp, nil
		}), robots.Options{})
		r := httptest.NewRequest(http.MethodGet, scheme+"://192.0.2.1:8080/", nil)
		r.Host = "a.test"
		_, err := transport.RoundTrip(r)
		require.ErrorIs(t, err, robots.ErrDisallowed, "%v", asked)
	}
}

// TestAPauseOfThePage: a layer above limits the time of requests without their waits, of which that for
// robots.txt is one, whoever of them asks for it.
func TestAPauseOfThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type pause = struct{ Pause struct{} }
		w := newWeb()
		w.took = time.Second
		transport := robotshttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			resume := r.Context().Value(pause{}).(func() func())()
			time.Sleep(time.Minute) // as schedulerhttp does
			resume()
			return w.RoundTrip(r)
		}), robots.Options{Agent: "foo"})
		start := time.Now()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				paused := time.Duration(0)
				ctx := context.WithValue(t.Context(), pause{}, func() func() {
					since := time.Now()
					return func() { paused += time.Since(since) }
				})
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test/", nil)
				assert.NoError(t, err)
				_, err = transport.RoundTrip(r)
				assert.NoError(t, err)
				assert.GreaterOrEqual(t, paused, 2*time.Minute)
			})
		}
		wg.Wait()
		require.Equal(t, 2*time.Minute+2*time.Second, time.Since(start))
	})
}

// TestAProxyWithoutItsPassword: the proxy of one tenant does not take the host from the others.
func TestAProxyWithoutItsPassword(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	site := httptest.NewTLSServer(http.NotFoundHandler())
	defer site.Close()
	at, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	direct := site.Client().Transport.(*http.Transport)
	base := direct.Clone()
	base.Proxy = http.ProxyURL(at)
	transport := robotshttp.NewTransport(base, robots.Options{})
	_, err = transport.RoundTrip(httptest.NewRequest(http.MethodGet, site.URL+"/a", nil))
	require.Error(t, err)
	require.NotErrorIs(t, err, robots.ErrUnreachable)

	resp, err := transport.With(direct).RoundTrip(httptest.NewRequest(http.MethodGet, site.URL+"/a", nil))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}
