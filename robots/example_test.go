package robots_test

import (
	"fmt"

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
