package politetransport_test

import (
	"context"
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
	"github.com/spinneret-go/spinneret/internal/memnet"
	"github.com/spinneret-go/spinneret/internal/vweb"
	"github.com/spinneret-go/spinneret/scheduler"
)

// rude asks for all pages of a web at once.
func rude(t *testing.T, client *http.Client, web *vweb.Web) (disallowed int) {
	var group sync.WaitGroup
	var mu sync.Mutex
	for host := range web.Hosts() {
		urls := []string{host.URL() + "private/1.html"}
		for url := range host.Pages() {
			urls = append(urls, url)
		}
		for _, url := range urls {
			group.Go(func() {
				resp, err := client.Get(url)
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					require.ErrorIs(t, err, politetransport.ErrDisallowed)
					disallowed++
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
		}
	}
	group.Wait()
	return disallowed
}

func TestARudeCrawlerIsPoliteWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, err := vweb.Start(vweb.Options{
			Seed: 1, Hosts: 3, Pages: 10, Network: memnet.New(), Traits: func(host int) vweb.Traits {
				return vweb.Traits{Robots: vweb.Robots{CrawlDelay: time.Duration(host) * 10 * time.Second}}
			},
		})
		require.NoError(t, err)
		defer web.Close()
		under := &http.Transport{DialContext: web.Dial}
		defer under.CloseIdleConnections()
		transport := politetransport.New("mybot", under, scheduler.Options{HostDelay: 5 * time.Second})
		defer transport.Close()
		require.GreaterOrEqual(t, rude(t, &http.Client{Transport: transport}, web), 3)

		last, asked := map[string]vweb.Request{}, map[string]int{}
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

func TestWhoGivesUpWaitingIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, err := vweb.Start(vweb.Options{Hosts: 1, Network: memnet.New()})
		require.NoError(t, err)
		defer web.Close()
		under := &http.Transport{DialContext: web.Dial}
		defer under.CloseIdleConnections()
		transport := politetransport.New("mybot", under, scheduler.Options{HostDelay: time.Hour})
		defer transport.Close()
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

func Example() {
	transport := politetransport.New("mybot", http.DefaultTransport, scheduler.Options{})
	defer transport.Close()
	client := &http.Client{Transport: transport}
	_, err := client.Get("mailto:me@example.org")
	fmt.Println(err != nil)
	// Output: true
}
