package clients

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// myCrawl is the colly program under test.
func myCrawl(seed string, base http.RoundTripper) {
	collyAfter([]string{seed}, robotshttp.NewTransport(
		schedulerhttp.NewTransport(base, scheduler.Options{HostDelay: 20 * time.Millisecond}),
		robots.Options{Agent: agent}))
}

// TestMyCrawler needs no fake time: the delay starts at the first byte of a response, so load on
// the machine cannot make requests too early.
func TestMyCrawler(t *testing.T) {
	web, err := webtest.Start(webtest.Options{Hosts: 6, Addrs: 2, Pages: 10})
	require.NoError(t, err)
	defer web.Close()

	myCrawl("http://h00000.vweb.test/", web.Client().Transport)

	require.Empty(t, web.Early(20*time.Millisecond)) // for a host or an address
	require.Empty(t, web.Disallowed())
	require.Greater(t, len(web.Log()), len(web.Reachable()))
}
