package main

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/PuerkitoBio/fetchbot"
	"github.com/PuerkitoBio/goquery"
	"github.com/gocolly/colly/v2"

	"github.com/spinneret-go/spinneret/internal/bench/programs"
)

// crawlWith crawls with a library, as its documentation shows it.
func crawlWith(library, seed string, hosts []string) error {
	switch library {
	case "fetchbot":
		return crawlWithFetchbot(seed)
	case "colly, no limits":
		return programs.Colly(seed)
	case "colly, one rule":
		return programs.Colly(seed, &colly.LimitRule{DomainGlob: "*", Parallelism: 1, Delay: delay})
	case "colly, rule per host":
		var rules []*colly.LimitRule
		for _, host := range hosts {
			rules = append(rules, &colly.LimitRule{DomainGlob: host, Parallelism: 1, Delay: delay})
		}
		return programs.Colly(seed, rules...)
	}
	return fmt.Errorf("no library %q", library)
}

// crawlWithFetchbot remembers what was sent, as in the complete example of its repository.
func crawlWithFetchbot(seed string) error {
	var mu sync.Mutex
	sent := map[string]bool{seed: true}
	f := fetchbot.New(fetchbot.HandlerFunc(func(ctx *fetchbot.Context, resp *http.Response, err error) {
		if err != nil {
			return
		}
		doc, err := goquery.NewDocumentFromReader(resp.Body)
		if err != nil {
			return
		}
		base := ctx.Cmd.URL()
		doc.Find("a[href]").Each(func(_ int, s *goquery.Selection) {
			link, _ := s.Attr("href")
			to, err := base.Parse(link)
			if err != nil || to.Scheme != "http" {
				return
			}
			to.Fragment = ""
			mu.Lock()
			known := sent[to.String()]
			sent[to.String()] = true
			mu.Unlock()
			if !known {
				_, _ = ctx.Q.SendStringGet(to.String()) // an error says that the queue is closed
			}
		})
	}))
	f.CrawlDelay = delay
	f.AutoClose = true
	f.WorkerIdleTTL = 5 * delay
	q := f.Start()
	if _, err := q.SendStringGet(seed); err != nil {
		return err
	}
	q.Block()
	return nil
}
