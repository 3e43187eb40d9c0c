package simhash_test

import (
	"fmt"

	"github.com/spinneret-go/spinneret/dedupe/simhash"
)

func Example() {
	before := simhash.Of([]byte("Visitor 1041. Updated on 3 May 2026. The library opens at nine."))
	for _, text := range []string{
		"Visitor 1977. Updated on 4 June 2026. The library opens at nine.",
		"Visitor 1978. Updated on 4 June 2026. The library is closed for repairs.",
	} {
		fmt.Println(before.Changed(simhash.Of([]byte(text))) > 0.02)
	}
	// Output:
	// false
	// true
}
