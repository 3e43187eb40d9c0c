package robotstag_test

import (
	"fmt"
	"net/http"

	"github.com/spinneret-go/spinneret/robots/robotstag"
)

func Example() {
	h := http.Header{"X-Robots-Tag": {
		"noarchive, unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT",
		"examplebot: nofollow, otherbot: noindex",
	}}
	page := robotstag.FromHeader(h, "examplebot")
	page = page.Merge(robotstag.FromMeta("robots", "max-snippet:20", "examplebot"))
	fmt.Println(page.NoArchive, page.NoFollow, page.NoIndex)
	fmt.Println(page.MaxSnippet, page.Unavailable)
	// Output:
	// true true false
	// {true 20} 2025-06-25 15:00:00 +0000 UTC
}
