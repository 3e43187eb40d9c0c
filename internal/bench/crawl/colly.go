package main

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gocolly/colly/v2"
)

// crawlWithColly follows all links from some pages, as in colly's documentation. It removes
// fragments, because colly would request a page again for each of them.
func crawlWithColly(through string, limits []*colly.LimitRule, seeds []string) error {
	proxy, err := url.Parse(through)
	if err != nil {
		return err
	}
	c := colly.NewCollector(colly.Async())
	c.WithTransport(&http.Transport{
		Proxy: http.ProxyURL(proxy), MaxIdleConnsPerHost: 200, MaxIdleConns: 200,
	})
	c.IgnoreRobotsTxt = false
	if err := c.Limits(limits); err != nil {
		return err
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		link, _, _ := strings.Cut(e.Attr("href"), "#")
		_ = e.Request.Visit(link) // it reports each link that was seen before
	})
	// Visit waits for robots.txt anyway.
	errs := make(chan error, len(seeds))
	for _, seed := range seeds {
		go func() { errs <- c.Visit(seed) }()
	}
	for range seeds {
		err = errors.Join(err, <-errs)
	}
	c.Wait()
	return err
}

// politeRules are a rule for each host: with one rule for all, hosts would wait for each other.
func politeRules(seeds []string) (rules []*colly.LimitRule) {
	for _, seed := range seeds {
		host := strings.Trim(strings.TrimPrefix(seed, "http:"), "/")
		rules = append(rules, &colly.LimitRule{DomainGlob: host, Parallelism: 1, Delay: politePause})
	}
	return rules
}
