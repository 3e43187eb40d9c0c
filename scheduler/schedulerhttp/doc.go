// Package schedulerhttp makes HTTP clients polite: requests wait for their host's turn.
//
//	client := &http.Client{Transport: schedulerhttp.NewTransport(nil, scheduler.Options{})}
//	resp, err := client.Get("https://www.example.org/") // 5 s or more after the last one there
//
// A [Transport] works below any client of net/http, and so below colly, resty and gofeed, and above
// any other RoundTripper. For crawlers that have a queue, [Outcome] tells a scheduler what it has
// to know about a response.
//
// # What it promises
//
// At most one request per host and per address is in flight, or as many as Options say. It ends
// when the body of the response is closed or read to its end, so close every body: one that is left
// open blocks its host until Options.LeaseTimeout. Two requests to one host or address are written
// at least the delay apart, counted from the first byte of the response. 429, 503, failures and
// slow responses make the delay longer, and Retry-After is obeyed.
//
// The address of a host is learned from the connection. A request that turns out to go to an
// address that has to be left alone is not written: it waits for the address, too. Behind an HTTP
// proxy, addresses are not known, and only the delay of the host holds.
//
// # Timeouts
//
// The waiting takes place in RoundTrip, so the Timeout of an [http.Client] and the deadline of a
// request's context include it. If the host cannot be visited before the deadline, the request
// fails at once, with an error that wraps context.DeadlineExceeded and says when it can be visited.
// To bound the response time alone, set ResponseHeaderTimeout and the like of the [http.Transport]
// below.
//
// # Crawl-delay
//
// A layer above that reads robots.txt passes the Crawl-delay of a request's host in the request's
// context, under the key struct{ RobotsCrawlDelay struct{} }{}, as a time.Duration. Zero takes back
// an earlier one. Package robots/robotshttp does so.
package schedulerhttp
