package stage

import (
	"context"
	"errors"
	"net/http"

	"github.com/spinneret-go/spinneret/fetch"
)

// Judge tells the fate of a URL from what the fetch of it brought: a response, or an error.
func Judge(resp *fetch.Response, err error) Fate {
	if err != nil {
		return judgeError(err)
	}
	switch {
	case resp.NotModified():
		return Unchanged
	case resp.Location != "":
		return Redirected
	case resp.Status >= 500:
		return ServerError
	case resp.Status >= 400:
		return ClientError
	case resp.Status != http.StatusOK:
		return OddStatus
	case resp.Truncated != fetch.Whole || resp.RawCut != fetch.Whole:
		return Cut
	}
	return Fetched
}

// fates maps what fetch distinguishes to what a summary tells apart.
var fates = map[fetch.Kind]Fate{
	fetch.BadURL:          UnknownHost,
	fetch.Resolve:         UnknownHost,
	fetch.ResolveTimeout:  UnknownHost,
	fetch.Blocked:         BlockedAddress,
	fetch.Connect:         Refused,
	fetch.ConnectTimeout:  TimedOut,
	fetch.TLS:             TLSFailed,
	fetch.TLSTimeout:      TimedOut,
	fetch.HeadTimeout:     TimedOut,
	fetch.Disconnected:    Refused,
	fetch.Protocol:        NotHTTP,
	fetch.HeaderTooLarge:  Oversized,
	fetch.TooManyAttempts: Refused,
	fetch.Canceled:        Interrupted,
}

func judgeError(err error) Fate {
	var failed *fetch.Error
	if errors.As(err, &failed) {
		if fate, ok := fates[failed.Kind]; ok {
			return fate
		}
	}
	if errors.Is(err, context.Canceled) {
		return Interrupted
	}
	return UnknownHost
}

// Detail says in a few words what a fate leaves open: where a redirect leads, which status came.
func Detail(resp *fetch.Response) string {
	switch {
	case resp.Location != "":
		return resp.Location
	case resp.Status != http.StatusOK:
		return http.StatusText(resp.Status)
	case resp.Truncated != fetch.Whole:
		return resp.Truncated.String()
	}
	return ""
}
