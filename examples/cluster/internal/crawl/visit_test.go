package crawl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/scheduler"
)

// TestNothingIsSentWithoutOwnership tests the last guard: the process loses its session while it
// has an open connection.
func TestNothingIsSentWithoutOwnership(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	lost := false
	g := &guarded{client, func() error {
		if lost {
			return engine.ErrLost
		}
		return nil
	}}
	go func() { _, _ = g.Write([]byte("first")) }()
	buf := make([]byte, 10)
	n, err := server.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "first", string(buf[:n]))
	lost = true
	n, err = g.Write([]byte("second"))
	require.ErrorIs(t, err, engine.ErrLost)
	require.Zero(t, n)
	// If any of it had been sent, it would come before the end.
	require.NoError(t, client.Close())
	n, err = server.Read(buf)
	require.Error(t, err)
	require.Zero(t, n)
}

func TestDelaysCountFromTheFirstByte(t *testing.T) {
	at := time.Now()
	resp := &fetch.Response{
		Status: 503, Header: http.Header{"Retry-After": {"90"}},
		WroteRequest: at, FirstByte: at.Add(time.Second),
	}
	o := outcome(at, resp)
	require.False(t, o.RetryAfter.Before(at.Add(90*time.Second)))
	o.RetryAfter = time.Time{}
	require.Equal(t, scheduler.Outcome{Start: at.Add(time.Second), Took: time.Second, Status: 503}, o)
	resp.Header.Set("Retry-After", "99999999999")
	require.False(t, outcome(at, resp).RetryAfter.After(time.Now().Add(scheduler.DefaultMaxRetryAfter)))
}

func TestAnUnsentRequestIsNoVisit(t *testing.T) {
	for _, tt := range []struct {
		failed fetch.Error
		want   scheduler.Outcome
	}{
		{fetch.Error{Kind: fetch.Blocked}, scheduler.Outcome{Skipped: true}},
		{fetch.Error{Kind: fetch.BadURL}, scheduler.Outcome{Skipped: true}},
		{fetch.Error{Kind: fetch.BadURL, Attempts: 1}, scheduler.Outcome{Unknown: true}},
		{fetch.Error{Kind: fetch.Resolve, Err: &net.DNSError{Err: "no such host"}}, scheduler.Outcome{Skipped: true}},
		{fetch.Error{Kind: fetch.Connect, Err: errors.New("x")}, scheduler.Outcome{Failed: true}},
		{fetch.Error{Kind: fetch.HeadTimeout, Attempts: 1}, scheduler.Outcome{Failed: true}},
		{fetch.Error{Kind: fetch.Canceled, Err: context.Canceled}, scheduler.Outcome{Skipped: true}},
		{fetch.Error{Kind: fetch.Canceled, Err: context.Canceled, Attempts: 1}, scheduler.Outcome{Unknown: true}},
	} {
		got := failure(time.Now(), fmt.Errorf("wrapped: %w", &tt.failed))
		if !tt.want.Skipped {
			require.False(t, got.Start.IsZero(), "%+v: the server may have been disturbed", tt.failed)
		}
		got.Start = time.Time{}
		require.Equal(t, tt.want, got, "%+v", tt.failed)
	}
}

func TestAnswersForRulesAreTruncated(t *testing.T) {
	require.Equal(t, message.Item{Status: 200, Body: []byte("User-agent: *")}, answerOf(&fetch.Response{
		Status: 200, Body: []byte("User-agent: *"), Header: http.Header{},
	}))
	long := answerOf(&fetch.Response{Status: 200, Body: []byte(strings.Repeat("x\n", robotstxt.MaxSize))})
	require.Len(t, long.Body, robotstxt.MaxSize)
	require.Less(t, len(message.Encode(nil, long)), 1<<20-1000, "it fits into a message")
	require.Equal(t, message.Item{Status: 301, Location: "http://a.test/x"}, answerOf(&fetch.Response{
		Status: 301, Location: "HTTP://A.test:80/x",
	}))
	require.Equal(t, message.Item{Status: 301}, answerOf(&fetch.Response{
		Status: 301, Location: "mailto:somebody",
	}))
	for _, cut := range []fetch.Kind{
		fetch.CutLength, fetch.CutRatio, fetch.CutCoding, fetch.CutDisconnect, fetch.CutTime, fetch.CutSlow,
	} {
		require.Zero(t, answerOf(&fetch.Response{Status: 200, Truncated: cut}),
			"%v: the half that is missing may forbid", cut)
	}
}

func TestOptionsHaveDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	require.Equal(t, 5*time.Second, o.Delay)
	require.Equal(t, DefaultParts, o.Parts)
	require.Empty(t, o.userAgent(), "which package fetch refuses beyond loopback")
	o.Contact = "https://example.org/bot"
	require.Equal(t, "spinneret/0.1 (+https://example.org/bot)", o.userAgent())
}
