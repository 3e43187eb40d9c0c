package robots

import (
	"math"
	"net/http"
	"time"
)

// Options configures a [Cache]. The zero Options follows RFC 9309.
type Options struct {
	// Agent is the crawler whose rules are returned: a product token, or a whole User-Agent
	// header that begins with one. Requests for robots.txt send it as their User-Agent.
	// "" means a crawler that no group names, and net/http's own User-Agent.
	Agent string

	// Client makes the requests of Allowed and Load. Only its Transport and its Timeout, per hop,
	// are used: redirects follow the rules of the RFC, and no cookies are sent. The Timeout starts
	// anew after each wait in package schedulerhttp. nil means net/http's default transport and 30
	// seconds.
	Client *http.Client

	// MaxBytes is the approximate bound on the memory of the cache, in bytes. The least recently
	// used hosts are evicted to stay within it, those that failed after the others. 0 means 64 MiB,
	// negative means unlimited.
	MaxBytes int

	// MinTTL and MaxTTL bound how long a response is valid, whatever its header says. 0 means 5
	// minutes and 24 hours. It is valid twice as long as the one before if it says the same, and as long
	// as its Crawl-delay and MinTTL in any case: so there are turns for pages, too, if a host has few.
	MinTTL, MaxTTL time.Duration

	// Retry is how long to wait after a failure. It doubles with each further failure, up to
	// MaxRetry. A host may ask for more by Retry-After, up to a day. 0 means 5 minutes and 1 hour.
	// If a Load could not follow a redirect, it is not asked for again for MaxRetry.
	Retry, MaxRetry time.Duration

	// Patience is how long the response to a request may take. After that the request counts as
	// lost, and Lookup returns it again. 0 means 1 hour; negative means forever, for callers that
	// never lose a request.
	Patience time.Duration
}

// longestWait caps the Retry-After of a host.
const longestWait = 24 * time.Hour

func (o Options) withDefaults() Options {
	setDefault(&o.MaxBytes, 64<<20)
	setDefault(&o.MinTTL, 5*time.Minute)
	setDefault(&o.MaxTTL, 24*time.Hour)
	setDefault(&o.Retry, 5*time.Minute)
	setDefault(&o.MaxRetry, time.Hour)
	setDefault(&o.Patience, time.Hour)
	if o.MaxBytes < 0 {
		o.MaxBytes = math.MaxInt
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 30 * time.Second}
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}
