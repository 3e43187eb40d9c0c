package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/stretchr/testify/require"
)

// A site notes what is asked of it.
type site struct{ paths []string }

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.paths = append(s.paths, r.URL.Path)
	switch r.URL.Path {
	case "/robots.txt":
		fmt.Fprint(w, "User-agent: *\nCrawl-delay: 0.01\nDisallow: /private")
	case "/moved":
		http.Redirect(w, r, "/a", http.StatusFound)
	case "/gone":
		http.NotFound(w, r)
	default:
		fmt.Fprint(w, `<a href="/">home</a> <a href="/a#top">a</a> <a href="/a">a</a> <a href="/moved">m</a>
			<a href="/private/plans">p</a> <a href="/gone">g</a> <a href="http://elsewhere.test/">e</a>
			<a href="/ad" rel=nofollow>ad</a>`)
	}
}

func TestEachPageOnce(t *testing.T) {
	s := new(site)
	server := httptest.NewServer(s)
	defer server.Close()
	client, err := fetch.New(fetch.Options{Reach: fetch.Loopback})
	require.NoError(t, err)
	defer client.CloseIdle()

	host := strings.TrimPrefix(server.URL, "http://")
	c := newCrawler(client, host, time.Millisecond)
	c.add(server.URL + "/")
	var shown []string
	err = c.run(t.Context(), 100, func(page *fetch.Response) {
		shown = append(shown, fmt.Sprint(page.Status, strings.TrimPrefix(page.URL, server.URL)))
	})
	require.NoError(t, err)
	require.Equal(t, []string{"200/", "200/a", "302/moved", "404/gone"}, shown)
	require.Equal(t, []string{"/robots.txt", "/", "/a", "/moved", "/gone"}, s.paths)
}

func TestSitesSetTheirPace(t *testing.T) {
	c := newCrawler(nil, "a.test:8080", time.Millisecond)
	c.add("http://a.test:8080/")
	c.add("http://a.test:8080/2")
	asked, err := c.rules.Lookup("http://a.test:8080/", time.Now())
	require.NoError(t, err)
	c.learn(asked.Request, &fetch.Response{Status: 200, Body: []byte("User-agent: *\nCrawl-delay: 60")})

	lease, _ := c.queue.TryNext(time.Now())
	lease.Done(scheduler.Outcome{})
	_, wait := c.queue.TryNext(time.Now())
	require.Greater(t, wait, 30*time.Second)
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), "example.org", "https://you.example", 1, 0), "no URL")
	require.ErrorIs(t, run(t.Context(), "http://example.org/", "", 1, 0), fetch.ErrNoContact)
}
