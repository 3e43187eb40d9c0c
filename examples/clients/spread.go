package clients

import (
	"io"
	"net/url"
	"sync"

	"github.com/PuerkitoBio/goquery"
)

// spread fetches the seeds and all pages reachable from them, each in its own goroutine: with the
// transports below, they wait there. add is that of links. get returns the links of a page, whose
// URL may differ from the requested one.
func spread(
	seeds []string, add func(page, link string) (url string, added bool),
	get func(url string) (page string, found []string),
) {
	var group sync.WaitGroup
	var visit func(page, link string)
	visit = func(page, link string) {
		if url, added := add(page, link); added {
			group.Go(func() {
				page, found := get(url)
				for _, link := range found {
					visit(page, link)
				}
			})
		}
	}
	for _, seed := range seeds {
		visit(seed, "")
	}
	group.Wait()
}

// hrefs returns the links of an HTML page, as written.
func hrefs(body io.Reader) (found []string) {
	doc, err := goquery.NewDocumentFromReader(body)
	if err != nil {
		return nil
	}
	doc.Find("a[href]").Each(func(_ int, s *goquery.Selection) {
		found = append(found, s.AttrOr("href", ""))
	})
	return found
}

// plainLinks is the filter of crawlers that use only net/url. Its methods are safe for concurrent
// use.
type plainLinks struct{ seen sync.Map }

func (l *plainLinks) add(page, link string) (string, bool) {
	base, err := url.Parse(page)
	if err != nil {
		return "", false
	}
	to, err := base.Parse(link)
	if err != nil {
		return "", false
	}
	_, known := l.seen.LoadOrStore(to.String(), true)
	return to.String(), !known
}
