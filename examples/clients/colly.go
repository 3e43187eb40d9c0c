package clients

import (
	"net/http"

	"github.com/gocolly/colly/v2"
)

func collyBefore(seeds []string, web http.RoundTripper) {
	c := colly.NewCollector(colly.Async())
	c.WithTransport(web)
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		_ = e.Request.Visit(e.Attr("href"))
	})
	for _, seed := range seeds {
		_ = c.Visit(seed)
	}
	c.Wait()
}

func collyAfter(seeds []string, web http.RoundTripper) {
	seen := newLinks()
	c := colly.NewCollector(colly.Async(), colly.UserAgent(userAgent))
	c.WithTransport(web)
	c.SetRequestTimeout(0)   // it would include the politeness delay
	c.AllowURLRevisit = true // seen filters
	c.SetRedirectHandler(seen.redirect)
	visit := func(page, link string) {
		if url, added := seen.add(page, link); added {
			_ = c.Visit(url)
		}
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		visit(e.Request.URL.String(), e.Attr("href"))
	})
	for _, seed := range seeds {
		visit(seed, "")
	}
	c.Wait()
}
