package usage_test

import (
	"fmt"
	"net/http"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
	"github.com/spinneret-go/spinneret/robots/usage"
)

func Example() {
	file := robotstxt.Parse([]byte("User-agent: *\nAllow: /\nContent-Signal: search=yes, ai-train=no\n" +
		"Content-Usage: train-ai=n\nContent-Usage: /open/ train-ai=y\n"))
	rules := file.Rules("examplebot")
	fmt.Printf("%+v\n", usage.ContentSignal(rules, "https://example.com/"))
	fmt.Printf("%+v\n", usage.ContentUsage(rules, "https://example.com/open/page"))
	// Output:
	// [{Label:ai-train Allowed:false Line:3} {Label:search Allowed:true Line:3}]
	// [{Label:train-ai Allowed:true Line:5}]
}

func ExampleCombine() {
	file := []usage.Preference{{Label: "search", Allowed: true, Line: 3}}
	header := []usage.Preference{{Label: "search"}, {Label: "train-ai"}}
	fmt.Printf("%+v\n", usage.Combine(file, header))
	// Output:
	// [{Label:search Allowed:false Line:0} {Label:train-ai Allowed:false Line:0}]
}

// A crawler that is asked to pay should not look like one that was refused.
func ExampleForSale() {
	h := http.Header{"Www-Authenticate": {`License error="missing_token"`}}
	if usage.ForSale(http.StatusUnauthorized, h) {
		fmt.Println("a license is needed")
	}
	// Output:
	// a license is needed
}
