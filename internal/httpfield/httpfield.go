// Package httpfield reads fields of HTTP responses that several packages need: how long to wait
// before the next request, and how long a response stays fresh.
package httpfield

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter returns how long a server asks clients to wait: the seconds or the date of Retry-After
// (RFC 9110, section 10.2.3). A date is relative to the Date of the response, so that clocks need
// not agree. It returns 0 if the field is missing or invalid, and the longest Duration if the value
// exceeds it: callers set their own bound.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if wait, ok := seconds(value); ok || value[0] >= '0' && value[0] <= '9' {
		return wait
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(at.Sub(sent(h, now)), 0)
}

// RateLimit returns how long to wait for the next request so that the quota that a server reports
// lasts until it is restored: t/(r+1) for the parameters r, what is left, and t, the seconds until
// then (draft-ietf-httpapi-ratelimit-headers-10). Of several quotas, the longest wait counts. It
// returns 0 if the field is missing or says nothing, and the longest Duration if the value exceeds
// it.
func RateLimit(h http.Header) (wait time.Duration) {
	left, restored := int64(-1), time.Duration(0)
	rest, end := strings.Join(h["Ratelimit"], ","), byte(';')
	for rest != "" || end == ';' {
		var param string
		param, rest, end = cutParam(rest)
		switch name, value, _ := strings.Cut(strings.TrimSpace(param), "="); name {
		case "r":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
				left = min(n, math.MaxInt64-1)
			}
		case "t":
			restored, _ = seconds(value)
		}
		if end != ';' {
			if left >= 0 {
				wait = max(wait, restored/time.Duration(left+1))
			}
			left, restored = -1, 0
		}
	}
	return wait
}

// cutParam cuts a list of items with parameters (RFC 9651, section 3.1) at the first semicolon or
// comma that is not in a string, and returns which of them it is; 0 stands for the end.
func cutParam(list string) (param, rest string, at byte) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ';' || c == ','):
			return list[:i], list[i+1:], c
		}
	}
	return list, "", 0
}

// Freshness is how long a response stays fresh (RFC 9111, section 4.2), as far as it says so.
type Freshness struct {
	// Stated reports that the response limits its lifetime, if only by an invalid Expires.
	Stated bool
	// Left is the time from now until the response is stale; zero or negative if it is stale
	// already, or if it must not be kept or not be reused without asking the server.
	Left time.Duration
}

// FreshnessOf reads Cache-Control, Expires and Age. The special rules for shared caches are left
// out.
func FreshnessOf(h http.Header, now time.Time) (f Freshness) {
	for directive := range strings.SplitSeq(strings.Join(h["Cache-Control"], ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "no-store", "no-cache":
			return Freshness{Stated: true}
		case "max-age":
			if !f.Stated { // of two, the first one counts
				f.Left, _ = seconds(strings.Trim(strings.TrimSpace(value), `"`))
				f.Stated = true
			}
		}
	}
	if value := h.Get("Expires"); !f.Stated && value != "" {
		f.Stated = true
		if expires, err := http.ParseTime(value); err == nil {
			f.Left = expires.Sub(sent(h, now))
		}
	}
	f.Left = max(f.Left, 0) // or a date in the distant past, less the age, would be in the future
	if age, ok := seconds(strings.TrimSpace(h.Get("Age"))); ok && f.Stated {
		f.Left -= age
	}
	return f
}

// sent returns when a response was sent, by the clock of its server, or now if it does not say. The
// clocks of servers are often wrong, so their dates are compared with each other.
func sent(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now
}

// seconds reads a number of seconds (RFC 9111, section 1.2.2). What exceeds a Duration becomes the
// longest one. ok is false, and the result 0, if the value is not a number.
func seconds(value string) (d time.Duration, ok bool) {
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if errors.Is(err, strconv.ErrRange) || n > int64(math.MaxInt64/time.Second) {
		return math.MaxInt64, true
	}
	return time.Duration(n) * time.Second, true
}
