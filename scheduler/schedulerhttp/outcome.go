package schedulerhttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/spinneret-go/spinneret/internal/retryafter"
	"github.com/spinneret-go/spinneret/scheduler"
)

// Outcome tells a scheduler how a request went that began at start: status, latency, Retry-After
// and failure. Call it when the response is there, or when its body is read; the delay of the host
// counts from the call, as by then the server has certainly seen the request. Either resp or err
// may be nil.
//
// A name that does not resolve, a dead network or too many open files are no fault of the server:
// the visit then counts as skipped. A request that the caller has canceled is no failure either,
// but may have reached the server.
func Outcome(start time.Time, resp *http.Response, err error) scheduler.Outcome {
	now := time.Now()
	o := scheduler.Outcome{Start: now, Failed: err != nil && !errors.Is(err, context.Canceled)}
	if resp == nil {
		o.Skipped = neverSent(err)
		return o
	}
	o.Took = now.Sub(start)
	o.Status = resp.StatusCode
	if wait := retryafter.Of(resp.Header, now); wait > 0 {
		o.RetryAfter = now.Add(wait)
	}
	return o
}

// neverSent tells whether an error says that no server was reached for reasons that are ours.
func neverSent(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return true
	}
	for _, ours := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.EADDRNOTAVAIL,
		syscall.ENETDOWN, syscall.ENETUNREACH,
	} {
		if errors.Is(err, ours) {
			return true
		}
	}
	return false
}
