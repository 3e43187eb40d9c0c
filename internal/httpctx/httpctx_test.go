package httpctx_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/httpctx"
)

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
