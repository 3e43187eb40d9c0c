package httpfield_test

import (
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/httpfield"
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
			require.Equal(t, tt.want, httpfield.RetryAfter(tt.header, now))
		})
	}
}

// FuzzRetryAfter checks that a delay is never negative, and that seconds are exact.
func TestRateLimit(t *testing.T) {
	for field, want := range map[string]time.Duration{
		``:                               0,
		`"default";r=0;t=30`:             30 * time.Second,
		`"default";r=2;t=30`:             10 * time.Second,
		`"default"; t=30 ; r=2`:          10 * time.Second,
		`"default";r=50`:                 0,
		`"default";t=30`:                 0,
		`"day";r=99;t=100, "s";r=0;t=1`:  time.Second,
		`"s";r=0;t=9,"day";r=99;t=100`:   9 * time.Second,
		`"a;r=0;t=9,\"";r=1;t=2`:         time.Second,
		`"a";r=-1;t=30`:                  0,
		`"a";r=x;t=30`:                   0,
		`"a";r=0;t=-3`:                   0,
		`"a";r=0;t=99999999999999999999`: math.MaxInt64,
		`"a";r=99999999999999999999;t=3`: 0,
		`"unterminated;r=0;t=30`:         0,
		`;`:                              0,
		`,,;,`:                           0,
		`"a";r=0;t=30;pk=:cHNsAA==:;`:    30 * time.Second,
	} {
		require.Equal(t, want, httpfield.RateLimit(http.Header{"Ratelimit": {field}}), field)
	}
	require.Equal(t, 4*time.Second, httpfield.RateLimit(http.Header{
		"Ratelimit": {`"a";r=0;t=4`, `"b";r=0;t=3`},
	}))
}

// FuzzRateLimit: one quota more never shortens the wait.
func FuzzRateLimit(f *testing.F) {
	f.Add(`"day";r=99;t=100, "s";r=0`, 1)
	f.Fuzz(func(t *testing.T, field string, more int) {
		wait := func(field string) time.Duration { return httpfield.RateLimit(http.Header{"Ratelimit": {field}}) }
		without := wait(field)
		require.GreaterOrEqual(t, without, time.Duration(0))
		with := wait(field + `, "x";r=0;t=` + strconv.Itoa(more))
		require.GreaterOrEqual(t, with, without)
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"120", "Thu, 01 Jan 2026 12:00:30 GMT", "-1", "", "1e9", "٣"} {
		f.Add(value, "Thu, 01 Jan 2026 12:00:00 GMT")
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		got := httpfield.RetryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, now)
		if got < 0 {
			t.Errorf("RetryAfter(%q) = %v", value, got)
		}
		if seconds, err := strconv.ParseUint(value, 10, 32); err == nil && got != time.Duration(seconds)*time.Second {
			t.Errorf("RetryAfter(%q) = %v", value, got)
		}
	})
}

// TestFreshness covers RFC 9111, section 4.2.
func TestFreshness(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const hour, date = "Thu, 01 Jan 2026 01:00:00 GMT", "Thu, 01 Jan 2026 00:30:00 GMT"
	stated := func(left time.Duration) httpfield.Freshness {
		return httpfield.Freshness{Stated: true, Left: left}
	}
	for name, tt := range map[string]struct {
		header http.Header
		want   httpfield.Freshness
	}{
		"no fields":                   {header(), httpfield.Freshness{}},
		"an age of nothing":           {header("Age", "5"), httpfield.Freshness{}},
		"max-age":                     {header("Cache-Control", "public, Max-Age=60"), stated(time.Minute)},
		"spaces":                      {header("Cache-Control", "public , max-age = 60 "), stated(time.Minute)},
		"in quotes":                   {header("Cache-Control", `max-age="60"`), stated(time.Minute)},
		"less its age":                {header("Cache-Control", "max-age=60", "Age", "50"), stated(10 * time.Second)},
		"older than max-age":          {header("Cache-Control", "max-age=60", "Age", "61"), stated(-time.Second)},
		"no number":                   {header("Cache-Control", "max-age=soon", "Age", "x"), stated(0)},
		"negative":                    {header("Cache-Control", "max-age=-1"), stated(0)},
		"two":                         {header("Cache-Control", "max-age=60, max-age=600"), stated(time.Minute)},
		"in two fields":               {http.Header{"Cache-Control": {"public", "max-age=60"}}, stated(time.Minute)},
		"very long":                   {header("Cache-Control", "max-age=99999999999999999999"), stated(math.MaxInt64)},
		"very long and very old":      {header("Cache-Control", "max-age=1", "Age", "99999999999999999999"), stated(time.Second - math.MaxInt64)},
		"no-cache":                    {header("Cache-Control", "max-age=60, no-cache"), stated(0)},
		"no-store":                    {header("Cache-Control", "no-store, max-age=60"), stated(0)},
		"Expires":                     {header("Expires", hour), stated(time.Hour)},
		"Expires less its age":        {header("Expires", hour, "Age", "60"), stated(59 * time.Minute)},
		"Expires by the server clock": {header("Expires", hour, "Date", date), stated(30 * time.Minute)},
		"max-age takes precedence":    {header("Cache-Control", "max-age=60", "Expires", hour), stated(time.Minute)},
		"Expires that is not a date":  {header("Expires", "0"), stated(0)},
		"Expires in the past":         {header("Expires", "Wed, 31 Dec 2025 00:00:00 GMT"), stated(0)},
		"Expires long ago, and old":   {header("Expires", "Mon, 01 Jan 0001 00:00:00 GMT", "Age", "99999999999999999999"), stated(-math.MaxInt64)},
	} {
		t.Run("4.2-"+name, func(t *testing.T) {
			require.Equal(t, tt.want, httpfield.FreshnessOf(tt.header, now))
		})
	}
}

// FuzzFreshness checks that nothing is fresh that does not say so, and that a later look finds no
// response fresher.
func FuzzFreshness(f *testing.F) {
	f.Add("max-age=60", "Thu, 01 Jan 2026 12:00:30 GMT", "5")
	f.Add("no-store", "0", "")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, control, expires, age string) {
		h := http.Header{"Cache-Control": {control}, "Expires": {expires}, "Age": {age}}
		got := httpfield.FreshnessOf(h, now)
		later := httpfield.FreshnessOf(h, now.Add(time.Minute))
		if !got.Stated && got.Left != 0 || later.Left > got.Left {
			t.Errorf("FreshnessOf(%q) = %+v, then %+v", h, got, later)
		}
	})
}
