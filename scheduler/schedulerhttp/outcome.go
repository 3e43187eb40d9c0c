package schedulerhttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

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
	if wait := retryAfter(resp.Header, now); wait > 0 {
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

// retryAfter returns how long a server asks to be left alone: the seconds or the date of
// Retry-After (RFC 9110, section 10.2.3). A date counts from the Date of the response, so that it
// does not matter whether the clocks agree. It is 0 if the header is missing or makes no sense.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if value[0] >= '0' && value[0] <= '9' {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if errors.Is(err, strconv.ErrRange) || seconds > int64(scheduler.Forever/time.Second) {
			return scheduler.Forever
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return max(at.Sub(now), 0)
}
