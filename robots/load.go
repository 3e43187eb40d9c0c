package robots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/cause"
	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/internal/neterr"
	"github.com/spinneret-go/spinneret/robots/internal/rep"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// Allowed reports whether a URL may be fetched. If the host's robots.txt is not known, it is
// fetched first: see [Cache.Load], whose errors it returns.
func (c *Cache) Allowed(ctx context.Context, url string) (bool, error) {
	rules, err := c.Load(ctx, url)
	return rules.Allowed(url), err
}

// Load returns the rules for a URL. If they are not known, it fetches the robots.txt with
// Options.Client. If several goroutines call Load for one host, one of them fetches under its own
// ctx and the others wait, and get its result. If that ctx ends, or its deadline is too early for a
// layer below, another call takes over, unless the host has kept silent for five seconds until the
// deadline: then it is unreachable.
//
// An unreachable host is not an error: its rules forbid everything, or are those of the last copy.
// The error is ctx's, [robotstxt.ErrLocate], or the client's if the fault is local: no request was
// sent, or the network, resolver or proxy of this machine failed, which says nothing about the
// host. But what a layer below refuses after a redirect is the host's failure: where it sends its
// visitors is its own doing. So is what a proxy answers in its place, which net/http does not tell
// apart, unless it wants a password before it connects. Rules returned with an error forbid everything.
func (c *Cache) Load(ctx context.Context, url string) (robotstxt.Rules, error) {
	origin, err := rep.Origin(url)
	if err != nil {
		return robotstxt.Rules{}, err
	}
	for {
		answer, flight, landed := c.join(origin)
		switch {
		case answer.Known:
			return answer.Rules, nil
		case answer.Request != nil:
			answer, err := c.fly(ctx, *answer.Request)
			if err != nil || answer.Known {
				return answer.Rules, err
			}
		default:
			if err := c.wait(ctx, flight, landed); err != nil {
				return robotstxt.Rules{}, err
			}
		}
	}
}

// join is Lookup for callers that wait. Such a caller has at most one flight and never loses it, so
// ErrFull does not apply. It also returns the landing to wait for.
func (c *Cache) join(origin string) (Answer, *host, *landing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer, h := c.ask(origin, time.Now())
	if h.landed == nil && answer == (Answer{}) {
		h.landed = &landing{done: make(chan struct{})}
	}
	if !answer.Known { // a file above the bound stays as long as nothing else needs room
		c.evict(nil)
	}
	return answer, h, h.landed
}

// fly makes a request and follows its redirects. The flight ends in any case, even if the client
// panics.
func (c *Cache) fly(ctx context.Context, req Request) (answer Answer, err error) {
	defer func() {
		if ownFault(ctx, err) {
			c.abandon(req, true, nil) // other calls go on
		} else {
			c.abandon(req, true, err)
		}
	}()
	for {
		resp, err := c.fetch(ctx, req)
		if resp == nil {
			return Answer{}, err
		}
		answer, failed := c.Store(req, *resp, time.Now())
		if err = cmp.Or(err, failed); err != nil {
			return Answer{}, err
		}
		if answer.Request == nil {
			return answer, nil
		}
		req = *answer.Request
	}
}

// ownFault reports whether a request has failed because of its caller's context, which is not that
// of the others who wait. A layer below may find a deadline too early before it has passed.
func ownFault(ctx context.Context, err error) bool {
	_, limited := ctx.Deadline()
	return cause.Of(ctx) != nil || limited && errors.Is(err, context.DeadlineExceeded)
}

// wait returns when the request for a host has landed, with its error, or has taken too long.
func (c *Cache) wait(ctx context.Context, h *host, landed *landing) error {
	if yield, ok := ctx.Value(httpctx.Yield{}).(func() (resume func())); ok {
		defer yield()() // whoever makes the request may need what this caller holds
	}
	defer pause(ctx)()
	var lost <-chan time.Time // never, if there is no limit, or if a Load makes the request
	c.mu.Lock()
	left, limited := c.options.Patience-time.Since(h.began), h.place != nil && c.options.Patience >= 0
	c.mu.Unlock()
	if limited {
		timer := time.NewTimer(left)
		defer timer.Stop()
		lost = timer.C
	}
	select {
	case <-ctx.Done():
		return cause.Of(ctx)
	case <-landed.done:
		return landed.err
	case <-lost:
	}
	return nil
}

// bodyTime limits how long the body of a robots.txt may take after its header; an http.Transport has
// no such limit.
const bodyTime = 30 * time.Second

// drainTime is the same for a redirect or an error, whose body says nothing.
const drainTime = time.Second

// hangTime is how long a host must have kept silent for it to be unreachable when the caller's
// deadline passes. Otherwise a host that never answers would be asked again for each page, if the
// caller has less time than the client.
const hangTime = 5 * time.Second

// fetch makes one request. An error is a local failure or the end of ctx; with a Response, the host
// has failed as well.
func (c *Cache) fetch(ctx context.Context, req Request) (*Response, error) {
	inner, stop := limit(ctx, c.options.Client.Timeout)
	defer stop()
	var a attempt
	r, err := http.NewRequestWithContext(a.trace(inner), http.MethodGet, req.URL, nil)
	if err != nil {
		return &Response{Reason: err.Error()}, nil // a redirect to what is not a URL
	}
	setField(r.Header, "User-Agent", c.options.Agent)
	setField(r.Header, "If-None-Match", req.ETag)
	setField(r.Header, "If-Modified-Since", req.LastModified)
	resp, err := c.transport.RoundTrip(r)
	late := inner.Err() != nil && cause.Of(ctx) == nil && a.reaches() // in whatever words err says so
	most := bodyTime
	if err == nil && resp != nil && !found(resp.StatusCode) {
		most = drainTime
	}
	slow := time.AfterFunc(most, func() { inner.end(context.DeadlineExceeded) })
	defer slow.Stop()
	response, failed := readResponse(resp, err)
	ended := cause.Of(ctx)
	switch {
	case ended != nil && ctx.Err() == context.DeadlineExceeded && a.silent() >= hangTime:
		return &Response{Reason: "no answer before the deadline"}, ended
	case err != nil && !late && a.isLocal(err, req.Hop), err == nil && neterr.Machine(failed):
		return nil, &loadError{req.URL, ended, failed}
	case ended != nil:
		return nil, ended
	}
	return &response, nil
}

// An attempt is what httptrace tells of a request.
type attempt struct {
	tried atomic.Bool               // a layer below tries to reach the host now
	since atomic.Pointer[time.Time] // when it began to; nil before
}

// trace returns the context of the request. A host with many addresses that do not answer is silent
// since the first of them was tried.
func (a *attempt) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			a.since.Store(nil)
			a.tried.Store(true)
		},
		ConnectStart: func(string, string) {
			now := time.Now()
			a.since.CompareAndSwap(nil, &now)
		},
		GotConn: func(httptrace.GotConnInfo) { a.tried.Store(false) },
		WroteHeaders: func() {
			now := time.Now()
			a.since.Store(&now)
			a.tried.Store(true)
		},
	})
}

// reaches reports whether the host is what the request waits for: its name has been looked up.
func (a *attempt) reaches() bool { return a.tried.Load() && a.since.Load() != nil }

// silent returns for how long the host has not answered.
func (a *attempt) silent() time.Duration {
	if since := a.since.Load(); since != nil && a.tried.Load() {
		return time.Since(*since)
	}
	return 0
}

// isLocal reports whether an error is no failure of the host: this machine, its resolver or its proxy
// has failed, or nothing was sent. If such a failure were blamed on the host, every host requested at
// that time would become off limits.
//
// After a redirect, what a layer below refuses is the host's failure nevertheless, such as a private
// address: it would refuse that for each page. A deadline of ctx that it finds too early is not.
func (a *attempt) isLocal(err error, hop int) bool {
	var dns *net.DNSError
	switch first := hop == 0; {
	case neterr.Machine(err), neterr.Local(err) && (first || errors.Is(err, context.DeadlineExceeded)):
		return true // first, since the name that is not found may be the proxy's
	case errors.As(err, &dns):
		return !dns.IsNotFound
	default:
		return first && !a.tried.Load() && !neterr.Network(err)
	}
}

// loadError is a local failure. An http.Client asks the error itself whether it is a timeout, not
// those that it wraps.
type loadError struct {
	url   string
	ended error // of the caller's context; nil if it has not ended
	cause error
}

func (e *loadError) Error() string {
	return fmt.Sprintf("robots: fetch %s: %v", e.url, e.cause)
}

func (e *loadError) Unwrap() []error {
	if e.ended == nil {
		return []error{e.cause}
	}
	return []error{e.ended, e.cause}
}

// Local tells the layers above that the host has not failed.
func (e *loadError) Local() bool { return true }

func (e *loadError) Timeout() bool {
	return errors.Is(e.ended, context.DeadlineExceeded) || isTimeout(e.cause)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func setField(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}
