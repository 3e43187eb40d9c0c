package robotstag_test

import (
	"fmt"
	"net/http"
	"time"

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

func ExampleDirectives_MayIndex() {
	page := robotstag.FromMeta("robots", "unavailable_after: 2025-06-25", "examplebot")
	now := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	fmt.Println(page.MayIndex(now, false), page.MayIndex(now.AddDate(0, 1, 0), false))
	// Output:
	// true false
}
