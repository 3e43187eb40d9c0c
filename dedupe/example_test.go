package dedupe_test

import (
	"fmt"

	"github.com/spinneret-go/spinneret/dedupe"
)

func Example() {
	seen := dedupe.New(dedupe.Options{})
	for _, link := range []string{
		"https://example.com/",
		" HTTPS://Example.com:443#top",
		"https://example.com/a/../news?id=1",
		"mailto:someone@example.com",
		"https://example.com/news?id=1",
	} {
		url, err := dedupe.Canonical(link)
		switch {
		case err != nil:
			fmt.Println(err)
		case seen.Add(url):
			fmt.Println("new:", url)
		default:
			fmt.Println("old:", url)
		}
	}
	// Output:
	// new: https://example.com/
	// old: https://example.com/
	// new: https://example.com/news?id=1
	// dedupe: scheme is neither http nor https
	// old: https://example.com/news?id=1
}

func ExampleFilter() {
	const planned = 20_000
	seen := dedupe.New(dedupe.Options{Capacity: planned, Rate: 0.01, Recent: 1000})
	for i := range planned {
		seen.Add(fmt.Sprintf("https://example.com/%d", i))
	}
	s := seen.Stats()
	fmt.Printf("%d of the latest URLs, %.1f bits for each older one\n",
		s.Recent, float64(s.Bits)/float64(s.Capacity))
	fmt.Println("error within the plan:", s.Error <= 0.01)

	for i := range planned {
		seen.Add(fmt.Sprintf("https://example.net/%d", i))
	}
	fmt.Println("error within the plan:", seen.Stats().Error <= 0.01)
	// Output:
	// 1000 of the latest URLs, 9.6 bits for each older one
	// error within the plan: true
	// error within the plan: false
}

func ExampleSite() {
	for _, url := range []string{
		"https://www.news.example.co.uk:8443/today",
		"https://someone.github.io/",
		"http://192.0.2.1/",
	} {
		fmt.Println(dedupe.Host(url), "belongs to", dedupe.Site(url))
	}
	// Output:
	// www.news.example.co.uk belongs to example.co.uk
	// someone.github.io belongs to someone.github.io
	// 192.0.2.1 belongs to 192.0.2.1
}
