package clients

import (
	"io"
	"net/url"
	"sync"

	"github.com/PuerkitoBio/goquery"
)

// spread fetches the seeds and whatever they lead to, every page in a goroutine of its own: with
// the transports below, they wait there. add is that of links, and get returns what a page, which
// may have another URL than was asked for, links to.
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

// hrefs returns what an HTML page links to, as it is written there.
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

// plainLinks is what crawlers have that know no better than net/url. Its methods are safe for
// concurrent use.
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
