package stage

import "time"

// A Fate is the one recorded outcome of a visit: the kind of response, or why there was no request.
// Its value is a stable code for programs; String returns a description.
type Fate string

// The fates. Those of a requested URL describe the response; the others say why there was none.
const (
	Fetched          Fate = "fetched"
	Unchanged        Fate = "unchanged"
	HardlyChanged    Fate = "hardly_changed"
	Cut              Fate = "cut"
	Undecoded        Fate = "undecoded"
	Redirected       Fate = "redirected"
	TooManyRedirects Fate = "too_many_redirects"
	ClientError      Fate = "http_4xx"
	ServerError      Fate = "http_5xx"
	SentAway         Fate = "sent_away"
	Walled           Fate = "walled"
	OddStatus        Fate = "odd_status"
	Listed           Fate = "listed"
	NoSitemap        Fate = "no_sitemap"

	BadURL         Fate = "bad_url"
	UnknownHost    Fate = "unknown_host"
	Unresolved     Fate = "unresolved"
	BlockedAddress Fate = "blocked_address"
	Refused        Fate = "refused"
	TurnedAway     Fate = "turned_away"
	TimedOut       Fate = "timed_out"
	TLSFailed      Fate = "tls_failed"
	NotHTTP        Fate = "not_http"
	Oversized      Fate = "oversized"

	// Interrupted is a visit that the crawler canceled because the crawl ended, the disk was full
	// or the machine was offline. It says nothing about the server, and the visit is repeated.
	Interrupted Fate = "interrupted"

	Disallowed        Fate = "disallowed"
	ForSale           Fate = "for_sale"
	RobotsUnreachable Fate = "robots_unreachable"
	Unwanted          Fate = "unwanted"
	QueueFull         Fate = "queue_full"
	HostFull          Fate = "host_full"
	Unstored          Fate = "unstored"
	LeftOver          Fate = "left_over"
)

// sentences describes the codes.
var sentences = map[Fate]string{
	Fetched:           "fetched",
	Unchanged:         "unchanged since the last visit",
	HardlyChanged:     "hardly changed since the last visit",
	Cut:               "fetched in part (over a limit, or the connection broke)",
	Undecoded:         "fetched, but its content coding is unknown or corrupt",
	Redirected:        "redirected",
	TooManyRedirects:  "redirected too often",
	ClientError:       "HTTP 4xx",
	ServerError:       "HTTP 5xx",
	SentAway:          "told to come back later (HTTP 429 or 503)",
	Walled:            "a bot wall's challenge in place of the page",
	OddStatus:         "HTTP status without a page",
	Listed:            "sitemap read",
	NoSitemap:         "listed as a sitemap, but is not one",
	BadURL:            "URL that cannot be requested",
	UnknownHost:       "unknown host",
	Unresolved:        "no answer from the host's name servers",
	BlockedAddress:    "address out of bounds (private, loopback or reserved)",
	Refused:           "connection refused or broken",
	TurnedAway:        "each of several attempts turned away",
	TimedOut:          "timed out",
	TLSFailed:         "TLS failed",
	NotHTTP:           "response is not HTTP",
	Oversized:         "response header over the limit",
	Interrupted:       "interrupted",
	Disallowed:        "disallowed by robots.txt",
	ForSale:           "the site demands a license or a payment",
	RobotsUnreachable: "robots.txt unreachable, so nothing is allowed",
	Unwanted:          "no longer wanted",
	QueueFull:         "queue full",
	HostFull:          "page limit of the host reached",
	Unstored:          "fetched, but the archive could not take it",
	LeftOver:          "left in the queue",
}

// String returns a description of the fate.
func (f Fate) String() string {
	if sentence, known := sentences[f]; known {
		return sentence
	}
	return string(f)
}

// Failed reports whether a visit that was made or tried got no page. A visit that the site or
// the operator does not want is not a failure.
func (f Fate) Failed() bool {
	switch f {
	case Disallowed, ForSale, Unwanted, HostFull, QueueFull:
		return false
	}
	return f.Retry() > 0
}

// Requested reports whether a request was sent to the server of the page.
func (f Fate) Requested() bool {
	switch f {
	case Disallowed, RobotsUnreachable, Unwanted, HostFull, QueueFull, Interrupted, BadURL, UnknownHost,
		Unresolved, BlockedAddress:
		return false
	}
	return true
}

// Page reports whether the archive got a page.
func (f Fate) Page() bool {
	return f == Fetched || f == HardlyChanged || f == Cut || f == Undecoded
}

// retries are the delays before the first retry of a failed page.
var retries = map[Fate]time.Duration{
	TooManyRedirects: 24 * time.Hour,
	ClientError:      24 * time.Hour,
	ServerError:      time.Hour,
	SentAway:         time.Minute, // unless the server says when
	Walled:           24 * time.Hour,
	OddStatus:        24 * time.Hour,
	NoSitemap:        24 * time.Hour,

	BadURL:         7 * 24 * time.Hour,
	UnknownHost:    24 * time.Hour,
	Unresolved:     time.Hour,
	BlockedAddress: 7 * 24 * time.Hour,
	Refused:        time.Hour,
	TurnedAway:     time.Hour,
	TimedOut:       time.Hour,
	TLSFailed:      24 * time.Hour,
	NotHTTP:        24 * time.Hour,
	Oversized:      24 * time.Hour,
	Unstored:       time.Hour,

	Disallowed:        7 * 24 * time.Hour,
	ForSale:           7 * 24 * time.Hour,
	RobotsUnreachable: time.Hour, // unless the time of the next request for the file is known
	Unwanted:          7 * 24 * time.Hour,
	QueueFull:         time.Hour,
	HostFull:          365 * 24 * time.Hour,
}

// Retry returns the delay before the first retry. It is 0 if the visit succeeded, since the page's
// history then decides, and for [Interrupted], which remains due.
func (f Fate) Retry() time.Duration { return retries[f] }
