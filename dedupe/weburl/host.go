package weburl

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Host returns the host name or address in a canonical URL, lowercase, without the port and without
// the brackets of an IPv6 address. The result for other strings is unspecified, but Host never
// panics.
func Host(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	for i := range len(rest) {
		switch rest[i] {
		case ':':
			if rest[0] == '[' {
				continue // within an address
			}
			return rest[:i]
		case '/', '?', '#':
			return unbracketed(rest[:i])
		}
	}
	return unbracketed(rest)
}

func unbracketed(authority string) string {
	if !strings.HasPrefix(authority, "[") {
		return authority
	}
	address, _, _ := strings.Cut(authority[1:], "]")
	return address
}

// Site returns the registrable domain of a canonical URL's host: its public suffix by the list of
// publicsuffix.org, and one more label. All hosts of a site have the same owner. By the rules of
// the list, an unlisted top-level domain counts as a public suffix. A host without a registrable
// domain (an address, or a public suffix itself) is its own site.
func Site(url string) string {
	host := strings.TrimSuffix(Host(url), ".")
	site, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return site
}

// SURT returns a key that sorts a canonical URL next to other URLs of its host and domain: the
// labels of the host in reverse order, the port if there is one, the path and the query, as in
// "com,example,www:8080)/a?b". The key does not contain the scheme, as in the indexes of web
// archives; addresses are not reversed. Unlike those indexes, SURT does not drop "www.", lowercase
// paths or sort queries, since two pages may differ in them. Keys are ambiguous if the name
// contains a comma or a parenthesis, which browsers accept but no registry does.
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
	writeReversed(&b, rest[start:end])
	tail := strings.IndexAny(rest[end:], "/?#")
	if tail < 0 {
		tail = len(rest) - end
	}
	b.WriteString(rest[end : end+tail]) // the port
	b.WriteByte(')')
	b.WriteString(rest[end+tail:])
	return b.String()
}

// writeReversed writes the labels of a host from the last to the first, without a root dot.
func writeReversed(b *strings.Builder, host string) {
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

// isIPv4 reports whether the host of a canonical URL is an address: names never consist only of
// digits and dots.
func isIPv4(host string) bool {
	return strings.Trim(host, "0123456789.") == "" && strings.Count(host, ".") == 3
}
