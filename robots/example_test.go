package robots_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spinneret-go/spinneret/robots"
)

func Example() {
	body := `User-agent: *
Crawl-delay: 2.5
Disallow: /private/
Allow: /private/press/*.html$

Sitemap: https://example.com/sitemap.xml
`
	file := robots.FromResponse(200, []byte(body))
	rules := file.Rules("examplebot")
	for _, url := range []string{
		"https://example.com/",
		"https://example.com/private/plans.html",
		"https://example.com/private/press/today.html",
	} {
		fmt.Println(rules.Allowed(url), url)
	}
	delay, _ := rules.Delay()
	fmt.Println(delay, file.Sitemaps())
	// Output:
	// true https://example.com/
	// false https://example.com/private/plans.html
	// true https://example.com/private/press/today.html
	// 2.5s [https://example.com/sitemap.xml]
}

func ExampleRules_Match() {
	file := robots.Parse([]byte("User-agent: *\nAllow: /\nDisallow: /*?print="))
	verdict := file.Rules("examplebot").Match("/page?print=1")
	fmt.Printf("%+v\n", verdict)
	// Output:
	// {Allowed:false Pattern:/*?print= Line:3}
}

func ExampleFile_Rules() {
	file := robots.Parse([]byte("User-agent: examplebot\nDisallow: /cgi-bin/\n\n" +
		"User-agent: *\nDisallow: /"))
	for _, agent := range []string{
		"examplebot",
		"ExampleBot/2.1 (+https://example.com/bot)",
		"Mozilla/5.0 (compatible; examplebot/2.1; +https://example.com/bot)",
		"otherbot",
	} {
		fmt.Println(file.Rules(agent).Allowed("/page"), agent)
	}
	// Output:
	// true examplebot
	// true ExampleBot/2.1 (+https://example.com/bot)
	// true Mozilla/5.0 (compatible; examplebot/2.1; +https://example.com/bot)
	// false otherbot
}

func ExampleFromResponse() {
	for _, status := range []int{404, 429, 503, 0} {
		fmt.Println(status, robots.FromResponse(status, nil).Rules("examplebot").Allowed("/"))
	}
	// Output:
	// 404 true
	// 429 false
	// 503 false
	// 0 false
}

func ExampleLocate() {
	where, err := robots.Locate("HTTPS://user@Example.com:443/a/b?c#d")
	fmt.Println(where, err)
	// Output:
	// https://example.com/robots.txt <nil>
}

// Get fetches what it needs by the function that it is given, here from a web of one file.
func ExampleCache_Get() {
	fetch := func(ctx context.Context, req robots.Request) (robots.Response, error) {
		fmt.Println("GET", req.URL)
		return robots.Response{Status: 200, Body: []byte("User-agent: *\nDisallow: /private/")}, nil
	}
	cache := robots.NewCache(robots.Options{Agent: "examplebot"})
	for _, url := range []string{"https://example.com/", "https://example.com/private/page"} {
		rules, err := cache.Get(context.Background(), url, fetch)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(rules.Allowed(url), url)
	}
	// Output:
	// GET https://example.com/robots.txt
	// true https://example.com/
	// false https://example.com/private/page
}

// A crawler that schedules its requests itself uses Lookup and Store, which never wait.
func ExampleCache_Lookup() {
	cache := robots.NewCache(robots.Options{Agent: "examplebot"})
	const url = "https://example.com/page"
	now := time.Now()

	answer, _ := cache.Lookup(url, now)
	fmt.Println(answer.State == robots.Needed, answer.Request.URL)
	another, _ := cache.Lookup(url, now)
	fmt.Println(another.State == robots.InFlight)

	moved := http.Header{"Location": {"https://www.example.com/robots.txt"}}
	answer, _ = cache.Store(answer.Request, robots.Response{Status: 301, Header: moved}, now)
	fmt.Println(answer.State == robots.Needed, answer.Request.URL)
	answer, _ = cache.Store(answer.Request, robots.Response{Status: 404}, now)
	fmt.Println(answer.State == robots.Fresh, answer.Rules.Allowed(url), answer.Until.Sub(now))
	// Output:
	// true https://example.com/robots.txt
	// true
	// true https://www.example.com/robots.txt
	// true true 24h0m0s
}

func ExampleCache_Entries() {
	old := robots.NewCache(robots.Options{})
	answer, _ := old.Lookup("https://example.com/", time.Now())
	_, _ = old.Store(answer.Request, robots.Response{Status: 404}, time.Now())

	var kept [][]byte // in a file, or a database
	for entry := range old.Entries() {
		data, _ := entry.MarshalBinary()
		kept = append(kept, data)
	}

	cache := robots.NewCache(robots.Options{})
	for _, data := range kept {
		var entry robots.Entry
		if err := entry.UnmarshalBinary(data); err == nil {
			_ = cache.Restore(entry)
		}
	}
	answer, _ = cache.Lookup("https://example.com/page", time.Now())
	fmt.Println(answer.State == robots.Fresh, answer.Rules.Allowed("/page"))
	// Output:
	// true true
}

func ExampleFromHeader() {
	h := http.Header{"X-Robots-Tag": {
		"noarchive, unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT",
		"examplebot: nofollow, otherbot: noindex",
	}}
	tag := robots.FromHeader(h, "examplebot").Merge(
		robots.FromMeta("robots", "max-snippet:20", "examplebot"))
	fmt.Println(tag.NoArchive, tag.NoFollow, tag.NoIndex)
	fmt.Println(tag.MaxSnippet, tag.Unavailable)
	// Output:
	// true true false
	// {true 20} 2025-06-25 15:00:00 +0000 UTC
}

func ExampleRules_Usage() {
	rules := robots.Parse([]byte("User-agent: *\nAllow: /\nContent-Usage: train-ai=n\n" +
		"Content-Usage: /open/ train-ai=y\n")).Rules("examplebot")
	fmt.Println(rules.Usage("https://example.com/"))
	fmt.Println(rules.Usage("https://example.com/open/page"))
	// Output:
	// [{train-ai false}]
	// [{train-ai true}]
}

func ExampleFile_Records() {
	file := robots.Parse([]byte("User-agent: *\nLLM-Policy: ask # first\nSitemap: /map.xml\n"))
	for record := range file.Records() {
		fmt.Printf("%+v\n", record)
	}
	fmt.Println(file.SitemapURLs("https://example.com/robots.txt"))
	// Output:
	// {Group:1 Line:2 Key:LLM-Policy Value:ask}
	// {Group:1 Line:3 Key:Sitemap Value:/map.xml}
	// [https://example.com/map.xml]
}
