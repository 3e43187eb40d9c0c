package stage

import (
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// Owner returns the registered domain that a host belongs to: one label below a suffix at which a
// registry sells names, according to the public suffix list. The list also has suffixes of
// companies that give names away, such as github.io and duckdns.org. All names below one of these
// count as one owner, as anybody can have any number of them. A host has no owner if it is an
// address, a suffix itself, or under a top-level domain that does not exist.
func Owner(host string) (domain string) {
	host = strings.TrimSuffix(host, ".")
	if _, literal := Literal(host); literal {
		return ""
	}
	suffix, registry := publicsuffix.PublicSuffix(host)
	for !registry {
		_, above, found := strings.Cut(suffix, ".")
		if !found {
			return ""
		}
		suffix, registry = publicsuffix.PublicSuffix(above)
	}
	below := strings.TrimSuffix(strings.TrimSuffix(host, suffix), ".")
	if below == "" {
		return ""
	}
	return below[strings.LastIndexByte(below, '.')+1:] + "." + suffix
}

// siteOf returns the owner of a host, or its site if no owner is known. An address is its own.
func siteOf(host string) string {
	if strings.Contains(host, ":") { // an IPv6 address
		return host
	}
	if owner := Owner(host); owner != "" {
		return owner
	}
	return weburl.Site("http://" + host + "/")
}
