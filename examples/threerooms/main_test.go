package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/page"
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

	c := newCrawler(client, weburl.Host(server.URL), time.Millisecond)
	c.add(server.URL + "/")
	var shown []string
	err = c.run(t.Context(), 100, func(page *fetch.Response) {
		shown = append(shown, fmt.Sprint(page.Status, strings.TrimPrefix(page.URL, server.URL)))
	})
	require.ErrorIs(t, err, scheduler.ErrDrained)
	require.Equal(t, []string{"200/", "200/a", "302/moved", "404/gone"}, shown)
	require.Equal(t, []string{"/robots.txt", "/", "/a", "/moved", "/gone"}, s.paths)
}

// TestASeedIsOnePage, however it was typed: links to it are in canonical form.
func TestASeedIsOnePage(t *testing.T) {
	for _, typed := range []string{"HTTP://A.Test", "http://a.test/#top", "http://a.test/"} {
		c := newCrawler(nil, "a.test", time.Second)
		c.add(typed)
		for link, err := range page.Links([]byte("<a href=/>home</a>"), typed, "") {
			require.NoError(t, err)
			c.add(link.URL)
		}
		require.Equal(t, map[string]bool{"http://a.test/": true}, c.seen, typed)
	}
}

// TestLinksAreReadAsBrowsersDo: package net/url refuses this one.
func TestLinksAreReadAsBrowsersDo(t *testing.T) {
	c := newCrawler(nil, "a.test", time.Second)
	for link, err := range page.Links([]byte("<a href=/100%>all</a>"), "http://a.test/", "") {
		require.NoError(t, err)
		c.add(link.URL)
	}
	require.Equal(t, map[string]bool{"http://a.test/100%": true}, c.seen)
}

// TestRedirectsOfRulesAreFollowed, each as a request of its own.
func TestRedirectsOfRulesAreFollowed(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		switch r.URL.Path {
		case "/robots.txt":
			http.Redirect(w, r, "/rules", http.StatusFound)
		case "/rules":
			fmt.Fprint(w, "User-agent: *\nDisallow: /private")
		default:
			fmt.Fprint(w, "<a href=/private>p</a> <a href=/b>b</a>")
		}
	}))
	defer server.Close()
	client, err := fetch.New(fetch.Options{Reach: fetch.Loopback})
	require.NoError(t, err)
	defer client.CloseIdle()
	c := newCrawler(client, weburl.Host(server.URL), time.Millisecond)
	c.add(server.URL + "/")
	err = c.run(t.Context(), 100, func(*fetch.Response) {})
	require.ErrorIs(t, err, scheduler.ErrDrained)
	require.Equal(t, []string{"/robots.txt", "/rules", "/", "/b"}, asked)
}

func TestSitesSetTheirPace(t *testing.T) {
	c := newCrawler(nil, "a.test", time.Millisecond)
	c.add("http://a.test:8080/")
	c.add("http://a.test:8080/2")
	asked, err := c.rules.Cache.Lookup("http://a.test:8080/", time.Now())
	require.NoError(t, err)
	c.learn(*asked.Request, &fetch.Response{Status: 200, Body: []byte("User-agent: *\nCrawl-delay: 60")})

	lease, _ := c.queue.TryNext(time.Now())
	lease.Done(scheduler.Outcome{})
	_, wait := c.queue.TryNext(time.Now())
	require.Greater(t, wait, 30*time.Second)
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), "example.org", "https://you.example", 1, 0), "invalid URL")
	require.ErrorIs(t, run(t.Context(), "http://example.org/", "", 1, 0), fetch.NoContact)
	synctest.Test(t, func(t *testing.T) { // a host that does not answer is left alone for a while
		err := run(t.Context(), "http://127.0.0.1:1/", "https://you.example", 9, time.Millisecond)
		require.ErrorContains(t, err, "robots.txt of 127.0.0.1 ") // loopback is not Public
	})
}

// TestSilenceIsShown: a host that does not answer is a page of status 0, and no end of the crawl.
func TestSilenceIsShown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	client, err := fetch.New(fetch.Options{Reach: fetch.Loopback})
	require.NoError(t, err)
	defer client.CloseIdle()
	c := newCrawler(client, weburl.Host(server.URL), time.Millisecond)
	c.add(server.URL + "/")
	var shown []fetch.Response
	err = c.run(t.Context(), 100, func(page *fetch.Response) { shown = append(shown, *page) })
	require.ErrorIs(t, err, scheduler.ErrDrained)
	require.Len(t, shown, 1)
	require.Equal(t, server.URL+"/", shown[0].URL)
	require.Zero(t, shown[0].Status)
}

// TestTheGuidePrintsTheProgram: the guide says that these are 72 lines, and shows them.
func TestTheGuidePrintsTheProgram(t *testing.T) {
	program, err := os.ReadFile("crawler.go")
	require.NoError(t, err)
	guide, err := os.ReadFile("../../docs/own-crawler.md")
	require.NoError(t, err)
	_, program, found := bytes.Cut(program, []byte("\n)\n\n")) // behind the imports
	require.True(t, found)
	require.Contains(t, string(guide), "```go\n"+string(program)+"```\n")
	lines := 0
	for line := range strings.Lines(string(program)) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "//") {
			lines++
		}
	}
	require.Equal(t, 72, lines)
}
