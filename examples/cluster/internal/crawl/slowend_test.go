package crawl

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestADrainedProcessFinishesASlowRequest drains a process whose only request takes 11 of the 30 seconds that it may.
func TestADrainedProcessFinishesASlowRequest(t *testing.T) {
	t.Parallel()
	begun, cut := make(chan struct{}, 9), atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		begun <- struct{}{}
		select {
		case <-time.After(11 * time.Second):
		case <-r.Context().Done():
			cut.Add(1)
		}
	}))
	defer server.Close()
	url := startBroker(t)
	o := testOptions()
	o.Timeout = 30 * time.Second
	c, err := Create(t.Context(), connect(t, url), o)
	require.NoError(t, err)
	mine, err := Open(t.Context(), connect(t, url))
	require.NoError(t, err)
	w, err := mine.NewWorker(WorkerOptions{
		Name: "p", TTL: time.Minute, Every: 10 * time.Millisecond, Dir: filepath.Join(t.TempDir(), "p"),
		Lookup: func(context.Context, string) ([]netip.Addr, time.Duration, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, time.Hour, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	require.NoError(t, err)
	stop := run(t, w)
	require.NoError(t, c.Seed(t.Context(), []string{"http://slow.test/"}))
	<-begun
	stop()
	require.Zero(t, cut.Load(), "the request was aborted")
	done, err := c.Finished(t.Context())
	require.NoError(t, err)
	require.True(t, done)
}
