package stage

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// FreshFor returns how long a response stays as it is by its Cache-Control: a crawler need not ask
// for it again before (RFC 9111, 4.2). It is 0 if the server does not say, or wants to be asked.
func FreshFor(h http.Header) time.Duration {
	var fresh time.Duration
	for directive := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-cache", "no-store":
			return 0
		case "max-age":
			fresh = seconds(strings.Trim(value, `" `))
		}
	}
	return max(0, fresh-seconds(h.Get("Age")))
}

// seconds reads a number of seconds; it is 0 if there is none. RFC 9111 counts what is more than
// 2^31 as that.
func seconds(text string) time.Duration {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0
	}
	return time.Duration(min(n, 1<<31)) * time.Second
}
