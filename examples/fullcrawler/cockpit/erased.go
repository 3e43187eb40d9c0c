package cockpit

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spinneret-go/spinneret/dedupe/urlfilter"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// ErasedName is the file with what was erased on request and must not come back, in the form of a
// deny list. Every crawl in the directory obeys it, whatever its flags. A page that the crawl should
// fetch again is removed from it with an editor.
const ErasedName = "erased"

// A target is what one argument of erase selects. One of the fields is set.
type target struct {
	url, prefix string // canonical; the scheme does not matter
	host        string // with all hosts under it
}

// parseTarget reads a URL, a prefix that ends with a star, or a host. A slip costs what cannot be
// brought back, so a URL means a single page, and a host may not be all of a public suffix.
func parseTarget(text string) (t target, err error) {
	prefix, starred := strings.CutSuffix(text, "*")
	if starred || strings.Contains(text, "/") {
		canonical := urlfilter.Seed
		if starred {
			canonical = urlfilter.SeedPrefix
		}
		url, err := canonical(prefix)
		switch {
		case err != nil:
			return t, fmt.Errorf("%w: %w", errUsage, err)
		case starred:
			return target{prefix: url}, nil
		}
		return target{url: url}, nil
	}
	url, err := weburl.Canonical("http://" + text)
	host := weburl.Host(url)
	if err != nil || url != "http://"+host+"/" {
		return t, fmt.Errorf("%w: %q is neither a URL, nor a prefix such as https://www.example.org/dir/*, nor a host",
			errUsage, text)
	}
	if _, literal := stage.Literal(host); !literal && host != "localhost" && isSuffix(host) {
		return t, fmt.Errorf("%w: the hosts under %s have many owners: name one of them", errUsage, host)
	}
	return target{host: host}, nil
}

// isSuffix reports whether a host is a public suffix, such as co.uk.
func isSuffix(host string) bool {
	below := "x." + host
	return weburl.Site("http://"+below+"/") == below
}

// lines returns the target as lines of a deny list.
func (t target) lines() []string {
	switch {
	case t.host != "":
		return []string{t.host}
	case t.url != "":
		return []string{"=http://" + t.name(), "=https://" + t.name()}
	}
	return []string{"http://" + t.name(), "https://" + t.name()}
}

// name is the part of a text by which it names the target.
func (t target) name() string {
	_, rest, _ := strings.Cut(t.url+t.prefix, "://")
	return t.host + rest
}

// spells reports whether a URL is one of the target in its own spelling: others differ in their escapes.
func (t target) spells(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	return t.url != "" && rest == t.name() || t.prefix != "" && strings.HasPrefix(rest, t.name())
}

// site is the host of the target.
func (t target) site() string { return cmp.Or(t.host, weburl.Host(t.url+t.prefix)) }

// serves reports whether a host has something of the target.
func (t target) serves(host string) bool {
	return host == t.site() || t.host != "" && strings.HasSuffix(host, "."+t.host)
}

// readErased reads the list of what was erased in the directory of a crawl.
func (c *Config) readErased() error {
	name := filepath.Join(c.Out, ErasedName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = nil, nil
	}
	if err != nil {
		return err
	}
	if c.Filter.Erased == nil {
		c.Filter.Erased = new(urlfilter.List)
	}
	if err := c.Filter.Erased.Reload(bytes.NewReader(text), name); err != nil {
		return err
	}
	c.erasedLines = ruleLines(text)
	return nil
}

// ruleLines returns the lines of a list without comments.
func ruleLines(text []byte) (lines []string) {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// forbid adds lines to the list of a directory, below the day and the reason.
func forbid(dir string, lines []string, reason string) (added int, err error) {
	name := filepath.Join(dir, ErasedName)
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	have := ruleLines(text)
	lines = slices.DeleteFunc(lines, func(line string) bool { return slices.Contains(have, line) })
	if len(lines) == 0 {
		return 0, nil
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	text = fmt.Appendf(text, "# %s  %s\n%s\n", time.Now().UTC().Format(time.DateOnly), reason, strings.Join(lines, "\n"))
	return len(lines), stage.ReplaceFile(name, text)
}

// named reports whether a text has a host with something that is to be erased. Nobody can tell for sure where a URL
// in a text ends, or how it is spelled, so a reason that names the host is not kept.
func (e *erasure) named(text string) bool {
	for range 3 { // a URL in the query of another one is escaped, perhaps twice
		for word := range strings.FieldsFuncSeq(text, inNoHost) {
			if url, err := weburl.Canonical("http://" + strings.Trim(word, ".") + "/"); err == nil && e.serves(weburl.Host(url)) {
				return true
			}
		}
		for _, t := range e.targets { // the parts of an IPv6 address are no words
			if host := t.site(); strings.Contains(host, ":") && strings.Contains(text, host) {
				return true
			}
		}
		text = unescaped(text)
	}
	return false
}

// unescaped decodes the escapes of a text that are valid.
func unescaped(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var plain []byte
	for i := 0; i < len(text); i++ {
		if i+2 < len(text) && text[i] == '%' {
			if code, err := hex.DecodeString(text[i+1 : i+3]); err == nil {
				plain = append(plain, code...)
				i += 2
				continue
			}
		}
		plain = append(plain, text[i])
	}
	return string(plain)
}

// inNoHost reports whether a rune ends the name of a host in a text.
func inNoHost(r rune) bool {
	return r != '-' && r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// takesHost reports whether a host is a target, or under one.
func (e *erasure) takesHost(host string) bool {
	return slices.ContainsFunc(e.targets, func(t target) bool { return t.host != "" && t.serves(host) })
}
