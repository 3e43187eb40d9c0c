package revisit_test

import (
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/revisit"
)

func Example() {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var h revisit.History // comes from the crawler's store, in 32 bytes
	policy := revisit.Bayes{Max: 60 * 24 * time.Hour}

	for _, changed := range []bool{false, true, true, true, false} {
		h = h.Observe(revisit.Visit{At: now, Changed: changed})
		wait := policy.Next(h)
		date, days := now.Format(time.DateOnly), int(wait.Hours()/24)
		fmt.Println(date, "changed:", changed, "again in days:", days)
		now = now.Add(wait)
	}
	// Output:
	// 2026-11-01 changed: false again in days: 16
	// 2026-11-17 changed: true again in days: 9
	// 2026-11-26 changed: true again in days: 5
	// 2026-12-02 changed: true again in days: 3
	// 2026-12-06 changed: false again in days: 7
}

func ExampleMLE() {
	at := func(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }
	h := revisit.History{}.Observe(revisit.Visit{At: at(1)})
	policy := revisit.MLE{Low: 0.1, High: 10, Second: 15 * 24 * time.Hour}
	fmt.Println(policy.Next(h))
	h = h.Observe(revisit.Visit{At: at(16)})
	h = h.Observe(revisit.Visit{At: at(21), Changed: true})
	fmt.Println(policy.Next(h).Round(time.Hour)) // 5 days / ln(20/15)
	// Output:
	// 360h0m0s
	// 417h0m0s
}

func ExampleFit() {
	// Half of the pages seen so far on this host changed within a day.
	var pages []revisit.History
	for n := range 100 {
		h := revisit.History{}.Observe(revisit.Visit{At: time.Unix(1e9, 0)})
		pages = append(pages, h.Observe(revisit.Visit{At: time.Unix(1e9+86400, 0), Changed: n%2 == 0}))
	}
	fresh := revisit.History{}.Observe(revisit.Visit{At: time.Unix(1e9, 0)})
	before := revisit.Bayes{}.Next(fresh)
	after := revisit.Bayes{Prior: revisit.Fit(pages, revisit.Prior{})}.Next(fresh)
	fmt.Println("a new page is visited sooner:", after < before)
	// Output:
	// a new page is visited sooner: true
}

func ExampleLoad() {
	var host revisit.Load
	for range 1000 {
		host.Book(24 * time.Hour) // a thousand pages, each once a day
	}
	fmt.Println("with 500 visits a day, stretch by", host.Stretch(500))
	// Output:
	// with 500 visits a day, stretch by 2
}

func ExampleAllocate() {
	pages := []revisit.Page{{Rate: 2}, {Rate: 0.5}, {Rate: 0.1}}
	archive, _ := revisit.Allocate(pages, revisit.Budget{Visits: 1.3})
	fresh, _ := revisit.Freshen(pages, revisit.Budget{Visits: 1.3})
	fmt.Printf("%.2f\n%.2f\n", archive, fresh)
	// Output:
	// [1.00 0.25 0.05]
	// [0.46 0.55 0.29]
}
