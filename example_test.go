package spinneret_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
	"github.com/spinneret-go/spinneret/dedupe/exact"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/spinneret-go/spinneret/fetch/webtest"
	"github.com/spinneret-go/spinneret/revisit"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

// Four stacked transports add robots.txt, politeness, an archive and guards to any net/http client.
// The example crawls a virtual web.
func Example() {
	web, guarded, kept, done := prepare()
	defer done()
	const delay = 50 * time.Millisecond // short: the web is our own

	client := &http.Client{Transport: robotshttp.NewTransport( // disallowed by robots.txt: an error
		schedulerhttp.NewTransport( // waits: politeness delays per host and address
			archivehttp.NewTransport( // records the bytes of the wire as WARC
				guarded.Transport(), // refuses private addresses and decompression bombs
				kept),
			scheduler.Options{HostDelay: delay}),
		robots.Options{Agent: "mybot"})}

	for range 2 {
		resp, err := client.Get("http://h00000.vweb.test/")
		if err != nil {
			panic(err)
		}
		fmt.Println(resp.Status)
		resp.Body.Close()
	}
	_, err := client.Get("http://h00000.vweb.test/private/x")
	fmt.Println(errors.Is(err, robots.ErrDisallowed), len(web.Early(delay)))
	// Output:
	// 200 OK
	// 200 OK
	// true 0
}

// The questions that a crawler asks, one line each.
func Example_questions() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	seen, err := exact.Open(dir, exact.Options{})
	if err != nil {
		panic(err)
	}
	defer seen.Close()
	body := []byte(`<a href="/b/../c#top">c</a>`)
	base, contentType := "http://www.example.com/", "text/html; charset=shift_jis"
	var history revisit.History
	now := time.Now()

	for link, err := range page.Links(body, base, contentType) { // in any encoding, as browsers see them
		if err != nil {
			return // too many links, or an invalid base URL
		}
		url, err := weburl.Canonical(link.URL) // as browsers normalize it
		if err != nil {
			continue
		}
		added, err := seen.Add(url) // an exact set on disk
		if err != nil {
			panic(err)
		}
		fmt.Println(url, added)
	}

	history = history.Observe(revisit.Visit{At: now, Changed: true}) // 40 bytes per page
	wait := revisit.Bayes{}.Next(history)                            // until the next visit pays
	fmt.Println(wait > 0)
	// Output:
	// http://www.example.com/c true
	// true
}

// prepare serves a virtual web and creates a guarded client and an archive for it.
func prepare() (web *webtest.Web, guarded *fetch.Client, kept *archive.Archive, done func()) {
	web, err := webtest.Start(webtest.Options{Hosts: 3, Pages: 10})
	if err != nil {
		panic(err)
	}
	guarded, err = fetch.New(fetch.Options{
		UserAgent: "mybot/1.0 (+https://example.org/bot)", Reach: fetch.Loopback,
		Dial: web.Dial, Resolve: web.Resolve,
	})
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	kept, err = archive.Open(dir, archive.Options{})
	if err != nil {
		panic(err)
	}
	return web, guarded, kept, func() {
		_ = kept.Close()
		_ = os.RemoveAll(dir)
		_ = web.Close()
	}
}
