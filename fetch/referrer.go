package fetch

import (
	"fmt"
	"net/http"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// policies say how much of a Referer is sent to the same origin and to another one (Referrer
// Policy, 8.3).
var policies = map[string]struct {
	same, cross  referrer
	notDowngrade bool // nothing from https to http
}{
	"no-referrer":                     {nothing, nothing, false},
	"no-referrer-when-downgrade":      {all, all, true},
	"same-origin":                     {all, nothing, false},
	"origin":                          {origin, origin, false},
	"strict-origin":                   {origin, origin, true},
	"origin-when-cross-origin":        {all, origin, false},
	"strict-origin-when-cross-origin": {all, origin, true},
	"unsafe-url":                      {all, all, false},
}

// referrer is how much of a URL is sent.
type referrer uint8

const (
	nothing referrer = iota
	origin
	all
)

// maxReferrer is the length in bytes beyond which only the origin is sent.
const maxReferrer = 4096

// defaultReferrer is the policy of browsers.
const defaultReferrer = "strict-origin-when-cross-origin"

func checkReferrer(policy string) error {
	if _, ok := policies[policy]; !ok && policy != "" {
		return fmt.Errorf("fetch: unknown referrer policy %q", policy)
	}
	return nil
}

// refer reduces a Referer in header to what the policy allows for a request to url.
func (c *Client) refer(header http.Header, url string) {
	from := header.Get("Referer")
	if from == "" {
		return
	}
	header.Del("Referer")
	page, err := weburl.Parse(from, nil)
	to, err2 := weburl.Parse(url, nil)
	if err != nil || err2 != nil || !weburl.IsWeb(&page) {
		return
	}
	policy := policies[c.opts.Referrer]
	send := policy.cross
	if page.Scheme == to.Scheme && page.Host == to.Host && page.Port == to.Port {
		send = policy.same
	}
	if policy.notDowngrade && page.Scheme == "https" && to.Scheme == "http" {
		send = nothing
	}
	page.Username, page.Password = "", ""
	text := string(page.Append(nil, false))
	if send == origin || send == all && len(text) > maxReferrer {
		page.Path, page.HasQuery = "/", false
		text = string(page.Append(nil, false))
	}
	if send != nothing {
		header["Referer"] = []string{text}
	}
}
