package crawl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// ErrDiffers is wrapped by the error of [Create] if the crawl exists with other options.
var ErrDiffers = errors.New("crawl: exists with other options")

// A Difference is an option in which two crawls differ. It is a plain value, and not safe for
// concurrent use.
type Difference struct {
	Option   string // as "cluster create" calls it
	Is, Want string
	Fixed    bool // it cannot be changed
}

// String describes the difference.
func (d Difference) String() string {
	fixed := ""
	if d.Fixed {
		fixed = " (cannot be changed)"
	}
	return fmt.Sprintf("-%s is %s, not %s%s", d.Option, d.Is, d.Want, fixed)
}

// changeable are the options that can be changed later: those that do not influence what a state
// sends. A new owner that replays messages must send what the previous one has sent.
var changeable = map[string]bool{
	"Contact": true, "Delay": true, "Timeout": true, "MaxBody": true, "Scope": true,
	"Backoff": true, "MaxDepth": true, "Deny": true, "Seeds": true,
}

// flagOf returns the flag of "cluster create" for an option: HostPages is -host-pages.
func flagOf(option string) string {
	if option == "MaxDepth" {
		return "depth"
	}
	var b strings.Builder
	for i, r := range strings.TrimSuffix(option, "Parts") {
		if unicode.IsUpper(r) {
			if r = unicode.ToLower(r); i > 0 {
				b.WriteByte('-')
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Differences returns the differences between other options and those of the crawl.
func (o Options) Differences(other Options) (all []Difference) {
	is, want := reflect.ValueOf(o.withDefaults()), reflect.ValueOf(other.withDefaults())
	for i := range is.NumField() {
		name := is.Type().Field(i).Name
		a, b := is.Field(i), want.Field(i)
		if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 ||
			reflect.DeepEqual(a.Interface(), b.Interface()) {
			continue
		}
		all = append(all, Difference{flagOf(name), show(a), show(b), !changeable[name]})
	}
	return all
}

// show formats an option and shortens long lists.
func show(v reflect.Value) string {
	text := fmt.Sprint(v.Interface())
	if v.Kind() == reflect.Slice && v.Len() > 3 {
		text = fmt.Sprintf("%v … (%d)", v.Slice(0, 3).Interface(), v.Len())
	}
	if text == "" {
		text = `""`
	}
	return text
}

// differs returns an error that names all differences.
func differs(all []Difference) error {
	var lines []string
	for _, d := range all {
		lines = append(lines, d.String())
	}
	return fmt.Errorf("%w:\n  %s", ErrDiffers, strings.Join(lines, "\n  "))
}

// Apply gives the crawl other options, which all processes adopt. If one of them cannot be changed,
// it fails with [ErrDiffers] and changes nothing.
func (c *Crawl) Apply(ctx context.Context, o Options) error {
	o = o.withDefaults()
	var fixed []Difference
	for _, d := range c.Options.Differences(o) {
		if d.Fixed {
			fixed = append(fixed, d)
		}
	}
	if len(fixed) > 0 {
		return differs(fixed)
	}
	if _, err := o.filter(Settings{}); err != nil {
		return err
	}
	cell, _, err := c.States.Cell(ctx, optionsKey)
	if err != nil {
		return err
	}
	value, err := o.encode()
	if err != nil {
		return err
	}
	if err := cell.Store(ctx, value); err != nil {
		return err
	}
	c.Options = o
	_, err = c.Change(ctx, func(s *Settings) error { s.Options++; return nil })
	return err
}

// Host returns the host of a canonical URL, as the crawl knows it.
func Host(url string) string { return weburl.Host(url) }
