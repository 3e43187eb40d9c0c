package trap_test

import (
	"fmt"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter/trap"
)

// A calendar links to the next month forever, and shows the same empty page for each.
func Example() {
	limits := trap.Limits{Repeats: 20}
	contents := map[string]bool{}
	fetched := 0
	for month := range 1000 {
		url := fmt.Sprintf("https://example.com/calendar/%d/%d", 2026+month/12, month%12+1)
		if limits.Admit(url) != urlfilter.Fine {
			continue
		}
		fetched++
		page := "no events"
		limits.Fetched(url, contents["example.com "+page])
		contents["example.com "+page] = true
	}
	fmt.Println(fetched, "pages fetched")
	fmt.Println(limits.Admit("https://example.com/calendar/2199/1"))
	fmt.Println(limits.Admit("https://example.com/about") == urlfilter.Fine)
	// Output:
	// 36 pages fetched
	// pattern leads to the same pages again and again
	// true
}
