package resolve

import (
	"net/netip"
	"strings"

	"github.com/spinneret-go/spinneret/hostcache"
)

// parseHost returns the lower-case name to look up for a host, or its address if it is one, in
// brackets or not. ok is false if the host is neither.
func parseHost(host string) (name string, addr netip.Addr, ok bool) {
	bracket := len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']'
	if bracket {
		host = host[1 : len(host)-1]
	}
	if host == "" {
		return "", addr, false
	}
	last := host[len(host)-1]
	if bracket || '0' <= last && last <= '9' || strings.IndexByte(host, ':') >= 0 {
		addr, err := netip.ParseAddr(host)
		if err == nil {
			return "", addr.Unmap(), true
		}
		if bracket {
			return "", addr, false
		}
	}
	name, ok = normalize(host)
	if len(name) > hostcache.MaxHost { // by a last dot, which is no use where no suffix has room
		name = name[:hostcache.MaxHost]
	}
	return name, addr, ok
}

// normalize returns a name in lower case, and whether it is one. Its rules are those of package
// net: letters, digits, hyphens and underscores, and not only digits.
func normalize(name string) (lower string, ok bool) {
	label, upper, numeric := 0, false, true
	last := byte('.')
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z' || c == '_':
			numeric = false
		case 'A' <= c && c <= 'Z':
			numeric, upper = false, true
		case '0' <= c && c <= '9':
		case c == '-':
			numeric = false
			if last == '.' {
				return "", false
			}
		case c == '.':
			if last == '.' || last == '-' {
				return "", false
			}
			label = -1
		default:
			return "", false
		}
		if label++; label > 63 {
			return "", false
		}
		last = c
	}
	if upper {
		name = strings.ToLower(name)
	}
	long := len(strings.TrimSuffix(name, ".")) > hostcache.MaxHost
	return name, !long && !numeric && last != '-'
}
