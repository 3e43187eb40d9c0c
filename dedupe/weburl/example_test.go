package weburl_test

import (
	"errors"
	"fmt"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

func Example() {
	page, err := weburl.Canonical("HTTP://WWW.Example.com:80/a/../news/#top")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(page)
	for _, link := range []string{"../about us", `\\other.example\x`, "mailto:someone@example.com"} {
		url, err := weburl.Resolve(page, link)
		if errors.Is(err, weburl.ErrScheme) {
			continue // nothing to fetch
		}
		fmt.Println(url, err)
	}
	// Output:
	// http://www.example.com/news/
	// http://www.example.com/about%20us <nil>
	// http://other.example/x <nil>
}

func ExampleSteps() {
	steps := weburl.Steps{NormalizeEscapes: true, DropTracking: true}
	url, err := steps.Canonical("http://www.example.com/%7ejoe?utm_source=x")
	fmt.Println(url, err)
	// Output: http://www.example.com/~joe <nil>
}

func ExampleSite() {
	for _, url := range []string{
		"https://www.news.example.co.uk:8443/today",
		"https://someone.github.io/",
		"http://192.0.2.1/",
	} {
		fmt.Println(weburl.Host(url), "belongs to", weburl.Site(url))
	}
	// Output:
	// www.news.example.co.uk belongs to example.co.uk
	// someone.github.io belongs to someone.github.io
	// 192.0.2.1 belongs to 192.0.2.1
}

func ExampleSURT() {
	fmt.Println(weburl.SURT("http://www.example.com:8080/a?b"))
	// Output: com,example,www:8080)/a?b
}
