package clients

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-resty/resty/v2"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// latency sends a request and returns how long the server took to respond. It does not count how
// long the request waited: a connection is got when the request may be written.
func latency(client *http.Client, r *http.Request) (took time.Duration, err error) {
	var mu sync.Mutex // net/http calls the functions of a trace from several goroutines
	var got time.Time
	trace := &httptrace.ClientTrace{
		// Requests for robots.txt, redirects and repetitions are traced as well: the last one counts.
		GotConn: func(httptrace.GotConnInfo) {
			mu.Lock()
			defer mu.Unlock()
			got = time.Now()
		},
		GotFirstResponseByte: func() {
			mu.Lock()
			defer mu.Unlock()
			took = time.Since(got)
		},
	}
	resp, err := client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	mu.Lock()
	defer mu.Unlock()
	return took, err
}

// TestLatency checks that waits count neither for latency nor for resty's ServerTime. A request
// waits for its host before it has a connection. The POST to a new host waits for the address, on a
// connection, since it cannot be sent again on another one.
func TestLatency(t *testing.T) {
	const slow = 2 * time.Second
	request := func(method, url string, body io.Reader) *http.Request {
		r, err := http.NewRequest(method, url, body)
		require.NoError(t, err)
		return r
	}
	for name, over := range map[string]func(*testing.T, *webtest.Web) http.RoundTripper{
		"all layers": polite,
		"schedulerhttp": func(t *testing.T, web *webtest.Web) http.RoundTripper {
			guarded, err := fetch.New(guards(web))
			require.NoError(t, err)
			t.Cleanup(guarded.CloseIdleConnections)
			return schedulerhttp.NewTransport(guarded.Transport(), scheduler.Options{})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/robots.txt" {
					http.NotFound(w, r)
					return
				}
				time.Sleep(slow)
			})
			web := startWeb(t, webtest.Options{Addrs: 1, Handlers: map[string]http.Handler{
				"one.test": page, "two.test": page, "three.test": page,
			}})
			transport := over(t, web)
			client := &http.Client{Transport: transport}
			for i, send := range []func() (time.Duration, error){
				func() (time.Duration, error) {
					return latency(client, request(http.MethodGet, "http://one.test/", nil))
				},
				func() (time.Duration, error) {
					form := io.NopCloser(strings.NewReader("form"))
					return latency(client, request(http.MethodPost, "http://two.test/", form))
				},
				func() (time.Duration, error) {
					resp, err := resty.New().SetTransport(transport).R().EnableTrace().Get("http://three.test/")
					return resp.Request.TraceInfo().ServerTime, err
				},
			} {
				start := time.Now()
				took, err := send()
				require.NoError(t, err, name)
				require.Equal(t, slow, took, name)
				if name == "all layers" || i > 0 {
					require.GreaterOrEqual(t, time.Since(start), delay+slow, name)
				}
			}
		})
	}
}
