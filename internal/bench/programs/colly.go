package programs

import (
	"net/http"
	"strings"

	"github.com/gocolly/colly/v2"
)

// Colly follows all links from a page, through the proxy of the environment, as in colly's
// documentation. It obeys robots.txt, which is not the default, and removes fragments, because colly
// would request a page again for each of them.
func Colly(seed string, rules ...*colly.LimitRule) error {
	c := colly.NewCollector(colly.Async())
	c.WithTransport(&http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 200, MaxIdleConns: 200,
	})
	c.IgnoreRobotsTxt = false
	if err := c.Limits(rules); err != nil {
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
