package schedulerhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// closing is a connection that says whether it was closed. Its address is not known.
type closing struct {
	unknown
	closed atomic.Bool
}

func (c *closing) Close() error {
	c.closed.Store(true)
	return nil
}

// TestAKeptConnectionIsClosed has a layer below that sends a second request on the connection of the
// first one, as those do that answer a challenge. HTTP/1 writes it even if the context has ended,
// unless the connection is closed.
func TestAKeptConnectionIsClosed(t *testing.T) {
	kept := &closing{}
	transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		for range 2 {
			trace.GetConn("a.test:80")
			trace.GotConn(httptrace.GotConnInfo{Conn: kept, Reused: true})
		}
		require.ErrorIs(t, r.Context().Err(), context.Canceled)
		return nil, context.Canceled
	}), scheduler.Options{HostDelay: time.Hour})
	transport.MaxWait = time.Minute
	_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a.test/", nil))
	require.ErrorAs(t, err, new(*schedulerhttp.WaitError), "of the next attempt")
	require.True(t, kept.closed.Load())
}

// TestAConnectionThatIsPassedOn has a request that is given up on a connection that another exchange
// seems to use. If that is HTTP/2, it must stay open. HTTP/1 shows by writing the head that the
// other exchange is over, and only closing keeps the request from the server.
func TestAConnectionThatIsPassedOn(t *testing.T) {
	for _, proto := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			kept := &closing{}
			transport := schedulerhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GetConn(r.URL.Host + ":80")
				if r.URL.Host == "b.test" {
					time.Sleep(2 * time.Second) // the lease is lost
				}
				trace.GotConn(httptrace.GotConnInfo{Conn: kept, Reused: true})
				if r.Context().Err() == nil {
					trace.WroteHeaders()
					return &http.Response{StatusCode: http.StatusOK, Body: &body{}, Request: r}, nil
				}
				require.False(t, kept.closed.Load())
				if proto == 1 {
					trace.WroteHeaders()
				}
				return nil, r.Context().Err()
			}), scheduler.Options{HostDelay: time.Hour, LeaseTimeout: time.Second})
			transport.MaxWait = time.Minute
			_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a.test/", nil))
			require.NoError(t, err)
			_, err = transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://b.test/", nil))
			require.Error(t, err)
			require.Equal(t, proto == 1, kept.closed.Load())
		})
	}
}
