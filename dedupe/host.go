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

// SURT returns the key that sorts a canonical URL next to the others of its host and domain: the
// labels of the host in reverse order, the port if there is one, and the path and query, as in
// "com,example,www:8080)/a?b". Both http and https have the same key, as in the indexes of web
// archives, and an address stays as it is. Other than in those indexes, no "www." is dropped, no
// letter lowered and no query sorted, since two pages may differ in them. A comma or parenthesis
// in a name, which browsers take but no registry does, makes keys ambiguous.
func SURT(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	host := Host(url)
	start := strings.Index(rest, host)
	end := start + len(host)
	if strings.HasPrefix(rest[end:], "]") {
		start, end = start-1, end+1
	}
	var b strings.Builder
	b.Grow(len(rest) + 1)
	appendReversed(&b, rest[start:end])
	tail := strings.IndexAny(rest[end:], "/?#")
	if tail < 0 {
		tail = len(rest) - end
	}
	b.WriteString(rest[end : end+tail]) // the port
	b.WriteByte(')')
	b.WriteString(rest[end+tail:])
	return b.String()
}

// appendReversed writes the labels of a host from the last to the first. A root dot is no label.
func appendReversed(b *strings.Builder, host string) {
	if strings.HasPrefix(host, "[") || isIPv4(host) {
		b.WriteString(host)
		return
	}
	host = strings.TrimSuffix(host, ".")
	for {
		dot := strings.LastIndexByte(host, '.')
		b.WriteString(host[dot+1:])
		if dot < 0 {
			return
		}
		b.WriteByte(',')
		host = host[:dot]
	}
}

// isIPv4 reports whether the host of a canonical URL is an address: no name ends in a digit alone.
func isIPv4(host string) bool {
	return strings.Trim(host, "0123456789.") == "" && strings.Count(host, ".") == 3
}
