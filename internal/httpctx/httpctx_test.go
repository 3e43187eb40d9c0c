package httpctx_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/httpctx"
)

// A deadline that has passed, but whose context has not noticed yet.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// An http.Client with a Timeout closes the field Cancel of a request, and it is a deadline for all that.
func TestEnded(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	why := errors.New("the user has left")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	timedOut, stop := context.WithTimeoutCause(t.Context(), -1, why)
	defer stop()
	require.NoError(t, httpctx.Ended(t.Context(), nil))
	require.NoError(t, httpctx.Ended(t.Context(), make(chan struct{})))
	require.Equal(t, httpctx.ErrCanceled, httpctx.Ended(t.Context(), closed))
	require.Equal(t, httpctx.ErrCanceled, httpctx.Ended(lateContext{t.Context(), time.Now().Add(time.Hour)}, closed))
	require.Equal(t, context.DeadlineExceeded, httpctx.Ended(lateContext{t.Context(), time.Now()}, closed))
	for _, quit := range []chan struct{}{nil, closed} {
		require.ErrorIs(t, httpctx.Ended(canceled, quit), context.Canceled)
		require.ErrorIs(t, httpctx.Ended(canceled, quit), why)
		require.ErrorIs(t, httpctx.Ended(timedOut, quit), context.DeadlineExceeded)
	}
}

type key struct{}

// dialed counts the events of a dial, which package net reports.
func dialed(t *testing.T, wrap func(context.Context) context.Context) (events int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ctx := context.WithValue(t.Context(), key{}, "kept")
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart: func(string, string) { events++ },
		ConnectDone:  func(string, string, error) { events++ },
	})
	ctx = wrap(ctx)
	require.Equal(t, "kept", ctx.Value(key{}))
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	return events
}

func TestTraces(t *testing.T) {
	require.Equal(t, 2, dialed(t, func(ctx context.Context) context.Context { return ctx }))
	require.Zero(t, dialed(t, httpctx.WithoutTrace))
	replaced := 0
	require.Zero(t, dialed(t, func(ctx context.Context) context.Context {
		return httpctx.WithTrace(ctx, &httptrace.ClientTrace{ConnectDone: func(string, string, error) { replaced++ }})
	}))
	require.Equal(t, 1, replaced)
}

// A handshake of another request, which a dialer sends, is not one of the caller's.
func TestHandshakeWithoutTrace(t *testing.T) {
	for _, without := range []bool{false, true} {
		events := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{TLSHandshakeStart: func() { events++ }})
		if ctx = httpctx.WithHandshake(ctx); without {
			ctx = httpctx.WithHandshake(httpctx.WithoutTrace(ctx))
		}
		near, far := net.Pipe()
		require.NoError(t, far.Close())
		require.Error(t, httpctx.Handshake(ctx, tls.Client(near, &tls.Config{ServerName: "a.test"})))
		require.Equal(t, !without, events == 1)
	}
}

// The end of a context reaches the request.
func TestCancel(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(httpctx.WithoutTrace(ctx), "GET", s.URL, nil)
	require.NoError(t, err)
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { cancel() },
	}))
	_, err = s.Client().Do(req)
	require.ErrorIs(t, err, context.Canceled)
}
