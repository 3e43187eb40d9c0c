package stage

// A Fate is what became of one URL that was admitted to the crawl. Each ends with exactly one.
type Fate string

// The fates. Those of a URL that was asked for say what came back; the others say why it was not.
const (
	Fetched          Fate = "fetched"
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
	QueueFull         Fate = "queue full"
	HostFull          Fate = "page limit of the host reached"
	Unstored          Fate = "fetched, but the archive could not take it"
	LeftOver          Fate = "left in the queue"
)

// Page says whether the archive got a page.
func (f Fate) Page() bool { return f == Fetched || f == Cut }
