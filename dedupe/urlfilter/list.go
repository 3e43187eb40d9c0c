package urlfilter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// ErrSyntax is what every [SyntaxError] unwraps to.
var ErrSyntax = errors.New("urlfilter: bad entry")

// A SyntaxError says which line of a list cannot be read.
type SyntaxError struct {
	File   string // as given to Parse
	Line   int    // from 1
	Entry  string
	Reason string
}

// Error returns all fields.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("urlfilter: %s:%d: %q %s", e.File, e.Line, e.Entry, e.Reason)
}

// Unwrap returns ErrSyntax.
func (e *SyntaxError) Unwrap() error { return ErrSyntax }

// A Verdict is what a list says of a URL, and which line said so.
type Verdict struct {
	Allowed bool
	Entry   string // that decided, as it stands in the list; empty if none matched
	Line    int    // of that entry, from 1; 0 if none matched
}

// A List is what the operator denies and allows. It is not changed after it was read. A nil List
// allows everything. Its methods are safe for concurrent use.
type List struct {
	deny, allow matcher
}

// Parse reads a list with one entry a line:
//
//	# a comment
//	example.com               the host and all hosts under it
//	https://a.example/dir/    all URLs that begin so
//	=https://a.example/page   this URL alone
//	/[?&]sort=/               all URLs that match the regular expression between the slashes
//	*                         all URLs
//	+b.example.com            with a plus before any of these: allowed all the same
//
// What no entry names is allowed, and what entries of both kinds name is allowed, too. So a star
// and some lines with a plus make a list of what alone is allowed. A line of 64 KiB or more is an
// error. File is what errors call the list.
func Parse(r io.Reader, file string) (*List, error) {
	list := &List{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		side, pattern := &list.deny, text
		if text[0] == '+' {
			side, pattern = &list.allow, strings.TrimSpace(text[1:])
		}
		if reason := side.add(pattern, entry{text, n}); reason != "" {
			return nil, &SyntaxError{file, n, text, reason}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("urlfilter: read list %s: %w", file, err)
	}
	list.deny.finish()
	list.allow.finish()
	return list, nil
}

// Match tells whether a canonical URL is allowed, and by which entry.
func (l *List) Match(url string) Verdict {
	if l == nil {
		return Verdict{Allowed: true}
	}
	denied, found := l.deny.find(url)
	if !found {
		return Verdict{Allowed: true}
	}
	if allowed, found := l.allow.find(url); found {
		return Verdict{true, allowed.text, allowed.line}
	}
	return Verdict{false, denied.text, denied.line}
}

// A Live list can be replaced while it is in use. The zero Live allows everything, until Store is
// called. Its methods are safe for concurrent use.
type Live struct{ list atomic.Pointer[List] }

// Store replaces the list. A Match that runs at that time is answered by the old one or by the new
// one, and never by both.
func (l *Live) Store(list *List) { l.list.Store(list) }

// Reload parses a list and replaces the old one, which stays if there is an error.
func (l *Live) Reload(r io.Reader, file string) error {
	list, err := Parse(r, file)
	if err == nil {
		l.Store(list)
	}
	return err
}

// Match tells whether a canonical URL is allowed, and by which entry.
func (l *Live) Match(url string) Verdict { return l.list.Load().Match(url) }

// An entry is a line of a list.
type entry struct {
	text string
	line int
}

// A matcher has the entries of one side, so that the cost of a look-up grows with the expressions
// alone and not with the other entries.
type matcher struct {
	all         *entry
	exact       map[string]entry
	hosts       map[string]entry
	longestHost int      // bytes of the longest of hosts
	prefixes    []prefix // after finish: in order, and none begins with another
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

// add returns why the text is no entry, or "". Of two equal ones the first stays.
func (m *matcher) add(text string, e entry) (reason string) {
	switch {
	case text == "*":
		if m.all == nil {
			m.all = &e
		}
	case len(text) > 2 && text[0] == '/' && text[len(text)-1] == '/':
		expression, err := regexp.Compile(text[1 : len(text)-1])
		if err != nil {
			return "is no regular expression: " + err.Error()
		}
		m.patterns = append(m.patterns, pattern{expression, e})
	case strings.HasPrefix(text, "="):
		url, err := weburl.Canonical(text[1:])
		if err != nil {
			return "is no http(s) URL after the equals sign"
		}
		keep(&m.exact, url, e)
	case strings.Contains(text, "://"):
		return m.addPrefix(text, e)
	default:
		return m.addHost(text, e)
	}
	return ""
}

// addPrefix takes a URL that others may go on from. As it stands, "https://a.example" would also
// be the beginning of https://a.example.org; it means the host, whose path begins with a slash.
func (m *matcher) addPrefix(text string, e entry) (reason string) {
	url, err := weburl.Canonical(text)
	if err != nil {
		return "is no http(s) URL"
	}
	m.prefixes = append(m.prefixes, prefix{url, e})
	return ""
}

func (m *matcher) addHost(text string, e entry) (reason string) {
	url, err := weburl.Canonical("http://" + text)
	host := weburl.Host(url)
	if err != nil || (url != "http://"+host+"/" && url != "http://["+host+"]/") {
		return "is neither a host, nor an http(s) URL, nor a /pattern/"
	}
	host = strings.TrimSuffix(host, ".")
	m.longestHost = max(m.longestHost, len(host))
	keep(&m.hosts, host, e)
	return ""
}

func keep(entries *map[string]entry, key string, e entry) {
	if *entries == nil {
		*entries = make(map[string]entry)
	}
	if _, found := (*entries)[key]; !found {
		(*entries)[key] = e
	}
}

// finish sorts the prefixes, and drops those that a shorter one makes superfluous. Then the only
// prefix that a URL can have is the greatest one that is not greater than it.
func (m *matcher) finish() {
	slices.SortStableFunc(m.prefixes, func(a, b prefix) int { return strings.Compare(a.url, b.url) })
	kept := m.prefixes[:0]
	for _, p := range m.prefixes {
		if n := len(kept); n == 0 || !strings.HasPrefix(p.url, kept[n-1].url) {
			kept = append(kept, p)
		}
	}
	m.prefixes = kept
}

// find returns the most special entry for the URL.
func (m *matcher) find(url string) (entry, bool) {
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
		if p.MatchString(url) {
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

// findHost looks for the host and all that it is under. An address is under nothing.
func (m *matcher) findHost(host string) (entry, bool) {
	if len(m.hosts) == 0 {
		return entry{}, false
	}
	host = strings.TrimSuffix(host, ".")
	for under := !isAddress(host); ; {
		// To hash whatever a host is under would take the square of its length.
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
