package clients

import (
	"net/http"
	"net/url"

	"github.com/PuerkitoBio/goquery"
)

func goqueryBefore(seeds []string, web http.RoundTripper) {
	client := &http.Client{Transport: web}
	seen := map[string]bool{}
	for queue := seeds; len(queue) > 0; queue = queue[1:] {
		if seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		res, err := client.Get(queue[0])
		if err != nil {
			continue
		}
		doc, err := goquery.NewDocumentFromReader(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 {
			continue
		}
		doc.Find("a[href]").Each(func(_ int, s *goquery.Selection) {
			if link, err := url.Parse(s.AttrOr("href", "")); err == nil {
				queue = append(queue, res.Request.URL.ResolveReference(link).String())
			}
		})
	}
}

func goqueryAfter(seeds []string, web http.RoundTripper) {
	seen := newLinks()
	client := &http.Client{Transport: web, CheckRedirect: seen.redirect}
	spread(seeds, seen.add, func(url string) (page string, found []string) {
		res, err := client.Get(url)
		if err != nil {
			return url, nil
		}
		defer res.Body.Close()
		doc, err := goquery.NewDocumentFromReader(res.Body)
		if err != nil || res.StatusCode != 200 {
			return url, nil
		}
		doc.Find("a[href]").Each(func(_ int, s *goquery.Selection) {
			found = append(found, s.AttrOr("href", ""))
		})
		return res.Request.URL.String(), found
	})
}
