package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/wall"
	"github.com/spinneret-go/spinneret/robots/usage"
)

// Classify returns the fate of a URL, given the response or the error of the fetch.
func Classify(resp *fetch.Response, err error) Fate {
	if err != nil {
		return classifyError(err)
	}
	if Wall(resp) != "" {
		return Walled
	}
	return FateOf(resp)
}

// FateOf is Classify for a response that no bot wall has given. To look for one takes longer than
// all the rest.
func FateOf(resp *fetch.Response) Fate {
	switch {
	case resp.NotModified() && conditional(resp):
		return Unchanged
	case resp.Location != "":
		return Redirected
	case resp.Status == http.StatusTooManyRequests, resp.Status == http.StatusServiceUnavailable:
		return SentAway
	case 500 <= resp.Status && resp.Status < 600:
		return ServerError
	case usage.ForSale(resp.Status, resp.Header):
		return ForSale
	case 400 <= resp.Status && resp.Status < 500:
		return ClientError
	case resp.Status != http.StatusOK:
		return OddStatus
	case resp.Truncated == fetch.CutCoding:
		return Undecoded
	case resp.Truncated != fetch.Whole || resp.RawCut != fetch.Whole:
		return Cut
	}
	return Fetched
}

// Wall returns whose bot wall has answered in place of the server; "" if none has.
func Wall(resp *fetch.Response) string { return wall.Of(resp.Status, resp.Header, resp.Body) }

// conditional reports whether the request was conditional: only then is 304 a valid response.
func conditional(resp *fetch.Response) bool {
	return bytes.Contains(resp.RequestHead, []byte("\r\nIf-None-Match:")) ||
		bytes.Contains(resp.RequestHead, []byte("\r\nIf-Modified-Since:"))
}

// fates maps the kinds of fetch errors to fates.
var fates = map[fetch.Kind]Fate{
	fetch.BadURL:          BadURL,
	fetch.Resolve:         Unresolved,
	fetch.ResolveTimeout:  Unresolved,
	fetch.Blocked:         BlockedAddress,
	fetch.Connect:         Refused,
	fetch.ConnectTimeout:  TimedOut,
	fetch.TLS:             TLSFailed,
	fetch.TLSTimeout:      TimedOut,
	fetch.HeadTimeout:     TimedOut,
	fetch.Disconnected:    Refused,
	fetch.Protocol:        NotHTTP,
	fetch.HeaderTooLarge:  Oversized,
	fetch.TooManyAttempts: TurnedAway,
	fetch.Proxy:           Interrupted,
	fetch.Canceled:        Interrupted,
}

func classifyError(err error) Fate {
	var failed *fetch.Error
	var dns *net.DNSError
	switch {
	case refusedByProxy(err), brokeOff(err):
		return Refused
	case errors.Is(err, context.Canceled), errors.Is(err, fetch.Proxy): // whose name may be unknown
		return Interrupted
	case errors.As(err, &dns) && dns.IsNotFound:
		return UnknownHost
	case errors.As(err, &failed):
		if fate, ok := fates[failed.Kind]; ok {
			return fate
		}
	}
	return Unresolved
}

// Detail returns the details of FateOf: the target of a redirect, or the status.
func Detail(resp *fetch.Response) string {
	switch {
	case resp.Location != "":
		return resp.Location
	case resp.Status != http.StatusOK:
		return strings.TrimSpace(fmt.Sprint(resp.Status, " ", http.StatusText(resp.Status)))
	case resp.Truncated != fetch.Whole:
		return resp.Truncated.String()
	}
	return ""
}
