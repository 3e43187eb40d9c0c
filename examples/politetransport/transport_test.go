package politetransport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/politetransport"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/scheduler"
)

// rude asks for all pages of a web at once. What goes wrong is disallowed, or it is the error.
func rude(client *http.Client, web *webtest.Web) (disallowed int, err error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	for host := range web.Hosts() {
		urls := []string{host.URL() + "private/1.html"}
		for url := range host.Pages() {
			urls = append(urls, url)
		}
		for _, url := range urls {
			group.Go(func() {
				resp, failed := client.Get(url)
				if failed == nil {
					_, failed = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case failed == nil:
				case errors.Is(failed, robots.ErrDisallowed):
					disallowed++
				default:
					err = errors.Join(err, failed)
				}
			})
		}
	}
	group.Wait()
	return disallowed, err
}

func TestARudeCrawlerIsPoliteWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, err := webtest.Start(webtest.Options{
			Seed: 1, Hosts: 3, Pages: 10, Network: memnet.New(), Traits: func(host int) webtest.Traits {
				return webtest.Traits{Robots: webtest.Robots{CrawlDelay: time.Duration(host) * 10 * time.Second}}
			},
		})
		require.NoError(t, err)
		defer web.Close()
		under := &http.Transport{DialContext: web.Dial}
		defer under.CloseIdleConnections()
		transport := politetransport.New("mybot", under, scheduler.Options{HostDelay: 5 * time.Second})
		disallowed, err := rude(&http.Client{Transport: transport}, web)
		require.NoError(t, err)
		require.GreaterOrEqual(t, disallowed, 3)

		last, asked := map[string]webtest.Request{}, map[string]int{}
		for _, r := range web.Log() {
			host, _ := web.Host(r.Host)
			asked[r.URL()]++
			require.False(t, strings.HasPrefix(r.Path, "/private/"), r.URL())
			if before, ok := last[r.Host]; ok {
				least := 5 * time.Second
				if before.Path != "/robots.txt" {
					least = max(least, time.Duration(host.Index)*10*time.Second)
				}
				require.GreaterOrEqual(t, r.Time.Sub(before.Time), least, r.URL())
			}
			last[r.Host] = r
		}
		for url, n := range asked {
			require.Equal(t, 1, n, url)
		}
		require.Greater(t, len(asked), 25)
	})
}

// oneHost starts a web of one host, which is asked after a delay.
func oneHost(t *testing.T, delay time.Duration) (*webtest.Web, http.RoundTripper) {
	t.Helper()
	web, err := webtest.Start(webtest.Options{Hosts: 1, Network: memnet.New()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, web.Close()) })
	under := &http.Transport{DialContext: web.Dial}
	t.Cleanup(under.CloseIdleConnections)
	transport := politetransport.New("mybot", under, scheduler.Options{HostDelay: delay})
	return web, transport
}

// TestAHostIsOneHowEverItIsSpelled: names have no case, and may end in a dot.
func TestAHostIsOneHowEverItIsSpelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = time.Minute
		web, transport := oneHost(t, delay)
		for _, name := range []string{"h00000.vweb.test", "H00000.VWEB.test", "h00000.vweb.test."} {
			resp, err := (&http.Client{Transport: transport}).Get("http://" + name + "/")
			require.NoError(t, err)
			resp.Body.Close()
		}
		require.Greater(t, len(web.Log()), 3)
		require.Empty(t, webtest.Violations(web.Log(), func(string) time.Duration { return delay }, nil))
	})
}

func TestWhoGivesUpWaitingIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, transport := oneHost(t, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://h00000.vweb.test/", nil)
		require.NoError(t, err)
		_, err = transport.RoundTrip(r) // the rules are there at once, the page in an hour
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, web.Log(), 1)
		resp, err := (&http.Client{Transport: transport}).Get("http://h00000.vweb.test/")
		require.NoError(t, err)
		resp.Body.Close()
		require.Len(t, web.Log(), 2)
	})
}

// A body notes that it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// TestBodiesOfRequestsAreClosed: a RoundTripper owes that, whatever becomes of the request.
func TestBodiesOfRequestsAreClosed(t *testing.T) {
	transport := politetransport.New("mybot", http.DefaultTransport, scheduler.Options{})
	sent := &body{Reader: strings.NewReader("text")}
	r, err := http.NewRequest(http.MethodPost, "http://a.test/", sent)
	require.NoError(t, err)
	_, err = transport.RoundTrip(r)
	require.Error(t, err)
	require.True(t, sent.closed)
}

func Example() {
	transport := politetransport.New("mybot", http.DefaultTransport, scheduler.Options{})
	client := &http.Client{Transport: transport}
	_, err := client.Get("mailto:me@example.org")
	fmt.Println(err != nil)
	// Output: true
}
