package programs

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/spinneret-go/spinneret/fetch/page"
)

// Loop follows all links from a page, through the proxy of the environment, with net/http, package page
// and a map: no delays, no robots.txt, and nothing that survives.
func Loop(seed string) {
	f := loop{seen: map[string]bool{}, places: make(chan struct{}, 200)}
	f.client.Transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 200, MaxIdleConns: 200,
	}
	f.visit(seed)
	f.all.Wait()
}

// A loop is one such crawl. It is safe for concurrent use.
type loop struct {
	client http.Client
	places chan struct{} // has an element for each request
	all    sync.WaitGroup

	mu   sync.Mutex
	seen map[string]bool
}

// visit fetches a page in the background, unless it was seen before.
func (f *loop) visit(url string) {
	f.mu.Lock()
	known := f.seen[url]
	f.seen[url] = true
	f.mu.Unlock()
	if known {
		return
	}
	f.all.Go(func() {
		f.places <- struct{}{}
		defer func() { <-f.places }()
		if resp, err := f.client.Get(url); err == nil {
			defer resp.Body.Close()
			f.follow(resp)
		}
	})
}

// follow visits the links of a page.
func (f *loop) follow(resp *http.Response) {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return
	}
	for link, err := range page.Links(body, resp.Request.URL.String(), resp.Header.Get("Content-Type")) {
		if err == nil && link.Kind == page.Anchor {
			f.visit(strings.Clone(link.URL))
		}
	}
}
