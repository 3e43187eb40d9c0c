package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// userAgent names the crawler and whom to ask about it.
func (c *config) userAgent() string {
	if c.contact == "" {
		return ""
	}
	return c.agent + "/0.1 (+" + c.contact + ")"
}

// patterns is a flag that may be given more than once.
type patterns []*regexp.Regexp

// String is what the flag package shows as the default.
func (p *patterns) String() string { return "" }

// Set adds one pattern.
func (p *patterns) Set(text string) error {
	pattern, err := regexp.Compile(text)
	if err == nil {
		*p = append(*p, pattern)
	}
	return err
}

// A byteCount is a flag such as 20GB.
type byteCount int64

// units are what may follow a number of bytes.
var units = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// String returns the bytes as people read them.
func (b *byteCount) String() string { return size(int64(*b)) }

// Set reads a number with or without a unit.
func (b *byteCount) Set(text string) error {
	for _, unit := range units {
		number, found := strings.CutSuffix(strings.ToLower(text), strings.ToLower(unit.name))
		if !found {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(value >= 0) || value*unit.bytes > 1<<60 {
			break
		}
		*b = byteCount(value * unit.bytes)
		return nil
	}
	return fmt.Errorf("%q is no number of bytes such as 20GB or 512MiB", text)
}

// sizes are the flags that count bytes.
type sizes struct{ bytes, minFree, memory byteCount }

// revisiting are the flags of the policy.
type revisiting struct {
	name        string
	price       float64
	least, most time.Duration
}

func (r *revisiting) flags(fs *flag.FlagSet) {
	fs.StringVar(&r.name, "revisit", "bayes", "when to come back: bayes, mle, aimd, or an interval such as 24h")
	fs.Float64Var(&r.price, "price", 0, "what a visit costs, for bayes and mle: the higher, the rarer; 0: 0.5 for bayes, 1 for mle")
	fs.DurationVar(&r.least, "least", time.Hour, "shortest time between two visits of a page")
	fs.DurationVar(&r.most, "most", longest, "longest time between two visits of a page")
}

func (r *revisiting) policy() (policy, error) {
	return parsePolicy(r.name, r.price, r.least, r.most)
}

// readFlags sets the flags of a file that were not set on the command line.
func readFlags(fs *flag.FlagSet, r io.Reader, name string) error {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		key = strings.TrimLeft(key, "-")
		if given[key] {
			continue
		}
		if err := fs.Set(key, strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	return lines.Err()
}
