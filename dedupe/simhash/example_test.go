package simhash_test

import (
	"fmt"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/simhash"
)

func Example() {
	before := simhash.Of([]byte("Visitor 1041. Updated on 3 May 2026. The library opens at nine."))
	for _, text := range []string{
		"Visitor 1977. Updated on 4 June 2026. The library opens at nine.",
		"Visitor 1978. Updated on 4 June 2026. The library is closed for repairs.",
	} {
		fmt.Println(before.Compare(simhash.Of([]byte(text))))
	}
	// Output:
	// same
	// real
}

// To find copies of a page under other URLs, choose a threshold: here a third of the distance
// between unrelated texts.
func ExamplePrint_Distance() {
	article := strings.Repeat("The library on the hill opens at nine and lends books to all. ", 3) +
		"It was built by the people of the town, who still read there on rainy afternoons."
	seen := simhash.Of([]byte(article))
	for _, text := range []string{
		"Print version. " + article,
		"A recipe for bread: flour, water, salt, yeast, and a whole day of patience before the oven.",
	} {
		fmt.Println(seen.Distance(simhash.Of([]byte(text))) <= 32/3)
	}
	// Output:
	// true
	// false
}
