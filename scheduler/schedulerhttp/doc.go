// Package schedulerhttp makes HTTP clients polite: requests wait until their host may be visited.
//
//	client := &http.Client{Transport: schedulerhttp.NewTransport(nil, scheduler.Options{})}
//	resp, err := client.Get("https://www.example.org/") // 5 s or more after the last one there
//
// A [Transport] works below any client of net/http, and so below colly, resty and gofeed, and above any
// RoundTripper that sends a request once. For crawlers with a queue, [Outcome] converts a response for the
// scheduler, and [Over] makes other requests wait for the same hosts.
//
// # What it promises
//
// At most one request per host and per address is in flight, unless Options allow more. A request ends when the
// response body is closed or read to its end, or with a switch of protocols (101). So close every body: one left
// open blocks its host until Options.LeaseTimeout. Two requests to one host or address are written at least the
// delay apart, counted from the first byte of the response. Retry-After, 429, 503, failures and slow responses
// lengthen the delay. Failures of an unusual port that has never answered do not, since anybody can link to it.
//
// The address of a host is learned from the connection. If that address may not be visited yet, the
// request is not written, and waits for the address as well: see [Transport.SetHost]. Behind an HTTP
// proxy addresses are unknown, and only the delay of the host applies.
//
// Put layers that make several requests of one (redirects, retries, challenges) above a Transport, so that each
// request waits. Below it, such a layer gets an error for all but the first, and is called again with the next
// lease. A retry then succeeds, but not an exchange that needs two responses, or both at once over HTTP/2. A layer
// below that hides the error behind a response of its own gets the host blamed. All layers must keep the context.
//
// # Timeouts
//
// Requests wait in RoundTrip, so the Timeout of an [http.Client] and the deadline of a context include the wait.
// If the host cannot be visited before the deadline, the request fails at once, with an error that wraps
// context.DeadlineExceeded and says when it can be. If the deadline passes while the host is to answer, that is
// its failure, unless the wait left it less than 5 s, and less than the wait itself. A deadline that passes
// earlier, on the way to a proxy, or within the body is not, nor is a cancellation. The timeouts of an
// [http.Transport] exclude the wait.
//
// # Crawl-delay
//
// A layer above that reads robots.txt passes the Crawl-delay of a request's host in the request's context,
// under the key [CrawlDelay], as a time.Duration. Zero cancels an earlier one of the same scheme, name (as
// sent in Host) and port; the longest of a host counts. Package robots/robotshttp does this.
package schedulerhttp
