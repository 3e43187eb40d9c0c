package clients

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/robots"
)

// TestRetries checks which failures are retried over the guards alone. Over all layers each of them
// concerns robots.txt first, and so is final.
func TestRetries(t *testing.T) {
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			_, _ = w.Write([]byte("User-agent: *\nDisallow: /\n"))
		}
	})
	web, err := webtest.Start(webtest.Options{
		TLS: true, Handlers: map[string]http.Handler{"shop.test": site},
	})
	require.NoError(t, err)
	defer web.Close()
	const once, often = 1, 4
	for name, c := range map[string]struct {
		url      string
		change   func(o *fetch.Options)
		want     error // over the guards
		attempts int
	}{
		"a page":            {url: "https://shop.test/", attempts: once},
		"a bad scheme":      {url: "ftp://shop.test/", want: fetch.BadURL, attempts: once},
		"an unknown name":   {url: "https://unknown.test/", want: fetch.Resolve, attempts: once},
		"a closed port":     {url: "https://shop.test:444/", want: fetch.Connect, attempts: often},
		"a local address":   {"https://shop.test/", local, fetch.Blocked, once},
		"a bad certificate": {"https://shop.test/", untrusting, fetch.TLS, once},
	} {
		o := guards(web)
		if c.change != nil {
			c.change(&o)
		}
		guarded, err := fetch.New(o)
		require.NoError(t, err)
		attempts, err := attemptsOf(guarded.Transport(), c.url)
		require.Equal(t, c.attempts, attempts, name)
		require.True(t, errors.Is(err, c.want), "%s: %v", name, err)

		kept, err := archive.Open(t.TempDir(), archive.Options{})
		require.NoError(t, err)
		all, err := layers(o, kept)
		require.NoError(t, err)
		attempts, err = attemptsOf(all, c.url)
		require.Equal(t, once, attempts, name)
		if name == "a page" {
			c.want = robots.ErrDisallowed
		}
		require.ErrorIs(t, err, c.want, name)
		require.NoError(t, kept.Close())
	}
}

func local(o *fetch.Options)      { o.Reach = fetch.Public }
func untrusting(o *fetch.Options) { o.TLSConfig = nil }

// attemptsOf returns how often the client tries to get a page, and its last error.
func attemptsOf(transport http.RoundTripper, url string) (attempts int, err error) {
	client := retryablehttp.NewClient()
	client.HTTPClient.Transport = transport
	client.CheckRetry = retryUnlessDisallowed
	client.RetryMax, client.RetryWaitMin, client.Logger = 3, time.Millisecond, nil
	client.RequestLogHook = func(retryablehttp.Logger, *http.Request, int) { attempts++ }
	defer client.HTTPClient.CloseIdleConnections()
	resp, err := client.Get(url)
	if err == nil {
		err = resp.Body.Close()
	}
	return attempts, err
}
