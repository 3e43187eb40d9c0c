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

// kinds describe the codes, and have the delays before the first retry of a failed page.
var kinds = map[Fate]struct {
	says  string
	retry time.Duration
}{
	Fetched:          {"fetched", 0},
	Unchanged:        {"unchanged since the last visit", 0},
	HardlyChanged:    {"hardly changed since the last visit", 0},
	Cut:              {"fetched in part (over a limit, or the connection broke)", 0},
	Undecoded:        {"fetched, but its content coding is unknown or corrupt", 0},
	Redirected:       {"redirected", 0},
	TooManyRedirects: {"redirected too often", 24 * time.Hour},
	ClientError:      {"HTTP 4xx", 24 * time.Hour},
	ServerError:      {"HTTP 5xx", time.Hour},
	SentAway:         {"told to come back later (HTTP 429 or 503)", time.Minute}, // unless the server says when
	Walled:           {"a bot wall's challenge in place of the page", 24 * time.Hour},
	OddStatus:        {"HTTP status without a page", 24 * time.Hour},
	Listed:           {"sitemap read", 0},
	NoSitemap:        {"listed as a sitemap, but is not one", 24 * time.Hour},

	BadURL:         {"URL that cannot be requested", 7 * 24 * time.Hour},
	UnknownHost:    {"unknown host", 24 * time.Hour},
	Unresolved:     {"no answer from the host's name servers", time.Hour},
	BlockedAddress: {"address out of bounds (private, loopback or reserved)", 7 * 24 * time.Hour},
	Refused:        {"connection refused or broken", time.Hour},
	TurnedAway:     {"each of several attempts turned away", time.Hour},
	TimedOut:       {"timed out", time.Hour},
	TLSFailed:      {"TLS failed", 24 * time.Hour},
	NotHTTP:        {"response is not HTTP", 24 * time.Hour},
	Oversized:      {"response header over the limit", 24 * time.Hour},

	Interrupted: {"interrupted", 0},

	Disallowed:        {"disallowed by robots.txt", 7 * 24 * time.Hour},
	ForSale:           {"the site demands a license or a payment", 7 * 24 * time.Hour},
	RobotsUnreachable: {"robots.txt unreachable, so nothing is allowed", time.Hour}, // unless it is known when the file is requested again
	Unwanted:          {"no longer wanted", 7 * 24 * time.Hour},
	QueueFull:         {"queue full", time.Hour},
	HostFull:          {"page limit of the host reached", 365 * 24 * time.Hour},
	Unstored:          {"fetched, but the archive could not take it", time.Hour},
	LeftOver:          {"left in the queue", 0},
}

// String returns a description of the fate.
func (f Fate) String() string {
	if kind, known := kinds[f]; known {
		return kind.says
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

// Retry returns the delay before the first retry. It is 0 if the visit succeeded, since the page's
// history then decides, and for [Interrupted], which remains due.
func (f Fate) Retry() time.Duration { return kinds[f].retry }
