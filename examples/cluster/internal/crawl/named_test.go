package crawl

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// TestASitemapOfAStrangerIsInTheScope has a robots.txt that names sitemaps of made-up hosts beyond the scope.
// Nobody asks a name server for them, and no robots.txt of theirs is requested.
func TestASitemapOfAStrangerIsInTheScope(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked, got := map[string]int{}, map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got[r.Host+r.URL.Path]++
		mu.Unlock()
		if r.Host == "evil.test" && r.URL.Path == "/robots.txt" {
			fmt.Fprintln(w, "User-agent: *\nAllow: /\nSitemap: /own.xml")
			for i := range 200 {
				fmt.Fprintf(w, "Sitemap: http://x%d.victim.test/s.xml\n", i)
			}
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	url := startBroker(t)
	o := testOptions()
	o.Parts, o.Scope, o.Seeds, o.Delay = 2, "host", []string{"http://evil.test/"}, time.Millisecond
	c, err := Create(t.Context(), connect(t, url), o)
	require.NoError(t, err)
	mine, err := Open(t.Context(), connect(t, url))
	require.NoError(t, err)
	w, err := mine.NewWorker(WorkerOptions{
		Name: "p", TTL: time.Minute, Every: 10 * time.Millisecond, Dir: filepath.Join(t.TempDir(), "p"),
		Lookup: func(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[host]++
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, time.Hour, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	require.NoError(t, err)
	run(t, w)
	require.NoError(t, c.Seed(t.Context(), o.Seeds))
	require.NoError(t, c.Wait(t.Context(), 20*time.Millisecond))
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 1, got["evil.test/own.xml"], "its own sitemap is read")
	for place := range got {
		require.True(t, strings.HasPrefix(place, "evil.test/"), "%s was requested, one of %d", place, len(got))
	}
	require.Len(t, asked, 1, "names looked up")
}

func TestARobotsNamesABoundedNumberOfSitemaps(t *testing.T) {
	h := newHostTest()
	file := "http://a.test/robots.txt"
	h.feed(page("http://a.test/"), located("a.test", "127.0.0.1"))
	body := strings.Builder{}
	for i := range 2 * stage.MaxNamed {
		fmt.Fprintf(&body, "Sitemap: /%d\n", i)
	}
	n := 0
	for _, s := range feed(h.hosts, h.at, answer(file, 200, body.String())) {
		if s.it.Kind == message.Sitemap {
			n++
		}
	}
	require.Equal(t, stage.MaxNamed, n)
}
