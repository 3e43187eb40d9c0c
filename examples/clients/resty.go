package clients

import (
	"bytes"
	"net/http"

	"github.com/go-resty/resty/v2"
)

func restyBefore(seeds []string, web http.RoundTripper) {
	client := resty.New().SetTransport(web).SetRetryCount(3).SetLogger(quiet{})
	spread(seeds, new(plainLinks).add, func(url string) (page string, found []string) {
		resp, err := client.R().Get(url)
		if err != nil || !resp.IsSuccess() {
			return url, nil
		}
		return resp.RawResponse.Request.URL.String(), hrefs(bytes.NewReader(resp.Body()))
	})
}

func restyAfter(seeds []string, web http.RoundTripper) {
	seen := newLinks()
	client := resty.New().SetTransport(web).SetRetryCount(3).SetLogger(quiet{})
	client.SetHeader("User-Agent", userAgent)
	client.SetRedirectPolicy(resty.RedirectPolicyFunc(seen.redirect))
	client.AddRetryCondition(func(resp *resty.Response, err error) bool {
		return err == nil && resp.StatusCode() == http.StatusTooManyRequests // waits for Retry-After
	})
	spread(seeds, seen.add, func(url string) (page string, found []string) {
		resp, err := client.R().Get(url)
		if err != nil || !resp.IsSuccess() {
			return url, nil
		}
		return resp.RawResponse.Request.URL.String(), hrefs(bytes.NewReader(resp.Body()))
	})
}

// quiet is a logger that discards everything.
type quiet struct{}

func (quiet) Errorf(string, ...any) {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Debugf(string, ...any) {}
