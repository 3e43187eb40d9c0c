package cockpit

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/revisit"
)

// UserAgent names the crawler, its version, unless -agent has one, and its contact.
func (c *Config) UserAgent() string {
	if c.Contact == "" {
		return ""
	}
	agent := c.Agent
	if !strings.Contains(agent, "/") {
		agent += "/" + strings.TrimPrefix(buildVersion(), "v")
	}
	return agent + " (+" + c.Contact + ")"
}

// patternsIn returns a flag that adds a pattern each time.
func patternsIn(to *[]*regexp.Regexp) func(text string) error {
	return func(text string) error {
		pattern, err := regexp.Compile(text)
		if err == nil {
			*to = append(*to, pattern)
		}
		return err
	}
}

// parseArgs parses flags anywhere on the command line, up to "--". It returns the other arguments.
func parseArgs(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, flagError(fs, err)
		}
		parsed := len(args) - fs.NArg()
		if fs.NArg() == 0 || parsed > 0 && args[parsed-1] == "--" {
			return append(rest, fs.Args()...), nil
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

func unknownFlag(fs *flag.FlagSet, name string) error {
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("unknown flag -%s (did you mean -%s?)", name, near)
	}
	return fmt.Errorf("unknown flag -%s; -h lists all", name)
}

// nearest returns the most similar name, or "".
func nearest(word string, names []string) (found string) {
	least := 2 * (min(2, len(word)-1) + 1)
	for _, name := range names {
		d := 2 * distance(word, name)
		if strings.HasPrefix(name, word) {
			d-- // -page means -pages rather than -pace
		}
		if d < least {
			found, least = name, d
		}
	}
	return found
}

// distance counts the letters to be inserted, deleted or replaced (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost = min(corner, row[j], row[j+1]) + 1
			}
			corner, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// readFlags sets flags from a file, unless they were set on the command line. A line has a name
// and, after a blank or an equals sign, a value; a boolean flag needs none. A # starts a comment at
// the beginning of a line or after a blank.
func readFlags(fs *flag.FlagSet, r io.Reader, name string) error {
	given := givenFlags(fs)
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		key, value := cutLine(lines.Text())
		if key == "" || given[key] {
			continue
		}
		if fs.Lookup(key) == nil { // -h is none here
			return fmt.Errorf("%s:%d: %w", name, n, unknownFlag(fs, key))
		}
		flag := "-" + key
		if value != "" {
			flag += "=" + value
		}
		if err := fs.Parse([]string{flag}); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, flagError(fs, err))
		}
	}
	return lines.Err()
}

// givenFlags returns the names of the flags that were set.
func givenFlags(fs *flag.FlagSet) map[string]bool {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
}

// cutLine returns the name and the value of a flag, without comments and surrounding blanks.
func cutLine(text string) (key, value string) {
	text, _, _ = strings.Cut(" "+strings.ReplaceAll(text, "\t", " "), " #")
	text = strings.TrimLeft(strings.TrimSpace(text), "-")
	end := strings.IndexAny(text, " =")
	if end < 0 {
		return text, ""
	}
	value = strings.TrimPrefix(strings.TrimSpace(text[end:]), "=")
	return text[:end], strings.TrimSpace(value)
}

// ParsePolicy returns the policy with a name, or for an interval such as 24h.
func ParsePolicy(name string, price float64, least, most time.Duration) (revisit.Policy, error) {
	switch name {
	case "bayes":
		return revisit.Bayes{Price: price, Min: least, Max: most}, nil
	case "feed":
		feed := revisit.Feed()
		feed.Price, feed.Min, feed.Max = price, least, most
		return feed, nil
	case "mle":
		return revisit.MLE{Alpha: price, Min: least, Max: most}, nil
	case "aimd":
		return revisit.AIMD{Min: least, Max: most}, nil
	}
	var every Span
	if err := every.Set(name); err != nil || every <= 0 {
		return nil, fmt.Errorf("-revisit %q: want bayes, feed, mle, aimd or an interval such as 24h", name)
	}
	return revisit.Every(every), nil
}
