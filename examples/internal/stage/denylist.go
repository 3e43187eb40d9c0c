package stage

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe"
)

// A DenyList holds what the operator never wants to be fetched: hosts with their sub-domains, URL
// prefixes, and patterns. A nil DenyList denies nothing. It is not changed after it was read, so
// its methods are safe for concurrent use.
type DenyList struct {
	hosts    map[string]struct{}
	prefixes []string
	patterns []*regexp.Regexp
}

// ReadDenyList reads a list with one entry a line: a host name, a URL prefix that begins with http,
// or a regular expression between slashes. Empty lines and lines that begin with # are skipped.
// Name is what errors call the file.
func ReadDenyList(r io.Reader, name string) (*DenyList, error) {
	list := &DenyList{hosts: map[string]struct{}{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		entry := strings.TrimSpace(lines.Text())
		if entry == "" || entry[0] == '#' {
			continue
		}
		if err := list.add(entry); err != nil {
			return nil, fmt.Errorf("deny list %s:%d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("deny list %s: %w", name, err)
	}
	return list, nil
}

func (l *DenyList) add(entry string) error {
	switch {
	case len(entry) > 1 && entry[0] == '/' && entry[len(entry)-1] == '/':
		pattern, err := regexp.Compile(entry[1 : len(entry)-1])
		if err != nil {
			return err
		}
		l.patterns = append(l.patterns, pattern)
	case strings.Contains(entry, "://"):
		prefix, err := dedupe.Canonical(entry)
		if err != nil {
			return err
		}
		l.prefixes = append(l.prefixes, prefix)
	default:
		url, err := dedupe.Canonical("http://" + entry)
		if err != nil || pathOf(url) != "/" {
			return fmt.Errorf("%q is no host name, no http(s) URL and no /pattern/", entry)
		}
		l.hosts[dedupe.Host(url)] = struct{}{}
	}
	return nil
}

// Holds says whether a canonical URL is denied.
func (l *DenyList) Holds(url string) bool {
	if l == nil {
		return false
	}
	for host := dedupe.Host(url); host != ""; _, host, _ = strings.Cut(host, ".") {
		if _, ok := l.hosts[host]; ok {
			return true
		}
	}
	for _, prefix := range l.prefixes {
		if strings.HasPrefix(url, prefix) {
			return true
		}
	}
	return matchesAny(l.patterns, url)
}
