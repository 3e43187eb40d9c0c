package urlfilter

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// A Verdict is the decision of a [List] on a URL, and the line that made it.
type Verdict struct {
	Allowed bool
	Entry   string // the deciding entry, as written in the list; empty if none matched
	Line    int    // of that entry, from 1; 0 if none matched
}

// A List has the URLs that the operator denies and allows. The zero List allows everything, and so
// does a nil List. Its methods are safe for concurrent use.
type List struct{ rules atomic.Pointer[rules] }

// rules are never changed.
type rules struct{ deny, allow matcher }

// Reload reads a list and atomically replaces the old one. It may be called at any time. After an
// error, the old list stays. The file name is only for errors. Each line has one entry:
//
//	# a comment
//	example.com               the host and all hosts under it, so *.example.com is an error
//	https://a.example/dir/    all URLs with this prefix, see [SeedPrefix]
//	=https://a.example/page   only this URL
//	/[?&]sort=/               all URLs that match the regular expression between the slashes
//	*                         all URLs
//	+b.example.com            a plus before any of these: allowed nevertheless
//
// Equivalent escapes are equal, so an entry with ~ also matches %7E; a pattern may match the URL as it is,
// too. No entry sees the root's dot at the end of a host. URLs that match no entry are allowed, as are URLs
// that match entries of both kinds. So a star and some lines with a plus make an allowlist. A line of 64 KiB
// or more, or with a CR within, is an error, and so is a URL with a fragment, a space or a tab, since a
// comment and the next entry have lines of their own, and a host with a character that is neither letter,
// digit, hyphen, underscore nor dot, such as a comma behind it.
func (l *List) Reload(r io.Reader, file string) (err error) {
	next := &rules{}
	for n, text := range entries(r, &err) {
		side, pattern := &next.deny, text
		if text[0] == '+' {
			side, pattern = &next.allow, strings.TrimSpace(text[1:])
		}
		if reason := side.add(pattern, entry{text, n}); reason != "" {
			return &SyntaxError{file, n, text, reason}
		}
	}
	if err != nil {
		return fmt.Errorf("urlfilter: read list %s: %w", file, err)
	}
	next.deny.finish()
	next.allow.finish()
	l.rules.Store(next)
	return nil
}

// Match reports whether a canonical URL is allowed, and by which entry.
func (l *List) Match(url string) Verdict {
	if l == nil {
		return Verdict{Allowed: true}
	}
	rules := l.rules.Load()
	if rules == nil {
		return Verdict{Allowed: true}
	}
	plain, raw := plainForm(url), withoutRoot(url)
	denied, found := rules.deny.find(plain, raw)
	if !found {
		return Verdict{Allowed: true}
	}
	if allowed, found := rules.allow.find(plain, raw); found {
		return Verdict{true, allowed.text, allowed.line}
	}
	return Verdict{false, denied.text, denied.line}
}

// plainForm returns the form in which URLs are compared. A server takes equivalent escapes for the same, and
// a site chooses among them in its redirects.
func plainForm(url string) string {
	if strings.Contains(url, "%") {
		if same, err := (weburl.Steps{NormalizeEscapes: true}).Canonical(url); err == nil {
			url = same
		}
	}
	return withoutRoot(url)
}

func isHexDigit(r rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", r) }

// withoutRoot drops the dot at the end of a host, which stands for the root and names the same server.
func withoutRoot(url string) string {
	host := weburl.Host(url)
	if !strings.HasSuffix(host, ".") {
		return url
	}
	scheme, rest, _ := strings.Cut(url, "://")
	return scheme + "://" + strings.TrimSuffix(host, ".") + strings.TrimPrefix(rest, host)
}

// An entry is a line of a list.
type entry struct {
	text string
	line int
}

// A matcher has the entries of one side. The cost of a lookup grows only with the number of regular
// expressions, not with the other entries.
type matcher struct {
	all         *entry
	exact       map[string]entry
	hosts       map[string]entry
	longestHost int      // bytes of the longest of hosts
	prefixes    []prefix // after finish: sorted, and none is a prefix of another
	patterns    []pattern
}

type prefix struct {
	url string
	entry
}

type pattern struct {
	*regexp.Regexp
	entry
}

// add returns why the text is not an entry, or "". Of two equal entries the first one stays.
func (m *matcher) add(text string, e entry) (reason string) {
	switch {
	case text == "*":
		if m.all == nil {
			m.all = &e
		}
	case len(text) > 2 && text[0] == '/' && text[len(text)-1] == '/':
		expression, err := regexp.Compile(text[1 : len(text)-1])
		if err != nil {
			return "is not a regular expression: " + err.Error()
		}
		m.patterns = append(m.patterns, pattern{expression, e})
	case strings.HasPrefix(text, "="):
		url, reason := canonical(text[1:], "is not an http(s) URL after the equals sign")
		if reason != "" {
			return reason
		}
		keep(&m.exact, url, e)
	case strings.Contains(text, "://"):
		// Its canonical form, so that "https://a.example" is not a prefix of https://a.example.org: it
		// means the host, whose path begins with a slash.
		if _, reason := canonical(text, "is not an http(s) URL"); reason != "" {
			return reason
		}
		if end := strings.TrimRightFunc(text, isHexDigit); strings.HasSuffix(end, "%") && len(text)-len(end) < 2 {
			return "ends within an escape"
		}
		url, _ := SeedPrefix(text)                        // fails for no URL without a fragment
		url = strings.TrimSuffix(plainForm(url+"x"), "x") // its end is no segment here either
		m.prefixes = append(m.prefixes, prefix{url, e})
	default:
		const neither = "is neither a host, nor an http(s) URL, nor a /pattern/"
		url, reason := canonical("http://"+text, neither)
		host := weburl.Host(url)
		switch {
		case reason != "":
			return reason
		case strings.HasPrefix(text, "/"), strings.HasPrefix(text, `\`), // after a scheme, any number of them count as two
			url != "http://"+host+"/" && url != "http://["+host+"]/":
			return neither
		}
		m.longestHost = max(m.longestHost, len(host))
		keep(&m.hosts, host, e)
	}
	return ""
}

// canonical returns the form of a URL that can match, or why there is none; the given reason if it
// is no URL.
func canonical(text, reason string) (url, why string) {
	url, err := weburl.Canonical(text)
	host := weburl.Host(url)
	switch {
	case err != nil:
		return "", reason
	case strings.Contains(text, "#"):
		return "", "has a fragment, as no canonical URL has"
	case len(strings.Fields(text)) > 1: // what follows is no part of the URL
		return "", "has a space or a tab: each entry has a line of its own"
	case strings.HasPrefix(host, ".") || strings.Contains(host, "*"):
		return "", "has a wildcard; the host alone stands for all hosts under it"
	case isNobody(host):
		return "", "has a host that no page has"
	}
	return plainForm(url), ""
}

func keep(entries *map[string]entry, key string, e entry) {
	if *entries == nil {
		*entries = make(map[string]entry)
	}
	if _, found := (*entries)[key]; !found {
		(*entries)[key] = e
	}
}

// finish sorts the prefixes, and drops those that a shorter one makes redundant. Then the only
// prefix that a URL can have is the greatest one that is not greater than it.
func (m *matcher) finish() {
	byURL := func(a, b prefix) int { return strings.Compare(a.url, b.url) }
	slices.SortStableFunc(m.prefixes, byURL)
	kept := m.prefixes[:0]
	for _, p := range m.prefixes {
		if n := len(kept); n == 0 || !strings.HasPrefix(p.url, kept[n-1].url) {
			kept = append(kept, p)
		}
	}
	m.prefixes = kept
}

// find returns the most specific entry for the URL, which is given in its plain form and as it is.
func (m *matcher) find(url, raw string) (entry, bool) {
	if e, found := m.exact[url]; found {
		return e, true
	}
	if e, found := m.findPrefix(url); found {
		return e, true
	}
	if e, found := m.findHost(weburl.Host(url)); found {
		return e, true
	}
	for _, p := range m.patterns {
		if p.MatchString(url) || raw != url && p.MatchString(raw) {
			return p.entry, true
		}
	}
	if m.all != nil {
		return *m.all, true
	}
	return entry{}, false
}

func (m *matcher) findPrefix(url string) (entry, bool) {
	i, found := slices.BinarySearchFunc(m.prefixes, url, func(p prefix, url string) int {
		return strings.Compare(p.url, url)
	})
	if !found {
		i--
	}
	if i < 0 || !strings.HasPrefix(url, m.prefixes[i].url) {
		return entry{}, false
	}
	return m.prefixes[i].entry, true
}

// findHost looks for the host and all domains that it is under. An address is under none.
func (m *matcher) findHost(host string) (entry, bool) {
	if len(m.hosts) == 0 {
		return entry{}, false
	}
	for under := !isAddress(host); ; {
		// Hashing all domains that a host is under would take the square of its length.
		if len(host) <= m.longestHost {
			if e, found := m.hosts[host]; found {
				return e, true
			}
		}
		_, parent, found := strings.Cut(host, ".")
		if !found || !under {
			return entry{}, false
		}
		host = parent
	}
}
