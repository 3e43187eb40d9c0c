package programs

import (
	"net/http"
	"sync"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Floor follows all links from a page, through the proxy of the environment, with net/http, a tokenizer
// and a map: no delays, no robots.txt, and nothing that survives. Every crawler on net/http costs at
// least that.
func Floor(seed string) {
	f := floor{seen: map[string]bool{}, places: make(chan struct{}, 200)}
	f.client.Transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 200, MaxIdleConns: 200,
	}
	f.visit(seed)
	f.all.Wait()
}

// A floor is one such crawl. It is safe for concurrent use.
type floor struct {
	client http.Client
	places chan struct{} // has an element for each request
	all    sync.WaitGroup

	mu   sync.Mutex
	seen map[string]bool
}

// visit fetches a page in the background, unless it was seen before.
func (f *floor) visit(page string) {
	f.mu.Lock()
	known := f.seen[page]
	f.seen[page] = true
	f.mu.Unlock()
	if known {
		return
	}
	f.all.Go(func() {
		f.places <- struct{}{}
		defer func() { <-f.places }()
		if resp, err := f.client.Get(page); err == nil {
			defer resp.Body.Close()
			f.follow(resp)
		}
	})
}

// follow visits the links of a page.
func (f *floor) follow(resp *http.Response) {
	page := html.NewTokenizer(resp.Body)
	for page.Next() != html.ErrorToken {
		tag, more := page.TagName()
		for more && atom.Lookup(tag) == atom.A {
			var key, value []byte
			key, value, more = page.TagAttr()
			if link, err := resp.Request.URL.Parse(string(value)); err == nil && string(key) == "href" {
				link.Fragment = ""
				f.visit(link.String())
			}
		}
	}
}
