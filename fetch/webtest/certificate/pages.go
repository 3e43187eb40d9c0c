package certificate

import (
	"strings"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// private judges requests to the private addresses to which the web leads; others may be those of services
// that the crawler uses. Without the proxy they do not come to the log.
func (l *ledger) private() Verdict {
	c := check{name: "private addresses", unit: "private addresses requested"}
	links, asked := make(map[string]bool), make(map[string]bool)
	for _, r := range l.log {
		switch {
		case (r.Host == "192.168.255.254" || r.Host == "10.255.255.1") && !asked[r.Host]: // see webtest.TrapAddress
			asked[r.Host] = true
			c.breach("a private address was requested", r)
		case l.Proxied && strings.HasPrefix(r.Path, "/trap/address") && (r.Location != "" || read(r)):
			links[r.Location] = true // the page leads to one address, and the redirect to another
		}
	}
	c.occasions = len(links)
	return c.verdict()
}

// twice judges pages that were fetched again although they had not changed.
func (l *ledger) twice() Verdict {
	c := check{name: "twice", unit: "pages fetched again"}
	last := make(map[string]webtest.Request)
	for _, r := range l.log {
		if !read(r) || !l.Web.IsPage(r.URL()) {
			continue
		}
		c.occasions++
		if before, ok := last[r.URL()]; ok && before.Version == r.Version {
			c.breach(r.URL()+" was fetched before", before, r)
			continue
		}
		last[r.URL()] = r
	}
	if c.occasions == 1 {
		c.occasions = 0 // there was no second request
	}
	return c.verdict()
}

// complete judges what is missing.
func (l *ledger) complete() Verdict {
	got := make(map[string]bool)
	for _, r := range l.log {
		got[r.URL()] = got[r.URL()] || has(r)
	}
	c := check{name: "completeness", unit: "pages missed"}
	for _, url := range l.Web.Reachable() {
		if c.occasions++; !got[url] {
			c.breach(url + " was never fetched")
		}
	}
	v := c.verdict()
	if v.Result == Failed && !l.Complete {
		v.Result = Partial
	}
	return v
}
