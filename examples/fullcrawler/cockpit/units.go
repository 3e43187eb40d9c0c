package cockpit

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A ByteCount is a flag such as 20GB. What it prints, it also reads. It is not safe for concurrent use.
type ByteCount int64

// bytesIn makes a flag of a number of bytes, with a default.
func bytesIn(p *int64, value int64) *ByteCount {
	*p = value
	return (*ByteCount)(p)
}

// units are the suffixes of a number of bytes.
var units = []struct {
	name  string
	bytes float64
}{
	{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6},
	{"KiB", 1 << 10}, {"KB", 1e3}, {"B", 1}, {"", 1},
}

// String returns the number in the largest unit of which it is a multiple.
func (b *ByteCount) String() string {
	for _, unit := range units {
		if n := int64(unit.bytes); *b > 0 && int64(*b)%n == 0 {
			return fmt.Sprint(int64(*b)/n, unit.name)
		}
	}
	return fmt.Sprint(int64(*b))
}

// Set reads a number with or without a unit.
func (b *ByteCount) Set(text string) error {
	for _, unit := range units {
		number, found := strings.CutSuffix(strings.ToLower(text), strings.ToLower(unit.name))
		if !found {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(value >= 0) || value*unit.bytes > 1<<60 {
			break
		}
		*b = ByteCount(value * unit.bytes)
		return nil
	}
	return errors.New("want a number of bytes such as 20GB or 512MiB")
}

// A Span is a flag such as 30s, 12h or 400d. What it prints, it also reads. It is not safe for
// concurrent use.
type Span time.Duration

// spanIn makes a flag of a duration, with a default.
func spanIn(p *time.Duration, value time.Duration) *Span {
	*p = value
	return (*Span)(p)
}

const day = 24 * time.Hour

// String returns the duration in days, hours, minutes and seconds, without those at the end that are 0.
func (s *Span) String() string {
	d := time.Duration(*s)
	text := (d % day).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	switch days := d / day; {
	case days == 0:
		return text
	case d%day == 0:
		return fmt.Sprint(int64(days), "d")
	default:
		return fmt.Sprint(int64(days), "d", text)
	}
}

// spell returns a duration as a Span.
func spell(d time.Duration) string { return (*Span)(&d).String() }

var spanForm = regexp.MustCompile(`^([0-9]*\.?[0-9]+)d(.*)$`)

// Set reads a duration as time.ParseDuration does, with days before the rest.
func (s *Span) Set(text string) error {
	days, rest := 0.0, text
	if parts := spanForm.FindStringSubmatch(text); parts != nil {
		days, _ = strconv.ParseFloat(parts[1], 64) // it has the form
		rest = parts[2]
	}
	d := time.Duration(0)
	var err error
	if rest != "" || rest == text {
		d, err = time.ParseDuration(rest)
	}
	const most = 100 * 365 * day
	if err != nil || d < 0 || days*float64(day)+float64(d) > float64(most) {
		return errors.New("want a duration such as 30s, 12h or 400d")
	}
	*s = Span(time.Duration(days*float64(day)) + d)
	return nil
}

// The errors of package flag.
var (
	badValue  = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-(\S+): (.*)$`)
	noValue   = regexp.MustCompile(`^flag needs an argument: -(\S+)$`)
	noFlag    = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	unhelpful = regexp.MustCompile(`^(parse error|value out of range)$`)
)

// flagError says which word is wrong, and what is right.
func flagError(fs *flag.FlagSet, err error) error {
	if m := noFlag.FindStringSubmatch(err.Error()); m != nil {
		return unknownFlag(fs, m[1])
	}
	if m := noValue.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("-%s needs a value: %s", m[1], fs.Lookup(m[1]).Usage)
	}
	if m := badValue.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("-%s %s: %w", m[2], m[1], wanted(fs.Lookup(m[2]), errors.New(m[3])))
	}
	return err
}

// wanted replaces an error of package flag about a value by what is wanted.
func wanted(f *flag.Flag, err error) error {
	value, typed := f.Value.(flag.Getter)
	if !typed || !unhelpful.MatchString(err.Error()) {
		return err
	}
	switch value.Get().(type) {
	case bool:
		return errors.New("want true or false")
	case float64:
		return errors.New("want a number")
	}
	return errors.New("want a whole number")
}
