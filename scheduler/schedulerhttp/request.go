package schedulerhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spinneret-go/spinneret/internal/httpctx"
	"github.com/spinneret-go/spinneret/scheduler"
)

// A request is a call of RoundTrip. It takes a lease, calls the RoundTripper below, and begins anew
// if that needs another lease.
type request struct {
	*http.Request // of the caller
	transport     *Transport
	host          string
	waited        time.Duration // for leases
}

// maxRepeats bounds how often a request is written again because the RoundTripper below wants to, or
// begins anew because its lease was lost while it connected.
const maxRepeats = 5

// minWait is the shortest wait for a lease. If its context had ended, Wait would not look whether the host
// is free, nor return a WaitError.
const minWait = 10 * time.Millisecond

func (r *request) roundTrip() (*http.Response, error) {
	body, repeats := newBody(r.Body), 0
	for {
		lease, err := r.wait()
		if err != nil {
			body.end()
			return nil, err
		}
		now := time.Now()
		x := &exchange{
			transport: r.transport, req: r.Request, host: r.host, body: body,
			lease: lease, leased: now, waited: r.waited, start: now,
		}
		resp, err := x.send(r.Request)
		if err == nil {
			return x.begin(resp, r.Request), nil
		}
		again, granted := x.givenUp()
		if granted || !lease.Held() {
			repeats++
		}
		switch {
		case !again:
			body.end()
			return nil, x.fail(err)
		case repeats > maxRepeats && !granted:
			body.end()
			return nil, x.fail(fmt.Errorf("schedulerhttp: connecting to %s took longer than "+
				"Options.LeaseTimeout, %d times or more", r.host, repeats))
		case repeats > maxRepeats:
			body.end()
			x.end(scheduler.Outcome{Start: time.Now(), Failed: true})
			return nil, fmt.Errorf("schedulerhttp: %s was asked %d times: "+
				"a layer below that makes several requests of one belongs above", r.host, repeats)
		}
		// The address was busy, or the request was to be written once more. The next lease waits
		// for the address, and for the delay after what may have been written.
		x.end(scheduler.Outcome{Skipped: !granted, Unknown: granted, Start: time.Now()})
		if body, err = body.again(r.GetBody); err != nil {
			return nil, err
		}
	}
}

// wait takes a lease.
func (r *request) wait() (turn, error) {
	ctx, cancel := r.cancelable()
	defer cancel()
	if most := r.transport.MaxWait; most > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, max(most-r.waited, minWait))
		defer stop()
	}
	if pause, ok := ctx.Value(httpctx.Pause{}).(func() (resume func())); ok {
		defer pause()()
	}
	began := time.Now()
	lease, err := r.transport.wait(ctx, r.host)
	r.waited += time.Since(began)
	return lease, err
}

// cancelable returns the context of the request, which also ends when its field Cancel is closed.
func (r *request) cancelable() (context.Context, context.CancelFunc) {
	closed := r.Cancel // older clients set it
	if closed == nil {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	go func() {
		select {
		case <-closed:
			cancel(httpctx.Ended(r.Context(), closed))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// A body is a request's body that survives an attempt which is given up before it is written. Until
// then the layers below may read and close it, also after they have returned.
type body struct {
	io.ReadCloser
	state atomic.Int32
}

// A body starts fresh, and only one of the other states follows.
const (
	fresh int32 = iota
	used        // something has read from it or closed it
	held        // its attempt was given up before: the next one gets what is inside
)

// newBody returns nil if there is no body.
func newBody(of io.ReadCloser) *body {
	if of == nil || of == http.NoBody {
		return nil
	}
	return &body{ReadCloser: of}
}

var errGivenUp = errors.New("schedulerhttp: the host may not be visited yet")

// use reports whether the body may be used.
func (b *body) use() bool { return b.state.CompareAndSwap(fresh, used) || b.state.Load() == used }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if !b.use() {
		return 0, errGivenUp
	}
	return b.ReadCloser.Read(p)
}

// Close implements io.Closer.
func (b *body) Close() error {
	if !b.use() {
		return nil
	}
	return b.ReadCloser.Close()
}

// hold is called when an attempt is given up. It reports whether nothing has used the body.
func (b *body) hold() bool {
	return b != nil && (b.state.CompareAndSwap(fresh, held) || b.state.Load() == held)
}

// end closes the body, as the contract of RoundTripper requires.
func (b *body) end() {
	if b != nil {
		_ = b.ReadCloser.Close()
	}
}

// again returns the body for another attempt.
func (b *body) again(get func() (io.ReadCloser, error)) (*body, error) {
	if b == nil {
		return nil, nil
	}
	if b.hold() {
		return newBody(b.ReadCloser), nil
	}
	b.end()
	if get == nil {
		return nil, errors.New("schedulerhttp: the request has to be sent again, and its body cannot")
	}
	another, err := get()
	if err != nil {
		return nil, err
	}
	return newBody(another), nil
}
