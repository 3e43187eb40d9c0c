package clients

import "net/http"

func netHTTPBefore(seeds []string, web http.RoundTripper) {
	client := &http.Client{Transport: web}
	spread(seeds, new(plainLinks).add, func(url string) (page string, found []string) {
		resp, err := client.Get(url)
		if err != nil {
			return url, nil
		}
		defer resp.Body.Close()
		return resp.Request.URL.String(), hrefs(resp.Body)
	})
}

func netHTTPAfter(seeds []string, web http.RoundTripper) {
	seen := newLinks()
	client := &http.Client{Transport: web, CheckRedirect: seen.redirect}
	spread(seeds, seen.add, func(url string) (page string, found []string) {
		resp, err := client.Get(url)
		if err != nil {
			return url, nil
		}
		defer resp.Body.Close()
		return resp.Request.URL.String(), hrefs(resp.Body)
	})
}
