// Package politetransport makes a crawler polite that was not: an http.RoundTripper out of two rooms,
// robots for whether a page may be fetched and scheduler for when. Whatever makes its requests with
// net/http can have it, such as colly:
//
//	transport := politetransport.New("mybot", http.DefaultTransport, scheduler.Options{})
//	defer transport.Close()
//	c := colly.NewCollector(colly.UserAgent("mybot/1.0 (+https://me.example/bot)"), colly.Async())
//	c.WithTransport(transport)
//	c.SetRequestTimeout(0) // or requests that wait for their turn fail after 10 seconds
//
// A request waits for its turn in RoundTrip, so the Timeout of a client would count the waiting; set
// those of the [http.Transport] instead. It is an example: copy it, and change what does not suit you.
package politetransport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/scheduler"
)

// ErrDisallowed is wrapped by the error of a request that robots.txt forbids.
var ErrDisallowed = errors.New("disallowed by robots.txt")

// maxRobots is how much of a robots.txt is read: the least that RFC 9309 asks for.
const maxRobots = 500 << 10

// A Transport makes requests of another one when their host may be asked. Its methods are safe for
// concurrent use.
type Transport struct {
	under http.RoundTripper
	rules *robots.Cache
	queue *scheduler.Scheduler[waiting]
	stop  context.CancelFunc
}

// waiting is a request whose turn has not come.
type waiting struct {
	ctx  context.Context
	turn chan *scheduler.Lease[waiting] // has room for one
}

// New returns a Transport for a crawler that robots.txt calls agent. Close it when it is no longer
// needed.
func New(agent string, under http.RoundTripper, o scheduler.Options) *Transport {
	ctx, stop := context.WithCancel(context.Background())
	t := &Transport{
		under: under,
		rules: robots.NewCache(robots.Options{Agent: agent}),
		queue: scheduler.New[waiting](o),
		stop:  stop,
	}
	t.queue.Producer() // requests may come at any time
	go t.callUp(ctx)
	return t
}

// Close ends the waiting of all requests.
func (t *Transport) Close() {
	t.stop()
	t.queue.Close()
}

// callUp tells each request when its turn has come.
func (t *Transport) callUp(ctx context.Context) {
	for {
		lease, err := t.queue.Next(ctx)
		if err != nil {
			return
		}
		w := lease.Item()
		if w.ctx.Err() != nil { // nobody waits any more
			lease.Done(scheduler.Outcome{Skipped: true})
			continue
		}
		w.turn <- lease
	}
}

// RoundTrip makes a request in its turn, if robots.txt allows it.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	rules, err := t.rules.Get(r.Context(), r.URL.String(), func(
		ctx context.Context, req robots.Request,
	) (robots.Response, error) {
		return t.fetchRules(ctx, r, req)
	})
	if err != nil {
		return nil, err
	}
	if verdict := rules.Match(r.URL.String()); !verdict.Allowed {
		return nil, fmt.Errorf("%s: %w, line %d", r.URL, ErrDisallowed, verdict.Line)
	}
	if delay, asked := rules.Delay(); asked {
		t.queue.SetDelay(r.URL.Hostname(), delay)
	}
	return t.inTurn(r)
}

// inTurn makes a request when its host may be asked.
func (t *Transport) inTurn(r *http.Request) (*http.Response, error) {
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	w := waiting{ctx, make(chan *scheduler.Lease[waiting], 1)}
	if err := t.queue.Add(scheduler.Task[waiting]{Host: r.URL.Hostname(), Item: w}); err != nil {
		return nil, err
	}
	var lease *scheduler.Lease[waiting]
	select {
	case lease = <-w.turn:
	case <-r.Context().Done():
		leave()
		select {
		case lease := <-w.turn: // it came at the same moment
			lease.Done(scheduler.Outcome{Skipped: true})
		default:
		}
		return nil, r.Context().Err()
	}
	start := time.Now()
	resp, err := t.under.RoundTrip(r)
	outcome := scheduler.Outcome{Start: time.Now(), Took: time.Since(start), Failed: err != nil}
	if err == nil {
		outcome.Status = resp.StatusCode
		outcome.RetryAfter = retryAfter(resp.Header, time.Now())
	}
	lease.Done(outcome)
	return resp, err
}

// retryAfter returns when a server says to come back, or the zero time.
func retryAfter(h http.Header, now time.Time) time.Time {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return now.Add(time.Duration(seconds) * time.Second)
	}
	at, _ := http.ParseTime(value)
	return at
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
	resp, err := t.inTurn(r)
	if err != nil {
		return got, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRobots))
	return robots.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, err
}
