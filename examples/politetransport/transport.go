// Package politetransport makes a crawler polite that was not: an http.RoundTripper out of two
// rooms, robots for whether a page may be fetched and scheduler for when. Whatever makes its
// requests with net/http can have it, such as colly:
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
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// ErrDisallowed is wrapped by the error of a request that robots.txt forbids.
var ErrDisallowed = errors.New("disallowed by robots.txt")

// maxRobots is how much of a robots.txt is read: the least that RFC 9309 asks for.
const maxRobots = 500 << 10

// A Transport makes requests of another one when their host may be asked. Its methods are safe for
// concurrent use.
type Transport struct {
	under *schedulerhttp.Transport
	rules *robots.Cache
}

// New returns a Transport for a crawler that robots.txt calls agent.
func New(agent string, under http.RoundTripper, o scheduler.Options) *Transport {
	return &Transport{
		under: schedulerhttp.NewTransport(under, o),
		rules: robots.NewCache(robots.Options{Agent: agent}),
	}
}

// RoundTrip makes a request in its turn, if robots.txt allows it. The error wraps [ErrDisallowed]
// if it does not.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	rules, err := t.rules.Get(r.Context(), r.URL.String(), func(
		ctx context.Context, req robots.Request,
	) (robots.Response, error) {
		return t.fetchRules(ctx, r, req)
	})
	if err != nil {
		return refuse(r, err)
	}
	if verdict := rules.Match(r.URL.String()); !verdict.Allowed {
		return refuse(r, fmt.Errorf("%s: %w, line %d", r.URL, ErrDisallowed, verdict.Line))
	}
	delay, _ := rules.Delay()
	ctx := context.WithValue(r.Context(), struct{ RobotsCrawlDelay struct{} }{}, delay)
	return t.under.RoundTrip(r.WithContext(ctx))
}

// refuse ends a request that is not made. Its body is closed, as a RoundTripper owes.
func refuse(r *http.Request, why error) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, why
}

// fetchRules makes a request for a robots.txt, in its turn like any other.
func (t *Transport) fetchRules(
	ctx context.Context, on *http.Request, req robots.Request,
) (got robots.Response, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, req.URL, nil)
	if err != nil {
		return got, err
	}
	r.Header.Set("User-Agent", on.UserAgent())
	resp, err := t.under.RoundTrip(r)
	if err != nil {
		return got, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRobots))
	return robots.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, err
}
