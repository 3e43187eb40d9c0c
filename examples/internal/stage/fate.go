package stage

import "time"

// A Fate is the one recorded outcome of a visit: what a server answered, or why it was not asked.
type Fate string

// The fates. Those of a URL that was requested say what came back; the others say why it was not.
const (
	Fetched          Fate = "fetched"
	Unchanged        Fate = "unchanged since the last visit"
	HardlyChanged    Fate = "hardly changed since the last visit"
	Cut              Fate = "fetched in part (over a limit, or the connection broke)"
	Undecoded        Fate = "fetched, but its content coding is unknown or corrupt"
	Redirected       Fate = "redirected"
	TooManyRedirects Fate = "redirected too often"
	ClientError      Fate = "HTTP 4xx"
	ServerError      Fate = "HTTP 5xx"
	SentAway         Fate = "told to come back later (HTTP 429 or 503)"
	OddStatus        Fate = "HTTP status without a page"
	Listed           Fate = "sitemap read"
	NoSitemap        Fate = "named as a sitemap, but is none"

	BadURL         Fate = "URL that cannot be requested"
	UnknownHost    Fate = "unknown host"
	Unresolved     Fate = "no answer from the host's name servers"
	BlockedAddress Fate = "address out of bounds (private, loopback or reserved)"
	Refused        Fate = "connection refused or broken"
	TurnedAway     Fate = "each of several attempts turned away"
	TimedOut       Fate = "timed out"
	TLSFailed      Fate = "TLS failed"
	NotHTTP        Fate = "answer is no HTTP"
	Oversized      Fate = "answer's header over the limit"

	// Interrupted is a visit that this side broke off: the crawl was told to end, the disk is full,
	// the machine is offline. It says nothing about the server, and the visit is repeated.
	Interrupted Fate = "interrupted"

	Disallowed        Fate = "disallowed by robots.txt"
	RobotsUnreachable Fate = "robots.txt unreachable, so nothing is allowed"
	Unwanted          Fate = "no longer wanted"
	QueueFull         Fate = "queue full"
	HostFull          Fate = "page limit of the host reached"
	Unstored          Fate = "fetched, but the archive could not take it"
	LeftOver          Fate = "left in the queue"
)

// Page reports whether the archive got a page.
func (f Fate) Page() bool {
	return f == Fetched || f == HardlyChanged || f == Cut || f == Undecoded
}

// retries are the delays before a page that brought nothing is tried again, the first time.
var retries = map[Fate]time.Duration{
	TooManyRedirects: 24 * time.Hour,
	ClientError:      24 * time.Hour,
	ServerError:      time.Hour,
	SentAway:         time.Minute, // unless the server says when
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
	RobotsUnreachable: time.Hour, // unless it is known when the file is asked for again
	Unwanted:          7 * 24 * time.Hour,
	QueueFull:         time.Hour,
	HostFull:          365 * 24 * time.Hour,
}

// Retry returns the delay before the next try, the first time. It is 0 if the visit brought what it
// should, and then the page's history decides; and for [Interrupted], which is due as before.
func (f Fate) Retry() time.Duration { return retries[f] }
