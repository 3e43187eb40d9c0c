//go:build linux

package main

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gocolly/colly/v2"
)

// crawlWithColly follows all links from a page, as in colly's documentation. It removes
// fragments, because colly would request a page again for each of them.
func crawlWithColly(through, seed string) error {
	proxy, err := url.Parse(through)
	if err != nil {
		return err
	}
	c := colly.NewCollector(colly.Async())
	c.WithTransport(&http.Transport{
		Proxy: http.ProxyURL(proxy), MaxIdleConnsPerHost: 200, MaxIdleConns: 200,
	})
	c.IgnoreRobotsTxt = false
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 200}); err != nil {
		return err
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		link, _, _ := strings.Cut(e.Attr("href"), "#")
		_ = e.Request.Visit(link) // it reports each link that was seen before
	})
	if err := c.Visit(seed); err != nil {
		return err
	}
	c.Wait()
	return nil
}
