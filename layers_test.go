package spinneret_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// TestTheDelayOfAnotherHost: a host whose address may not be visited in time, because another host
// there asks for patience, was not asked, so it is not out of reach. net/http reports that it has
// written the request which was given up, sooner or later: hence the repetitions.
func TestTheDelayOfAnotherHost(t *testing.T) {
	for range 20 {
		asked := make(chan string, 10)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Host
			if r.URL.Path != "/robots.txt" {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
		base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		}}
		polite := schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: time.Nanosecond})
		transport := robotshttp.NewTransport(polite, robots.Options{Agent: "foo"})
		client := &http.Client{Transport: transport}
		resp, err := client.Get("http://a.test/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		_, err = client.Get("http://b.test/")
		require.ErrorAs(t, err, new(*scheduler.WaitError))
		require.NotErrorIs(t, err, robots.ErrUnreachable)
		_, known := transport.Cache().Entry("http://b.test/")
		require.False(t, known)
		base.CloseIdleConnections()
		server.Close()
		require.Len(t, asked, 2)
	}
}
