package retryafter_test

import (
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/retryafter"
)

func header(fields ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return h
}

// TestRFC9110 covers section 10.2.3, Retry-After.
func TestRFC9110(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const noon = "Thu, 01 Jan 2026 12:00:00 GMT"
	for name, tt := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"no header":                      {header(), 0},
		"delay-seconds":                  {header("Retry-After", "120"), 2 * time.Minute},
		"zero":                           {header("Retry-After", "0"), 0},
		"white space":                    {header("Retry-After", " 7 "), 7 * time.Second},
		"HTTP-date":                      {header("Retry-After", "Thu, 01 Jan 2026 12:00:30 GMT"), 30 * time.Second},
		"an obsolete HTTP-date":          {header("Retry-After", "Thursday, 01-Jan-26 12:00:30 GMT"), 30 * time.Second},
		"a date in asctime format":       {header("Retry-After", "Thu Jan  1 12:00:30 2026"), 30 * time.Second},
		"an HTTP-date that has passed":   {header("Retry-After", "Thu, 01 Jan 2026 11:00:00 GMT"), 0},
		"a clock that is an hour ahead":  {header("Retry-After", "Thu, 01 Jan 2026 13:00:30 GMT", "Date", "Thu, 01 Jan 2026 13:00:00 GMT"), 30 * time.Second},
		"a clock that is an hour behind": {header("Retry-After", "Thu, 01 Jan 2026 11:00:30 GMT", "Date", "Thu, 01 Jan 2026 11:00:00 GMT"), 30 * time.Second},
		"an invalid Date":                {header("Retry-After", "Thu, 01 Jan 2026 12:00:30 GMT", "Date", "noon"), 30 * time.Second},
		"seconds do not depend on Date":  {header("Retry-After", "60", "Date", noon), time.Minute},
		"a negative number":              {header("Retry-After", "-5"), 0},
		"a fraction":                     {header("Retry-After", "1.5"), 0},
		"words":                          {header("Retry-After", "tomorrow"), 0},
		"a hundred years":                {header("Retry-After", "3155760000"), 3155760000 * time.Second},
		"more than a Duration":           {header("Retry-After", "9223372037"), time.Duration(math.MaxInt64)},
		"more than a number":             {header("Retry-After", "99999999999999999999999999"), time.Duration(math.MaxInt64)},
		"the year 9999":                  {header("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"), time.Duration(math.MaxInt64)},
	} {
		t.Run("10.2.3-"+name, func(t *testing.T) {
			require.Equal(t, tt.want, retryafter.Of(tt.header, now))
		})
	}
}

// FuzzOf checks that a delay is never negative, and that seconds are exact.
func FuzzOf(f *testing.F) {
	for _, value := range []string{"120", "Thu, 01 Jan 2026 12:00:30 GMT", "-1", "", "1e9", "٣"} {
		f.Add(value, "Thu, 01 Jan 2026 12:00:00 GMT")
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		got := retryafter.Of(http.Header{"Retry-After": {value}, "Date": {date}}, now)
		if got < 0 {
			t.Errorf("Of(%q) = %v", value, got)
		}
		if seconds, err := strconv.ParseUint(value, 10, 32); err == nil && got != time.Duration(seconds)*time.Second {
			t.Errorf("Of(%q) = %v", value, got)
		}
	})
}
