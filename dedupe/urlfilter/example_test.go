package urlfilter_test

import (
	"fmt"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
)

func Example() {
	list, err := urlfilter.Parse(strings.NewReader(`
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
		"http://printer/status",
		"https://private.example.com/",
		"https://private.example.com/press/2026",
	} {
		why := urlfilter.Format{}.Check(url)
		verdict := list.Match(url)
		switch {
		case why != urlfilter.Fine:
			fmt.Println("refused:", why)
		case !verdict.Allowed:
			fmt.Printf("denied by line %d: %s\n", verdict.Line, verdict.Entry)
		default:
			fmt.Println("fine")
		}
	}
	// Output:
	// fine
	// refused: path repeats itself
	// refused: host under no public suffix
	// denied by line 3: private.example.com
	// fine
}

func ExampleLive() {
	var live urlfilter.Live
	for _, text := range []string{"a.example", "no host at all", "b.example"} {
		if err := live.Reload(strings.NewReader(text), "deny.txt"); err != nil {
			fmt.Println(err)
		}
		fmt.Println(live.Match("https://a.example/").Allowed)
	}
	// Output:
	// false
	// urlfilter: deny.txt:1: "no host at all" is neither a host, nor an http(s) URL, nor a /pattern/
	// false
	// true
}
