package weburl

import "strings"

// cutNormal cuts an http or https URL that is in normal form, has a name for a host and no
// credentials, as most absolute URLs do that a program sees a second time. It looks at each byte
// once. It returns false if the parser has to look at raw; the result is the same.
func cutNormal(raw string) (u URL, ok bool) {
	scheme := "http"
	rest, found := strings.CutPrefix(raw, "http://")
	if !found {
		scheme = "https"
		if rest, found = strings.CutPrefix(raw, "https://"); !found {
			return u, false
		}
	}
	u = URL{Scheme: scheme, HasHost: true}
	end := until(rest, inDomain)
	if u.Host, rest = rest[:end], rest[end:]; !isPlainName(u.Host) {
		return u, false
	}
	if strings.HasPrefix(rest, ":") {
		if u.Port, rest = cutNormalPort(rest[1:], scheme); u.Port == "" {
			return u, false
		}
	}
	end = until(rest, inPath|isBackslash)
	if u.Path, rest = rest[:end], rest[end:]; !strings.HasPrefix(u.Path, "/") || hasDotSegment(u.Path) {
		return u, false
	}
	if strings.HasPrefix(rest, "?") {
		end = 1 + until(rest[1:], inSpecialQuery)
		u.HasQuery, u.Query, rest = true, rest[1:end], rest[end:]
	}
	if strings.HasPrefix(rest, "#") {
		end = 1 + until(rest[1:], inFragment)
		u.HasFragment, u.Fragment, rest = true, rest[1:end], rest[end:]
	}
	return u, rest == ""
}

// until returns the place of the first byte that is in one of the sets, or the length of s.
func until(s string, set class) int {
	for i := range len(s) {
		if classOf[s[i]]&set != 0 {
			return i
		}
	}
	return len(s)
}

// isPlainName reports whether a host of domain bytes is certainly no address: an address ends in a
// label that begins with a digit.
func isPlainName(host string) bool {
	host = strings.TrimSuffix(host, ".")
	label := host[strings.LastIndexByte(host, '.')+1:]
	return label != "" && !isDigit(label[0])
}

// cutNormalPort cuts off a port without leading zeros that is not the default of the scheme, and ""
// if there is none.
func cutNormalPort(s, scheme string) (port, rest string) {
	end := 0
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	port = s[:end]
	if normal, err := parsePort(port, scheme); err != nil || normal != port {
		return "", s
	}
	return port, s[end:]
}

// hasDotSegment reports whether the parser would change a path that begins with a slash.
func hasDotSegment(path string) bool {
	for i := range len(path) - 1 {
		if path[i] == '/' && classOf[path[i+1]]&startsDot != 0 {
			segment, _, _ := strings.Cut(path[i+1:], "/")
			if countDots(segment) > 0 {
				return true
			}
		}
	}
	return false
}
