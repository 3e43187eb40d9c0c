package export

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spinneret-go/spinneret/internal/weburl"
)

// surt returns the key of a URL in Wayback indexes: the labels of its host in reverse order, then
// the rest, canonicalized. The steps are those of the surt library, and their order matters: first
// those of Google's Safe Browsing, which unify URLs that are the same to browsers, and then those
// of the Internet Archive, which go further.
//
// A URL without a host, such as "dns:example.org", is its own key.
func surt(url string) string {
	url = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.TrimSpace(url))
	if !anyScheme.MatchString(url) {
		url = "http://" + url
	}
	if last := repeatedScheme.FindStringSubmatch(url); last != nil {
		url = last[1] + url[len(last[0]):]
	}
	scheme, rest, _ := strings.Cut(url, ":")
	scheme = strings.ToLower(scheme)
	below, found := strings.CutPrefix(rest, "//")
	if !found || scheme == "filedesc" {
		return url
	}
	if strings.HasPrefix(scheme, "http") {
		below = strings.TrimLeft(below, "/")
	}
	below, _, _ = strings.Cut(below, "#")
	below, query, _ := strings.Cut(below, "?")
	authority, path := below, ""
	if i := strings.IndexByte(below, '/'); i >= 0 {
		authority, path = below[:i], below[i:]
	}
	host, port := cutHost(authority, scheme)
	key := reversed(wwwHost.ReplaceAllString(canonicalHost(host), "")) + port + ")" + surtPath(path)
	if query = surtQuery(query); query != "" {
		key += "?" + query
	}
	return key
}

var (
	repeatedScheme = regexp.MustCompile(`^(?:https?://)*(https?://)`)
	wwwHost        = regexp.MustCompile(`^www[0-9]*\.`)
	anyScheme      = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+\-.]*:`)
	pathSessions   = []*regexp.Regexp{
		regexp.MustCompile(`^(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)$`),
		regexp.MustCompile(`^(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)$`),
	}
	querySessions = []*regexp.Regexp{
		regexp.MustCompile(`^(.*)jsessionid=[0-9a-z]{32}(?:&(.*))?$`),
		regexp.MustCompile(`^(.*)phpsessid=[0-9a-z]{32}(?:&(.*))?$`),
		regexp.MustCompile(`^(.*)sid=[0-9a-z]{32}(?:&(.*))?$`),
		regexp.MustCompile(`^(.*)aspsessionid[a-z]{8}=[a-z]{24}(?:&(.*))?$`),
		regexp.MustCompile(`^(.*)cfid=[^&]+&cftoken=[^&]+(?:&(.*))?$`),
	}
)

// cutHost returns the host and the port with its colon. A default or invalid port is omitted.
func cutHost(authority, scheme string) (host, port string) {
	host = authority[strings.LastIndexByte(authority, '@')+1:]
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.Contains(host[i:], "]") {
		host, port = host[:i], host[i:]
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(port, ":"), 10, 16)
	if err != nil || scheme == "http" && n == 80 || scheme == "https" && n == 443 {
		return host, ""
	}
	return host, ":" + strconv.FormatUint(n, 10)
}

// canonicalHost returns a host in ASCII and lower case, and an IPv4 address of any notation in its
// usual form.
func canonicalHost(host string) string {
	host = string(unescape([]byte(host)))
	if strings.HasPrefix(host, "[") {
		return strings.ToLower(host)
	}
	number := strings.Trim(host, "0123456789") == "" && host != ""
	if n, err := strconv.ParseUint(host, 10, 64); number && err == nil {
		four := [4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
		return netip.AddrFrom4(four).String()
	}
	ascii := strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	if !ascii || strings.Trim(host, "0123456789.") == "" {
		if u, err := weburl.Parse("http://"+host+"/", nil); err == nil && u.Path == "/" {
			host = u.Host
		}
	}
	host = strings.Trim(strings.ReplaceAll(host, "..", "."), ".")
	return strings.ToLower(string(escape([]byte(strings.ToLower(host)))))
}

// reversed returns the labels of a host from the last to the first. Like the library, it reverses
// addresses too.
func reversed(host string) string {
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ",")
}

// surtPath resolves dot segments, collapses slashes, and drops session IDs and the trailing slash.
func surtPath(path string) string {
	var kept [][]byte
	if path != "" {
		for _, part := range bytes.Split(unescape([]byte(path)), []byte("/"))[1:] {
			switch {
			case string(part) == ".":
			case string(part) != ".." || len(kept) == 0:
				kept = append(kept, part)
			default:
				kept = kept[:len(kept)-1]
			}
		}
	}
	n := 0
	for i, part := range kept {
		if len(part) > 0 || i == len(kept)-1 {
			kept[n] = part
			n++
		}
	}
	path = "/" + strings.ToLower(string(escape(bytes.Join(kept[:n], []byte("/")))))
	if strings.Contains(path, ".aspx") {
		path = strip(path, pathSessions)
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// surtQuery drops session IDs and sorts the rest by name and value.
func surtQuery(query string) string {
	query = strings.ToLower(string(escape(unescape([]byte(query)))))
	if strings.Contains(query, "sid=") || strings.Contains(query, "sessionid") ||
		strings.Contains(query, "cfid=") {
		query = strip(query, querySessions)
	}
	if len(query) <= 1 {
		return query
	}
	args := strings.Split(query, "&")
	slices.SortFunc(args, func(a, b string) int { // names are compared first
		name, _, _ := strings.Cut(a, "=")
		other, _, _ := strings.Cut(b, "=")
		return cmp.Or(strings.Compare(name, other), strings.Compare(a, b))
	})
	return strings.Join(args, "&")
}

// strip removes the text between the two groups of each matching pattern.
func strip(s string, patterns []*regexp.Regexp) string {
	for _, pattern := range patterns {
		if m := pattern.FindStringSubmatch(s); m != nil {
			s = m[1] + m[2]
		}
	}
	return s
}

// unescape decodes escapes until none is left, in place. A decoded byte may complete another
// escape. Looking back after each byte takes one pass for any number of levels, which a hostile URL
// could choose.
func unescape(s []byte) []byte {
	n := 0
	for _, c := range s {
		s[n] = c
		n++
		for n >= 3 && s[n-3] == '%' {
			if _, err := hex.Decode(s[n-3:n-2], s[n-2:n]); err != nil {
				break
			}
			n -= 2
		}
	}
	return s[:n]
}

// escape escapes everything but printable ASCII, and also "#" and "%", which are special in URLs.
func escape(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for _, c := range s {
		if c <= ' ' || c >= 0x7f || c == '#' || c == '%' {
			out = append(out, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			out = append(out, c)
		}
	}
	return out
}

const upperHex = "0123456789ABCDEF"
