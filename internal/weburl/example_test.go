package weburl_test

import (
	"fmt"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

func Example() {
	page, err := weburl.Parse("https://example.com/news/2026/", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, href := range []string{"../about us", `\\Bücher.example:443\x#top`, "//a b/"} {
		link, err := weburl.Parse(href, &page)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(string(link.Append(nil, false)))
	}
	// Output:
	// https://example.com/news/about%20us
	// https://xn--bcher-kva.example/x
	// weburl: bad host: forbidden character
}
