package urlfilter_test

import (
	"fmt"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
)

func Example() {
	scope := urlfilter.Scope{Reach: urlfilter.Domain}
	seeds, err := urlfilter.Seeds(strings.NewReader("www.example.com # no comment\nexample.com/news\n"), "seeds.txt")
	fmt.Println(seeds, err)
	for _, seed := range seeds {
		scope.Add(seed)
	}
	var deny urlfilter.List
	err = deny.Reload(strings.NewReader(`
# somebody asked for this
private.example.com
+https://private.example.com/press/
`), "deny.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, url := range []string{
		"https://www.example.com/news",
		"https://www.example.com/a/b/a/b/a/b/a/b",
		"https://www.example.org/",
		"https://private.example.com/",
		"https://private.example.com/press/2026",
	} {
		why := urlfilter.Format{}.Check(url)
		verdict := deny.Match(url)
		switch {
		case why != urlfilter.Fine:
			fmt.Println("rejected:", why)
		case !scope.Holds(url):
			fmt.Println("out of scope")
		case !verdict.Allowed:
			fmt.Printf("denied by line %d: %s\n", verdict.Line, verdict.Entry)
		default:
			fmt.Println("fine")
		}
	}
	// Output:
	// [https://example.com/news] urlfilter: seeds.txt:1: "www.example.com # no comment" is not an http(s) URL
	// fine
	// rejected: path repeats itself
	// out of scope
	// denied by line 3: private.example.com
	// fine
}

// A list can be replaced while it is in use. If the new list has a bad line, the old one stays.
func ExampleList_Reload() {
	var list urlfilter.List
	for _, text := range []string{"a.example", "not a host", "b.example"} {
		if err := list.Reload(strings.NewReader(text), "deny.txt"); err != nil {
			fmt.Println(err)
		}
		fmt.Println(list.Match("https://a.example/").Allowed)
	}
	// Output:
	// false
	// urlfilter: deny.txt:1: "not a host" is neither a host, nor an http(s) URL, nor a /pattern/
	// false
	// true
}
