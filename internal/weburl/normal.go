package weburl

import "strings"

// cutNormal is a fast path for http and https URLs in normal form, with a name as host and without
// credentials. It reads each byte once. It returns false if raw needs the full parser; the result
// is the same.
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

// isPlainName reports whether a host of domain bytes is certainly not an address: the last label of
// an address starts with a digit.
func isPlainName(host string) bool {
	host = strings.TrimSuffix(host, ".")
	label := host[strings.LastIndexByte(host, '.')+1:]
	return label != "" && !isDigit(label[0])
}

// cutNormalPort cuts off the port, if it has no leading zeros and is not the default of the scheme.
// It returns "" if there is none.
func cutNormalPort(s, scheme string) (port, rest string) {
	rest = strings.TrimLeft(s, "0123456789")
	port = s[:len(s)-len(rest)]
	if normal, err := parsePort(port, scheme); err != nil || normal != port {
		return "", s
	}
	return port, rest
}

// hasDotSegment reports whether a path that starts with a slash has a dot segment.
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
