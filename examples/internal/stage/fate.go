package stage

import "time"

// A Fate is what became of one URL that was admitted to the crawl. Each ends with exactly one.
type Fate string

// The fates. Those of a URL that was asked for say what came back; the others say why it was not.
const (
	Fetched          Fate = "fetched"
	Unchanged        Fate = "unchanged since the last visit"
	HardlyChanged    Fate = "hardly changed since the last visit"
	Cut              Fate = "fetched in part (over a limit, or the connection broke)"
	Redirected       Fate = "redirected"
	TooManyRedirects Fate = "redirected too often"
	ClientError      Fate = "HTTP 4xx"
	ServerError      Fate = "HTTP 5xx"
	OddStatus        Fate = "HTTP status without a page"
	Listed           Fate = "sitemap read"
	NoSitemap        Fate = "named as a sitemap, but is none"

	UnknownHost    Fate = "unknown host"
	BlockedAddress Fate = "address out of bounds (private, loopback or reserved)"
	Refused        Fate = "connection refused or broken"
	TimedOut       Fate = "timed out"
	TLSFailed      Fate = "TLS failed"
	NotHTTP        Fate = "answer is no HTTP"
	Oversized      Fate = "answer's header over the limit"
	Interrupted    Fate = "interrupted"

	Disallowed        Fate = "disallowed by robots.txt"
	RobotsUnreachable Fate = "robots.txt unreachable, so nothing is allowed"
	Unwanted          Fate = "no longer wanted"
	QueueFull         Fate = "queue full"
	HostFull          Fate = "page limit of the host reached"
	Unstored          Fate = "fetched, but the archive could not take it"
	LeftOver          Fate = "left in the queue"
)

// Page says whether the archive got a page.
func (f Fate) Page() bool { return f == Fetched || f == HardlyChanged || f == Cut }

// retries are after how long a page is tried again that brought nothing, the first time.
var retries = map[Fate]time.Duration{
	TooManyRedirects: 24 * time.Hour,
	ClientError:      24 * time.Hour,
	ServerError:      time.Hour,
	OddStatus:        24 * time.Hour,
	NoSitemap:        24 * time.Hour,

	UnknownHost:    24 * time.Hour,
	BlockedAddress: 7 * 24 * time.Hour,
	Refused:        time.Hour,
	TimedOut:       time.Hour,
	TLSFailed:      24 * time.Hour,
	NotHTTP:        24 * time.Hour,
	Oversized:      24 * time.Hour,
	Unstored:       time.Hour,

	Disallowed:        7 * 24 * time.Hour,
	RobotsUnreachable: 24 * time.Hour,
	Unwanted:          7 * 24 * time.Hour,
	QueueFull:         time.Hour,
	HostFull:          365 * 24 * time.Hour,
}

// Retry returns after how long to try again what ended so, the first time. It is 0 if it brought
// what it should: then it depends on the page when to come back.
func (f Fate) Retry() time.Duration { return retries[f] }
