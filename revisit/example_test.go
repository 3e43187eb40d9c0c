package revisit_test

import (
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/revisit"
)

func Example() {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var h revisit.History // comes from the crawler's store, in 40 bytes
	policy := revisit.Bayes{Max: 60 * 24 * time.Hour}

	for _, changed := range []bool{false, true, true, true, false} {
		h = h.Observe(revisit.Visit{At: now, Changed: changed})
		wait := policy.Next(h)
		date, days := now.Format(time.DateOnly), int(wait.Hours()/24)
		fmt.Println(date, "changed:", changed, "again in days:", days)
		now = now.Add(wait)
	}
	// Output:
	// 2026-11-01 changed: false again in days: 17
	// 2026-11-18 changed: true again in days: 10
	// 2026-11-29 changed: true again in days: 6
	// 2026-12-05 changed: true again in days: 4
	// 2026-12-10 changed: false again in days: 9
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

func ExampleDemand() {
	var host revisit.Demand
	for range 1000 {
		host.Add(24 * time.Hour) // a thousand pages, each once a day
	}
	fmt.Println("with 500 visits a day, stretch by", host.Stretch(500))
	// Output:
	// with 500 visits a day, stretch by 2
}

// A host publishes its 500 pages on the 15th of each month, all at once. Ten of them are looked at
// each day.
func ExamplePulse() {
	var host revisit.Pulse
	var pages [500]revisit.History
	published := func(from, to time.Time) bool {
		due := time.Date(to.Year(), to.Month(), 15, 0, 0, 0, 0, time.UTC)
		return !due.After(to) && due.After(from)
	}
	day := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for n := range 2000 {
		page := &pages[n%len(pages)]
		v := revisit.Visit{At: day, Changed: published(page.Last(), day)}
		v.Elapsed = host.Observe(*page, v)
		*page = page.Observe(v)
		if n%10 == 9 {
			day = day.Add(24 * time.Hour)
		}
	}
	at := func(day int) time.Time { return time.Date(2026, 7, day, 0, 0, 0, 0, time.UTC) }
	quiet, busy := host.Elapsed(at(3), at(13)), host.Elapsed(at(13), at(17))
	fmt.Println("more happened in 4 days around the 15th than in 10 days before:", busy > quiet)
	// Output:
	// more happened in 4 days around the 15th than in 10 days before: true
}

func ExampleHints() {
	var host revisit.Hints
	var page revisit.History
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range 60 { // its sitemap names each change, and nothing else
		v := revisit.Visit{At: at, Changed: n%2 == 0}
		host.Observe(page, v, (n+1)%2)
		page = page.Observe(v)
		at = at.Add(10 * 24 * time.Hour)
	}
	policy, week := revisit.Bayes{}, 7*24*time.Hour
	silent, hinted := policy.Hinted(page, week, host, 0), policy.Hinted(page, week, host, 1)
	fmt.Println("visit after a week of silence:", silent >= revisit.DefaultPrice)
	fmt.Println("visit after a hint:", hinted >= revisit.DefaultPrice)
	// Output:
	// visit after a week of silence: false
	// visit after a hint: true
}
