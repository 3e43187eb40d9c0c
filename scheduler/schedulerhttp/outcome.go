package schedulerhttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpfield"
	"github.com/spinneret-go/spinneret/internal/neterr"
	"github.com/spinneret-go/spinneret/scheduler"
)

// Outcome describes a request that began at start, for a scheduler: status, latency, failure, and
// when the server wants the next request, by its Retry-After or its RateLimit field (of
// draft-ietf-httpapi-ratelimit-headers-10: what is left is spread over the rest of the time). Call
// it when the response has arrived, or after its body was read. The delay of the host counts from
// the call, since by then the server has certainly seen the request. Either resp or err may be nil.
//
// A name that does not resolve, a broken network, a proxy that fails or too many open files are not
// the server's fault: the visit counts as skipped. So does an error with a method Local() bool that
// returns true, as layers return that refuse a request or fail themselves, unless an error also has a
// method Sent() bool that returns true, as a fetch.Error has. A canceled request is
// not a failure either, but it may have reached the server: its outcome is Unknown. If the context was
// canceled with a cause, err is that cause: pass context.Canceled in its place.
func Outcome(start time.Time, resp *http.Response, err error) scheduler.Outcome {
	now := time.Now()
	o := scheduler.Outcome{Start: now, Failed: err != nil && !errors.Is(err, context.Canceled) && !neterr.Local(err)}
	if resp == nil {
		o.Skipped = neverSent(err)
		o.Unknown = !o.Failed && !o.Skipped
		return o
	}
	o.Took = now.Sub(start)
	o.Status, o.Unknown = resp.StatusCode, resp.StatusCode == http.StatusProxyAuthRequired // which no server sends
	if wait := max(httpfield.RetryAfter(resp.Header, now), httpfield.RateLimit(resp.Header)); wait > 0 {
		o.RetryAfter = now.Add(wait)
	}
	return o
}

// neverSent reports whether err means that no server was reached, for reasons on our side. A name
// that is not found is one: there is nobody whose delay could start, although to other packages it
// says something about the host. That an error says nothing about the server is not enough: a caller
// who left may have left after the request.
func neverSent(err error) bool {
	var dns *net.DNSError
	return (errors.As(err, &dns) || neterr.Local(err)) && !neterr.Sent(err)
}
