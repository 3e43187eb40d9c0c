package webtest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/stretchr/testify/require"
)

// crawl takes the place of the reader's crawler in docs/polite.md. It breaks as many rules as
// possible.
func crawl(web *webtest.Web) {
	client := web.Client()
	for h := range web.Hosts() {
		for url := range h.Pages() {
			resp, err := client.Get(url)
			if err == nil {
				resp.Body.Close()
			}
		}
	}
}

// Example_polite is the program of docs/polite.md.
func Example_polite() {
	web, err := webtest.Start(webtest.Options{
		Hosts: 12, Addrs: 4, Pages: 20,
		Traits: func(host int) webtest.Traits {
			return webtest.Traits{
				Robots:   webtest.Robots{CrawlDelay: time.Duration(host%3) * time.Second},
				Throttle: webtest.Throttle{Every: 10, RetryAfter: 5 * time.Second},
				Latency:  webtest.Latency{Median: time.Millisecond, Sigma: 1, Jitter: time.Millisecond},
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer web.Close()

	crawl(web) // your crawler, which reaches the web through web.Client() or web.Dial

	early := web.Early(time.Second)
	fmt.Println("requests that came too early:", len(early) > 0)
	fmt.Println("requests that robots.txt forbids:", len(web.Disallowed()) > 0)

	fetched := map[string]int{}
	for _, r := range web.Log() {
		if r.Status == 200 {
			fetched[r.URL()]++
		}
	}
	missed, twice := 0, 0
	for _, url := range web.Reachable() {
		switch n := fetched[url]; {
		case n == 0:
			missed++
		case n > 1:
			twice++
		}
	}
	fmt.Println("pages missed:", missed > 0, "fetched twice:", twice > 0)
	// Output:
	// requests that came too early: true
	// requests that robots.txt forbids: true
	// pages missed: true fetched twice: false
}

// docs/polite.md must show the program as it is tested here.
func TestPolitePageShowsTheProgram(t *testing.T) {
	source, err := os.ReadFile("polite_test.go")
	require.NoError(t, err)
	_, program, ok := strings.Cut(string(source), "func Example_polite() {\n")
	require.True(t, ok)
	program, _, ok = strings.Cut(program, "\t// Output:")
	require.True(t, ok)
	page, err := os.ReadFile("../../docs/polite.md")
	require.NoError(t, err)
	require.Contains(t, string(page), strings.ReplaceAll("\n"+program, "\n\t", "\n"), "docs/polite.md")
}
