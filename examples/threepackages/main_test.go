package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/internal/memnet"
)

// A site records the requested paths.
type site struct {
	mu    sync.Mutex
	paths []string
}

// requested returns the paths requested so far.
func (s *site) requested() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.paths)
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.paths = append(s.paths, r.URL.Path)
	s.mu.Unlock()
	switch r.URL.Path {
	case "/robots.txt":
		http.Redirect(w, r, "/rules", http.StatusFound)
	case "/rules":
		fmt.Fprint(w, "User-agent: *\nDisallow: /private")
	case "/moved":
		http.Redirect(w, r, "/a", http.StatusFound)
	case "/gone":
		http.NotFound(w, r)
	case "/broken":
		panic(http.ErrAbortHandler)
	default:
		fmt.Fprint(w, `<a href="/">home</a> <a href="/a#top">a</a> <a href="/a">a</a> <a href="/moved">m</a>
			<a href="/private/plans">p</a> <a href="/gone">g</a> <a href="http://elsewhere.test/">e</a>
			<a href="/ad" rel=nofollow>ad</a> <a href=/100%>all</a> <a href=/broken>b</a>`)
	}
}

// TestEachPageOnce crawls a site whose robots.txt is a redirect. Failures must be printed.
func TestEachPageOnce(t *testing.T) {
	s := new(site)
	server := httptest.NewServer(s)
	defer server.Close()
	typed := strings.Replace(server.URL, "http:", "HTTP:", 1) + "#top" // links to it are in canonical form
	var out bytes.Buffer
	require.NoError(t, crawl(t.Context(), typed, 100, time.Millisecond, fetch.Options{Reach: fetch.Loopback}, &out))
	require.Equal(t, []string{
		"/robots.txt", "/rules", "/", "/a", "/moved", "/gone", "/broken",
	}, s.requested())
	shown := strings.Split(strings.ReplaceAll(out.String(), server.URL, ""), "\n")
	require.Len(t, shown, 7)
	require.Regexp(t, `^200 / \d+$`, shown[0])
	require.Equal(t, "404 /gone 19", shown[3])
	require.Contains(t, shown[4], "400 /100% ", "net/url and the server reject this URL")
	require.Contains(t, shown[5], "/broken")
	require.NotRegexp(t, `^\d`, shown[5])

	out.Reset()
	require.NoError(t, crawl(t.Context(), server.URL, 2, time.Millisecond, fetch.Options{Reach: fetch.Loopback}, &out))
	require.Equal(t, 2, strings.Count(out.String(), "\n"))
}

// TestItIsPolite checks that the delay also applies to robots.txt, and that the site can set it.
func TestItIsPolite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, err := webtest.Start(webtest.Options{
			Hosts: 1, Pages: 10, Network: memnet.New(), Traits: func(int) webtest.Traits {
				return webtest.Traits{Robots: webtest.Robots{CrawlDelay: 30 * time.Second}}
			},
		})
		require.NoError(t, err)
		defer web.Close()
		o := fetch.Options{Reach: fetch.Loopback, Dial: web.Dial, Resolve: web.Resolve}
		for host := range web.Hosts() {
			require.NoError(t, crawl(t.Context(), host.URL(), 100, time.Second, o, new(bytes.Buffer)))
		}
		require.Greater(t, len(web.Log()), 5)
		require.Empty(t, web.Disallowed())
		require.Empty(t, web.Early(30*time.Second))
	})
}

// TestRedirectsOfRobotsWait checks that a redirect of robots.txt waits like any request.
func TestRedirectsOfRobotsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(site)
		web, err := webtest.Start(webtest.Options{
			Network: memnet.New(), Handlers: map[string]http.Handler{"a.test": s},
		})
		require.NoError(t, err)
		defer web.Close()
		o := fetch.Options{Reach: fetch.Loopback, Dial: web.Dial, Resolve: web.Resolve}
		require.NoError(t, crawl(t.Context(), "http://a.test/", 3, time.Minute, o, new(bytes.Buffer)))
		require.Equal(t, []string{"/robots.txt", "/rules", "/"}, s.requested()[:3])
		require.Empty(t, web.Early(time.Minute))
	})
}

// TestErrorsNameTheCause checks that errors name the cause and a remedy.
func TestErrorsNameTheCause(t *testing.T) {
	serve := func(robots http.HandlerFunc) string {
		server := httptest.NewServer(robots)
		t.Cleanup(server.Close)
		return server.URL
	}
	forbidding := serve(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /")
	})
	failing := serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	me := fetch.Options{UserAgent: "threepackages/1.0 (+https://me.example/)"}
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tt := range []struct {
		seed string
		o    fetch.Options
		want string
	}{
		{"example.org", me, "want a URL such as https://"},
		{"https://example.org/", fetch.Options{UserAgent: "threepackages/1.0 (+)"}, "-contact"},
		{forbidding, me, "-localhost"},
		{gone.URL, fetch.Options{Reach: fetch.Loopback}, "unreachable"},
		{forbidding, fetch.Options{Reach: fetch.Loopback}, "line 2, /"},
		{failing, fetch.Options{Reach: fetch.Loopback}, "500 "},
	} {
		err := crawl(t.Context(), tt.seed, 9, time.Millisecond, tt.o, new(bytes.Buffer))
		require.ErrorContains(t, err, tt.want, tt.seed)
		t.Log(err)
	}
}

// TestTheGuidePrintsTheProgram compares the guide with main.go, which is to be copied from there.
func TestTheGuidePrintsTheProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	guide, err := os.ReadFile("../../docs/own-crawler.md")
	require.NoError(t, err)
	_, program, _ = bytes.Cut(program, []byte("\n//	go run ./examples/threepackages -localhost http://localhost:8080/\n"))
	_, printed, _ := bytes.Cut(guide, []byte("```go\n"))
	printed, _, _ = bytes.Cut(printed, []byte("```\n"))
	require.Equal(t, string(program), string(printed))
	require.Less(t, bytes.Count(program, []byte("\n")), 160)
}
