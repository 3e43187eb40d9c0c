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
	"strings"
	"sync"
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
	under   http.RoundTripper
	rules   *robots.Cache
	queue   *scheduler.Scheduler[waiting]
	open    context.Context // ends with Close
	stop    context.CancelFunc
	calling sync.WaitGroup // callUp runs
}

// waiting is a request whose turn has not come.
type waiting struct {
	ctx  context.Context
	turn chan *scheduler.Lease[waiting] // without room: what was sent was taken
}

// New returns a Transport for a crawler that robots.txt calls agent. It keeps one goroutine running
// until it is closed.
func New(agent string, under http.RoundTripper, o scheduler.Options) *Transport {
	t := &Transport{
		under: under,
		rules: robots.NewCache(robots.Options{Agent: agent}),
		queue: scheduler.New[waiting](o),
	}
	t.open, t.stop = context.WithCancel(context.Background())
	t.queue.Producer() // requests may come at any time
	t.calling.Go(t.callUp)
	return t
}

// Close ends the waiting of all requests: they fail with scheduler.ErrClosed, as later ones do. Those
// under way go on. A second Close does nothing.
func (t *Transport) Close() {
	t.stop()
	t.queue.Close()
	t.calling.Wait()
}

// callUp tells each request when its turn has come. A turn that nobody takes any more is given back:
// else its host would never have another one.
func (t *Transport) callUp() {
	for {
		lease, err := t.queue.Next(t.open)
		if err != nil {
			return
		}
		w := lease.Item()
		select {
		case w.turn <- lease:
		case <-w.ctx.Done():
			lease.Done(scheduler.Outcome{Skipped: true})
		case <-t.open.Done():
			lease.Done(scheduler.Outcome{Skipped: true})
		}
	}
}

// RoundTrip makes a request in its turn, if robots.txt allows it. The error wraps [ErrDisallowed] if
// it does not.
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
	if delay, asked := rules.Delay(); asked {
		t.queue.SetDelay(hostOf(r), delay)
	}
	return t.inTurn(r)
}

// hostOf returns the host of a request in one of the spellings that its name may have.
func hostOf(r *http.Request) string {
	return strings.TrimSuffix(strings.ToLower(r.URL.Hostname()), ".")
}

// refuse ends a request that is not made. Its body is closed, as a RoundTripper owes.
func refuse(r *http.Request, why error) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, why
}

// inTurn makes a request when its host may be asked.
func (t *Transport) inTurn(r *http.Request) (*http.Response, error) {
	w := waiting{r.Context(), make(chan *scheduler.Lease[waiting])}
	if err := t.queue.Add(scheduler.Task[waiting]{Host: hostOf(r), Item: w}); err != nil {
		return refuse(r, err)
	}
	var lease *scheduler.Lease[waiting]
	select {
	case lease = <-w.turn:
	case <-r.Context().Done():
		return refuse(r, r.Context().Err())
	case <-t.open.Done():
		return refuse(r, scheduler.ErrClosed)
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
