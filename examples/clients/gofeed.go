package clients

import (
	"context"
	"io"
	"net/http"

	"github.com/mmcdole/gofeed"
)

func gofeedBefore(feeds []string, web http.RoundTripper) {
	client := &http.Client{Transport: web}
	parser := gofeed.NewParser()
	parser.Client = client
	for _, url := range feeds {
		feed, err := parser.ParseURL(url)
		if err != nil {
			continue
		}
		for _, item := range feed.Items {
			if resp, err := client.Get(item.Link); err == nil {
				save(resp)
			}
		}
	}
}

func gofeedAfter(feeds []string, web http.RoundTripper) {
	seen := newLinks()
	client := &http.Client{Transport: web, CheckRedirect: seen.redirect}
	parser := gofeed.NewParser()
	parser.UserAgent = userAgent
	parser.Client = &http.Client{Transport: web} // a feed is fetched however often it is wanted
	for _, url := range feeds {
		// ParseURL has a limit of 30 seconds, which would count the time that a request waits.
		feed, err := parser.ParseURLWithContext(url, context.Background())
		if err != nil {
			continue
		}
		for _, item := range feed.Items {
			if link, added := seen.add(url, item.Link); added {
				if resp, err := client.Get(link); err == nil {
					save(resp)
				}
			}
		}
	}
}

// save stands for the work of a feed reader with an article.
func save(resp *http.Response) {
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}
