package webtest

import (
	"net/netip"
	"time"
)

// Traits says how one host behaves. The zero Traits is a well-behaved host: fast, unchanging, with
// a robots.txt that disallows /private/.
type Traits struct {
	Pages     int      // pages of this host; 0 means Options.Pages
	Robots    Robots   // what /robots.txt answers
	Sitemap   Sitemap  // what /robots.txt names
	Latency   Latency  // wait before every answer
	Change    Change   // how pages change over time
	Throttle  Throttle // some requests are turned away
	Redirects float64  // share of the links to own pages that lead through a 301; 0 means none
	Traps     Trap     // hostile paths, linked from "/"
	Gzip      bool     // compress pages for clients that accept it
	Refuse    bool     // the host has an address of its own where nobody listens

	// Lookup answers the nth look-up of the host's name through [Web.Resolve], counted from 1: with
	// other addresses, with an error, or late. If it is nil or returns nil twice, the answer is the
	// host's address. It must be safe for concurrent use.
	Lookup func(n int) ([]netip.Addr, error)
}

// Mixed is an [Options].Traits that gives each host, by its index, another mix of traits: most ways
// of answering /robots.txt, crawl delays of 0.1 s, compressed pages, redirects, varying latency,
// and one host that refuses connections. A crawl of such a web ends: nothing in it is endless.
func Mixed(host int) Traits {
	modes := [...]RobotsMode{
		RobotsRules, RobotsMissing, RobotsForbidden, RobotsError, RobotsRedirect, RobotsRedirectHost,
		RobotsLoop, RobotsHuge, RobotsEmpty,
	}
	return Traits{
		Robots: Robots{
			Mode:       modes[host%len(modes)],
			CrawlDelay: time.Duration(host%2) * 100 * time.Millisecond,
		},
		Latency:   Latency{Median: time.Millisecond, Sigma: 1},
		Gzip:      host%3 == 0,
		Redirects: 0.2,
		Refuse:    host == 10,
	}
}

// RobotsMode is one way of answering /robots.txt. Each constant says what follows from it by RFC
// 9309, which is also what [Web.Reachable] assumes.
type RobotsMode uint8

// The ways of answering /robots.txt.
const (
	RobotsRules        RobotsMode = iota // a valid file: the rules hold
	RobotsMissing                        // 404: everything is allowed
	RobotsForbidden                      // 403: everything is allowed
	RobotsError                          // 500: nothing is allowed
	RobotsRedirect                       // 302 to /robots-rules.txt: its rules hold
	RobotsRedirectHost                   // 302 to the next host's /robots-rules.txt: they hold
	RobotsLoop                           // 302 to itself, forever: everything is allowed
	RobotsTimeout                        // never answers: nothing is allowed
	RobotsHuge                           // the rules, then 2 MiB of rules about nothing
	RobotsEmpty                          // 200 with an empty body: everything is allowed
)

// Robots describes a host's /robots.txt.
type Robots struct {
	Mode       RobotsMode    // 0 means RobotsRules
	CrawlDelay time.Duration // the Crawl-delay line, in seconds; 0 means no such line

	// Disallow lists disallowed path prefixes besides /private/, without wildcards and not /r/.
	Disallow []string
}

// Latency is the wait before an answer. It depends only on the seed and the URL: a URL is always equally
// slow. The zero Latency means none.
type Latency struct {
	Median    time.Duration // of the log-normal distribution; the wait itself if Sigma is 0
	Sigma     float64       // of the logarithm; 0 means a fixed wait
	Slow      time.Duration // wait of the slow share
	SlowShare float64       // share of the URLs that wait Slow; 0 means none
}

// Change describes how pages change. A change alters text, ETag and Last-Modified, never links.
// Pages also changed before the start of the web. The zero Change means that pages never change.
type Change struct {
	Mean     time.Duration // mean time between changes; 0 means pages never change
	Sigma    float64       // log-normal spread of that mean over pages; 0 means all alike
	Periodic bool          // a change every Mean exactly; false means a Poisson process
}

// Throttle rejects every Every-th request of a host, except for robots.txt. The zero Throttle
// rejects none.
type Throttle struct {
	Every      int           // 1 means every request; 0 means none
	Status     int           // 0 means 429
	RetryAfter time.Duration // the Retry-After header, in seconds; 0 means no such header
}

// Trap is a set of hostile paths of one host. Those in the set are served below /trap/ and linked
// from "/"; the others are 404.
//
//	bit              path                     what a client gets
//	TrapCalendar     /trap/calendar/2026/11   a month that links to the next, forever
//	TrapSession      /trap/session/           every link carries a new session id, forever
//	TrapDuplicate    /trap/dup/KEY            the same bytes under any KEY and query
//	TrapChain        /trap/chain/20           20 redirects, the last to "/"
//	TrapLoop         /trap/loop/a             redirects to loop/b and back
//	TrapAway         /trap/away               redirect to the next host's "/"
//	TrapAway         /trap/away/private       redirect to what the next host's robots.txt disallows
//	TrapNoLocation   /trap/noloc              302 without Location
//	TrapHuge         /trap/huge               64 MiB of HTML
//	TrapEndless      /trap/endless            HTML that never ends
//	TrapDrip         /trap/drip               1 MiB, one byte every 100 ms
//	TrapBomb         /trap/bomb               1 MiB of gzip that unpacks to 1 GiB
//	TrapBroken       /trap/broken/N           broken HTML, case N
//	TrapCharset      /trap/charset/N          odd or wrongly declared charset, case N
//	TrapShort        /trap/short              closes after 1,000 of 100,000 bytes
//	TrapGarbage      /trap/garbage            bytes that are not HTTP
//	TrapHeaders      /trap/headers            header lines without end
//	TrapHang         /trap/hang               accepts, never answers
//	TrapTooMany      /trap/429                429 with Retry-After in seconds
//	TrapUnavailable  /trap/503                503 with Retry-After as a date
//	TrapAddress      /trap/address            a link and a redirect to private addresses
type Trap uint32

// The traps, as in the table above.
const (
	TrapCalendar Trap = 1 << iota
	TrapSession
	TrapDuplicate
	TrapChain
	TrapLoop
	TrapAway
	TrapNoLocation
	TrapHuge
	TrapEndless
	TrapDrip
	TrapBomb
	TrapBroken
	TrapCharset
	TrapShort
	TrapGarbage
	TrapHeaders
	TrapHang
	TrapTooMany
	TrapUnavailable
	TrapAddress

	TrapAll = TrapAddress<<1 - 1 // all of them
)
