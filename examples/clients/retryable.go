package clients

import (
	"context"
	"errors"
	"net/http"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
)

func retryableBefore(seeds []string, web http.RoundTripper) {
	client := retryablehttp.NewClient()
	client.HTTPClient.Transport = web
	client.Logger = nil
	spread(seeds, new(plainLinks).add, func(url string) (page string, found []string) {
		resp, err := client.Get(url)
		if err != nil {
			return url, nil
		}
		defer resp.Body.Close()
		return resp.Request.URL.String(), hrefs(resp.Body)
	})
}

func retryableAfter(seeds []string, web http.RoundTripper) {
	seen := newLinks()
	client := retryablehttp.NewClient()
	client.HTTPClient.Transport = web
	client.HTTPClient.CheckRedirect = seen.redirect
	client.CheckRetry = retryUnlessDisallowed
	client.Logger = nil
	spread(seeds, seen.add, func(url string) (page string, found []string) {
		resp, err := client.Get(url)
		if err != nil {
			return url, nil
		}
		defer resp.Body.Close()
		return resp.Request.URL.String(), hrefs(resp.Body)
	})
}

// retryUnlessDisallowed does not retry what robots.txt forbids, what waits for a robots.txt that
// cannot be fetched for minutes, nor what fails the same way each time: a bad URL or certificate, an
// address that may not be dialed, a name that does not exist. Retrying would cost the server little,
// but it would cost time.
func retryUnlessDisallowed(ctx context.Context, resp *http.Response, err error) (bool, error) {
	var failed *fetch.Error
	if errors.Is(err, robots.ErrDisallowed) || errors.Is(err, robots.ErrUnreachable) ||
		errors.As(err, &failed) && !failed.Temporary() {
		return false, err
	}
	return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
}
