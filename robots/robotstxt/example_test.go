package robotstxt_test

import (
	"fmt"
	"slices"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

func Example() {
	body := `User-agent: *
Crawl-delay: 2.5
Disallow: /private/
Allow: /private/press/*.html$

Sitemap: https://example.com/sitemap.xml
`
	file := robotstxt.Parse([]byte(body))
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
	file := robotstxt.Parse([]byte("User-agent: *\nAllow: /\nDisallow: /*?print="))
	verdict := file.Rules("examplebot").Match("/page?print=1")
	fmt.Printf("%+v\n", verdict)
	// Output:
	// {Allowed:false Pattern:/*?print= Line:3}
}

func ExampleFile_Rules() {
	file := robotstxt.Parse([]byte("User-agent: examplebot\nDisallow: /cgi-bin/\n\n" +
		"User-agent: *\nDisallow: /"))
	for _, agent := range []string{
		"examplebot",
		"ExampleBot/2.1 (+https://example.com/bot)",
		"Example Bot",
		"otherbot",
	} {
		fmt.Println(file.Rules(agent).Allowed("/page"))
	}
	// Output:
	// true
	// true
	// false
	// false
}

// Which rules a file has for a crawler, and whether they are its own.
func ExampleRules_Patterns() {
	file := robotstxt.Parse([]byte("User-agent: *\nDisallow: /\n\nUser-agent: examplebot\n" +
		"Disallow: /cgi-bin/\nAllow: /*.css$"))
	rules := file.Rules("examplebot")
	fmt.Println(rules.Named(), file.Rules("otherbot").Named())
	for rule := range rules.Patterns() {
		fmt.Printf("%+v\n", rule)
	}
	// Output:
	// true false
	// {Allow:false Pattern:/cgi-bin/ Line:5}
	// {Allow:true Pattern:/*.css$ Line:6}
}

// Records that the package gives no meaning to are there, too.
func ExampleRules_Records() {
	file := robotstxt.Parse([]byte("User-agent: *\nLLM-Policy: ask # first\nSitemap: /map.xml\n"))
	for record := range file.Rules("examplebot").Records() {
		fmt.Printf("%+v\n", record)
	}
	fmt.Println(slices.Collect(file.SitemapURLs("https://example.com/robots.txt")))
	// Output:
	// {Line:2 Key:LLM-Policy Value:ask}
	// [https://example.com/map.xml]
}
