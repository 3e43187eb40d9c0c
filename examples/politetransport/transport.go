// Package politetransport makes a crawler polite that was not, with two layers over an
// http.RoundTripper: robotshttp for whether a page may be fetched, schedulerhttp for when. Whatever
// makes its requests with net/http can have it, such as colly:
//
//	transport := politetransport.New("mybot", http.DefaultTransport, scheduler.Options{})
//	c := colly.NewCollector(colly.UserAgent("mybot/1.0 (+https://me.example/bot)"), colly.Async())
//	c.WithTransport(transport)
//	c.SetRequestTimeout(0) // or requests that wait for their turn fail after 10 seconds
//
// A request waits for its turn in RoundTrip, so the Timeout of a client would count the waiting;
// set those of the [http.Transport] instead. It is an example: copy it, and change what does not
// suit you.
package politetransport

import (
	"net/http"

	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// New returns a transport for a crawler that robots.txt calls agent. The error of a request that
// robots.txt forbids wraps [robots.ErrDisallowed].
func New(agent string, under http.RoundTripper, o scheduler.Options) http.RoundTripper {
	polite := schedulerhttp.NewTransport(under, o)
	return robotshttp.NewTransport(polite, robots.Options{Agent: agent})
}
