package main

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gocolly/colly/v2"
)

// crawlWithColly follows all links from some pages, as colly's documentation shows it. It cuts
// fragments off, for colly would ask for a page once more for each of them.
func crawlWithColly(through string, limit colly.LimitRule, seeds []string) error {
	proxy, err := url.Parse(through)
	if err != nil {
		return err
	}
	c := colly.NewCollector(colly.Async())
	c.WithTransport(&http.Transport{
		Proxy: http.ProxyURL(proxy), MaxIdleConnsPerHost: 200, MaxIdleConns: 200,
	})
	c.IgnoreRobotsTxt = false
	if err := c.Limit(&limit); err != nil {
		return err
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		link, _, _ := strings.Cut(e.Attr("href"), "#")
		_ = e.Request.Visit(link) // it tells of each link that was seen before
	})
	for _, seed := range seeds {
		if err := c.Visit(seed); err != nil {
			return err
		}
	}
	c.Wait()
	return nil
}
