package stage

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// Seed turns what a person types into a canonical URL: a missing scheme is taken for https, except
// that local names, which rarely have certificates, are taken for http.
func Seed(text string) (string, error) {
	text = strings.TrimSpace(text)
	if lacksScheme(text) {
		text = schemeFor(text) + text
	}
	url, err := weburl.Canonical(text)
	if err != nil {
		return "", fmt.Errorf("seed %q: %w", text, err)
	}
	return url, nil
}

// lacksScheme tells www.example.org:8080 from mailto:someone@example.org: a port is a number.
func lacksScheme(text string) bool {
	if strings.Contains(text, "://") {
		return false
	}
	_, rest, colon := strings.Cut(text, ":")
	return !colon || text[0] == '[' || rest != "" && '0' <= rest[0] && rest[0] <= '9'
}

func schemeFor(text string) string {
	for _, local := range []string{"localhost", "127.", "[::1]"} {
		if strings.HasPrefix(text, local) {
			return "http://"
		}
	}
	return "https://"
}

// Seeds reads a list of seeds, one a line; empty lines and lines that begin with # are skipped.
// Lines that are no URLs are handed to reject and skipped.
func Seeds(r io.Reader, reject func(line int, err error)) (urls []string, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		url, err := Seed(text)
		if err != nil {
			reject(n, err)
			continue
		}
		urls = append(urls, url)
	}
	return urls, lines.Err()
}
