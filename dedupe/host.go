package dedupe

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Host returns the host name or the address in a canonical URL, in lower case, without the port
// and without the brackets of an IPv6 address. For other strings it returns something, but never
// panics.
func Host(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if strings.HasPrefix(rest, "[") {
		address, _, _ := strings.Cut(rest[1:], "]")
		return address
	}
	host, _, _ := strings.Cut(rest, ":")
	return host
}

// Site returns the registrable domain of a canonical URL's host: its public suffix, as given by
// publicsuffix.org, and one label more. Pages of one site belong to one owner, whatever the host.
// An unlisted top-level domain counts as a public suffix, as the list demands. A host that has no
// registrable domain, because it is an address or a public suffix itself, is its own site.
func Site(url string) string {
	host := strings.TrimSuffix(Host(url), ".")
	site, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return site
}
