package sitemap_test

import (
	"fmt"
	"strings"

	"github.com/spinneret-go/spinneret/fetch/sitemap"
)

func Example() {
	doc := `<urlset><url><loc>/intro</loc><lastmod>2005-01-01</lastmod></url></urlset>`
	for entry, err := range sitemap.Entries(strings.NewReader(doc), "http://a.test/sitemap.xml") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(entry.URL, "changed in", entry.LastMod.Year())
	}
	// Output:
	// http://a.test/intro changed in 2005
}
