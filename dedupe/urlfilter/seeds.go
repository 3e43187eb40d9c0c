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
// http for local names, which rarely have certificates.
func Seed(text string) (url string, err error) {
	text = strings.TrimSpace(text)
	if !lacksScheme(text) {
		url, err = weburl.Canonical(text)
	} else if url, err = weburl.Canonical("http://" + text); err == nil && !isLocal(weburl.Host(url)) {
		url, err = weburl.Canonical("https://" + text)
	}
	if err != nil {
		return "", fmt.Errorf("urlfilter: seed %q: %w", text, err)
	}
	return url, nil
}

// lacksScheme distinguishes www.example.org:8080 from mailto:someone@example.org: a port is a
// number.
func lacksScheme(text string) bool {
	if strings.Contains(text, "://") {
		return false
	}
	_, rest, colon := strings.Cut(text, ":")
	return !colon || text[0] == '[' || rest != "" && '0' <= rest[0] && rest[0] <= '9'
}

func isLocal(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.IsLoopback()
}

// Seeds reads seeds, one per line, as [Seed] accepts them. Empty lines and lines that begin with #
// are skipped. The error joins a [SyntaxError] for each bad line; the seeds of the other lines are
// returned nevertheless. The file name is only for errors.
func Seeds(r io.Reader, file string) (urls []string, err error) {
	var bad []error
	for n, line := range entries(r, &err) {
		url, err := Seed(line)
		if err != nil {
			bad = append(bad, &SyntaxError{file, n, line, "is not an http(s) URL"})
			continue
		}
		urls = append(urls, url)
	}
	if err != nil {
		bad = append(bad, fmt.Errorf("urlfilter: read seeds %s: %w", file, err))
	}
	return urls, errors.Join(bad...)
}

// entries returns the lines of a file with their numbers, without a byte-order mark, spaces around
// them, empty lines and comments.
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
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			if !yield(n, line) {
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
