package optimal_test

import (
	"fmt"

	"github.com/spinneret-go/spinneret/revisit/optimal"
)

func Example() {
	pages := []optimal.Page{{Rate: 2}, {Rate: 0.5}, {Rate: 0.1}}
	archive, _ := optimal.Allocate(pages, optimal.Budget{Visits: 1.3})
	fresh, _ := optimal.Freshen(pages, optimal.Budget{Visits: 1.3})
	fmt.Printf("%.2f\n%.2f\n", archive, fresh)
	// Output:
	// [1.00 0.25 0.05]
	// [0.46 0.55 0.29]
}
