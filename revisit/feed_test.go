package revisit

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A polled is a year of visits to content that changes at a steady pace.
type polled struct {
	waits               []time.Duration
	month, caught, year int // visits in 28 days, those that found a change, visits in a year
}

// poll follows a policy. Told content has a LastModified.
func poll(p Policy, every time.Duration, told bool) (got polled) {
	h, last := History{}, start
	for at := start; at.Before(start.AddDate(1, 0, 0)); {
		v := Visit{At: at}
		if every > 0 {
			modified := at.Add(-at.Sub(start) % every)
			v.Changed = modified.After(last)
			if told {
				v.LastModified = modified
			}
		}
		last = at
		h = h.Observe(v)
		if at.Before(start.AddDate(0, 0, 28)) {
			got.month++
			if v.Changed {
				got.caught++
			}
		}
		got.year++
		got.waits = append(got.waits, p.Next(h))
		at = at.Add(p.Next(h))
	}
	return got
}

// The table in the documentation of Feed is what happens.
func TestFeedKeepsItsTable(t *testing.T) {
	source, err := os.ReadFile("feed.go")
	require.NoError(t, err)
	for _, tt := range []struct {
		changes string
		every   time.Duration
	}{
		{"hourly", time.Hour}, {"4-hourly", 4 * time.Hour}, {"daily", dayLong}, {"weekly", 7 * dayLong}, {"never", 0},
	} {
		got := poll(Feed(), tt.every, false)
		row := tt.changes
		for _, wait := range got.waits[:4] {
			row += fmt.Sprintf(" %.0fh", wait.Hours())
		}
		row += fmt.Sprintf(" %d visits", got.month)
		if tt.every > 0 {
			row += fmt.Sprintf(", %d catch", got.caught)
		}
		year := fmt.Sprint(got.year)
		if len(year) > 3 {
			year = year[:len(year)-3] + "," + year[len(year)-3:]
		}
		row += " " + year + " visits"
		require.Contains(t, strings.Join(strings.Fields(string(source)), " "), row)
	}
	require.Equal(t, 6, poll(Bayes{Max: 7 * dayLong}, time.Hour, false).month)
	require.Equal(t, 145, poll(Feed(), 4*time.Hour, true).month)
	require.Equal(t, 506, poll(Feed(), time.Minute, false).month)
}
