// Package retryafter reads the Retry-After field of HTTP.
package retryafter

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Of returns how long a server asks clients to wait: the seconds or the date of Retry-After (RFC
// 9110, section 10.2.3). A date is relative to the Date of the response, so that clocks need not
// agree. Of returns 0 if the field is missing or invalid, and the longest Duration if the value
// exceeds it: callers set their own bound.
func Of(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if value[0] >= '0' && value[0] <= '9' {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if errors.Is(err, strconv.ErrRange) || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return max(at.Sub(now), 0)
}
