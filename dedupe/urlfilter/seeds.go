package urlfilter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// Seed returns the canonical URL for text that a person typed. A missing scheme means https, or
// http for local names, which rarely have certificates. A path, such as /news or ./seeds.txt, is an error, and
// so is a host that no page has, such as one with a comma behind it.
func Seed(text string) (url string, err error) {
	text = strings.TrimSpace(text)
	if isPath(text) {
		err = errors.New("a path without a host")
	} else if !lacksScheme(text) {
		url, err = weburl.Canonical(text)
	} else if url, err = weburl.Canonical("http://" + text); err == nil && !isLocal(weburl.Host(url)) {
		url, err = weburl.Canonical("https://" + text)
	}
	if err == nil && isNobody(weburl.Host(url)) {
		err = errors.New("no page has such a host")
	}
	if err != nil {
		return "", fmt.Errorf("urlfilter: seed %q: %w", text, err)
	}
	return url, nil
}

// SeedPrefix is [Seed] for the beginning of URLs, which may end anywhere: that of "https://a.example/."
// is no dot segment but the beginning of all hidden files. A fragment is an error, since no canonical
// URL has one. If there is no path, the prefix is that of the whole host.
func SeedPrefix(text string) (prefix string, err error) {
	if strings.Contains(text, "#") {
		return "", fmt.Errorf("urlfilter: prefix %q: no canonical URL has a fragment", text)
	}
	text = strings.TrimSpace(text)
	if prefix, err = Seed(text); err != nil {
		return "", err
	}
	// What follows makes the last segment one that is like no other.
	longer, err := Seed(text + "x")
	if err == nil && weburl.Host(longer) == weburl.Host(prefix) {
		prefix = strings.TrimSuffix(longer, "x")
	}
	return prefix, nil
}

// isPath reports whether text is a path. After a scheme, its first segment would be a host.
func isPath(text string) bool {
	two := strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "///")
	return text != "" && strings.ContainsAny(text[:1], `./\`) && !two
}

// isNobody reports whether a host has a character that the URL Standard allows and no name has, or begins with
// a hyphen, as the lines of some lists do.
func isNobody(host string) bool {
	return strings.HasPrefix(host, "-") || strings.ContainsFunc(host, func(c rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_.:", c)
	})
}

// lacksScheme distinguishes www.example.org:8080 from mailto:someone@example.org: a port is a
// number. A colon further behind is none of a scheme.
func lacksScheme(text string) bool {
	name, rest, colon := strings.Cut(text, ":")
	return !colon || strings.ContainsAny(name, `/\?#[`) || rest != "" && '0' <= rest[0] && rest[0] <= '9'
}

func isLocal(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.IsLoopback()
}

// Seeds reads seeds, one per line, as [Seed] accepts them. Empty lines and lines that begin with #
// are skipped; a space or a tab, as of a comment behind a URL, makes a line bad. The error joins a [SyntaxError]
// for each bad line; the seeds of the other lines are returned nevertheless. A line of 64 KiB or more, or with
// a CR within, ends the reading with another error. The file name is only for errors.
func Seeds(r io.Reader, file string) (urls []string, err error) {
	var bad []error
	for n, line := range entries(r, &err) {
		url, err := Seed(line)
		switch {
		case err != nil:
			bad = append(bad, &SyntaxError{file, n, line, "is not an http(s) URL"})
		case len(strings.Fields(line)) > 1: // what follows would be part of the path
			bad = append(bad, &SyntaxError{file, n, line, "has a space or a tab: each URL and each comment has a line of its own"})
		default:
			urls = append(urls, url)
		}
	}
	if err != nil {
		bad = append(bad, fmt.Errorf("urlfilter: read seeds %s: %w", file, err))
	}
	return urls, errors.Join(bad...)
}

// entries returns the lines of a file with their numbers, without a byte-order mark, spaces around
// them, empty lines and comments. They end with an error at a line that has 64 KiB, or a CR within: of a
// file whose lines end in CR alone, a comment would hide all that follows.
func entries(r io.Reader, err *error) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		lines := bufio.NewScanner(r)
		n := 0
		for lines.Scan() {
			n++
			line := lines.Text()
			if n == 1 {
				line = strings.TrimPrefix(line, "\ufeff")
			}
			line = strings.TrimSpace(line)
			if strings.Contains(line, "\r") {
				*err = fmt.Errorf("line %d: a CR within the line: end each line with LF or CR LF", n)
				return
			}
			if line != "" && line[0] != '#' && !yield(n, line) {
				return
			}
		}
		if *err = lines.Err(); *err != nil {
			*err = fmt.Errorf("line %d: %w", n+1, *err)
		}
	}
}

// A SyntaxError reports a line of a file that cannot be parsed.
type SyntaxError struct {
	File   string
	Line   int // from 1
	Entry  string
	Reason string
}

// Error returns all fields.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("urlfilter: %s:%d: %q %s", e.File, e.Line, e.Entry, e.Reason)
}
