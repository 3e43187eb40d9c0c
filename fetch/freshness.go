package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// freshness returns how long from now a response may be assumed unchanged, by its Cache-Control,
// Expires and Age (RFC 9111, 4.2); 0 if it does not say, or forbids it. noStore reports that it
// must not be kept.
func freshness(header http.Header, now time.Time) (fresh time.Duration, noStore bool) {
	maxAge, said, noCache := time.Duration(0), false, false
	for directive := range strings.SplitSeq(strings.Join(header["Cache-Control"], ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "no-store":
			noStore = true
		case "no-cache":
			noCache = true
		case "max-age":
			if !said { // of two, the first one counts
				maxAge, said = seconds(strings.Trim(strings.TrimSpace(value), `"`)), true
			}
		}
	}
	if value := header.Get("Expires"); !said && value != "" {
		expires, err := http.ParseTime(value)
		if err == nil {
			// The server's clock may be wrong, so it is compared with itself.
			if date, err := http.ParseTime(header.Get("Date")); err == nil {
				now = date
			}
			maxAge = expires.Sub(now)
		}
	}
	if noStore || noCache {
		return 0, noStore
	}
	return min(max(maxAge-seconds(header.Get("Age")), 0), maxRetryAfter), false
}

// seconds reads a number of seconds (RFC 9111, 1.2.2), at most a year. Anything else is 0.
func seconds(value string) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n > int64(maxRetryAfter/time.Second) {
		return maxRetryAfter
	}
	return time.Duration(n) * time.Second
}
