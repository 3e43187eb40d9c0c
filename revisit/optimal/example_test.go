package optimal_test

import (
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/revisit/optimal"
)

func Example() {
	const day = 24 * time.Hour
	rate := optimal.Rate([]optimal.Gap{{2 * day, true}, {2 * day, false}, {day, true}, {3 * day, false}})
	fmt.Printf("%.2f changes per day\n", rate)
	// Output:
	// 0.31 changes per day
}
