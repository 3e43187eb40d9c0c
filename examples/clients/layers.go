// Package clients makes existing crawlers polite. For each of some popular clients it has a crawler
// written as in that client's README, called …Before, and the same one on top of this library's
// transports, called …After.
//
// The tests run both on the same virtual web and compare the logs of its servers. They print the
// table of docs/existing-crawler.md:
//
//	cd examples/clients && go test -v -run TestTable
//
// All politeness is in the function layers. The rest of an …After is a filter of seen URLs, since a
// transport cannot know whether a page was fetched before.
package clients

import (
	"errors"
	"io"
	"net/http"

	"github.com/spinneret-go/spinneret/archive"
	"github.com/spinneret-go/spinneret/archive/archivehttp"
	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/robots"
	"github.com/spinneret-go/spinneret/robots/robotshttp"
	"github.com/spinneret-go/spinneret/scheduler"
	"github.com/spinneret-go/spinneret/scheduler/schedulerhttp"
)

const (
	// agent is the name of the crawlers in robots.txt.
	agent = "examplebot"

	// userAgent is sent with each request, also by clients that would send their own name.
	userAgent = agent + "/1.0 (+https://example.org/bot)"
)

// layers returns a transport for any client. Each layer is independent of the others.
func layers(o fetch.Options, kept *archive.Archive) (http.RoundTripper, error) {
	guarded, err := fetch.New(o)
	if err != nil {
		return nil, err
	}
	return robotshttp.NewTransport( // disallowed by robots.txt: an error
		schedulerhttp.NewTransport( // waits until the host and its address may be visited
			archivehttp.NewTransport( // records everything, robots.txt included, as WARC
				guarded.Transport(), // refuses private addresses and decompression bombs
				kept),
			scheduler.Options{}),
		robots.Options{Agent: agent}), nil
}

// get archives a page in dir, if robots.txt allows it, and returns its body.
func get(dir, url string, o fetch.Options) (body []byte, err error) {
	kept, err := archive.Open(dir, archive.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	transport, err := layers(o, kept)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport}
	resp, err := client.Get(url) // waits for the host's politeness delay
	if err != nil {
		return nil, err // for example robots.ErrDisallowed
	}
	body, err = io.ReadAll(resp.Body)
	return body, errors.Join(err, resp.Body.Close()) // Close says whether the page is in the archive
}

// links reports which links are new. Its methods are safe for concurrent use.
type links struct{ seen *dedupe.Filter }

func newLinks() links { return links{dedupe.New(dedupe.Options{})} }

// add returns the canonical URL of a link on a page, and whether it is new.
func (l links) add(page, link string) (url string, added bool) {
	url, err := weburl.Resolve(page, link)
	return url, err == nil && l.seen.Add(url)
}

// redirect is the CheckRedirect of a client. It stops at pages that were seen before.
func (l links) redirect(r *http.Request, via []*http.Request) error {
	if _, added := l.add(r.URL.String(), ""); !added {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
