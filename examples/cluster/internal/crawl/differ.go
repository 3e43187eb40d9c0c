package crawl

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// ErrDiffers is wrapped by the error of [Create] if the crawl exists with other options.
var ErrDiffers = errors.New("crawl: exists with other options; \"cluster add\" adds seeds to it, and " +
	"a crawl with these options needs another -crawl NAME")

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

// differs returns an [ErrDiffers] that names all options in which others differ from those of the
// crawl, or nil.
func (o Options) differs(other Options) error {
	is, want := reflect.ValueOf(o.withDefaults()), reflect.ValueOf(other.withDefaults())
	var lines strings.Builder
	for i := range is.NumField() {
		a, b := is.Field(i), want.Field(i)
		if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 ||
			reflect.DeepEqual(a.Interface(), b.Interface()) {
			continue
		}
		fmt.Fprintf(&lines, "\n  -%s is %s, not %s", flagOf(is.Type().Field(i).Name), show(a), show(b))
	}
	if lines.Len() == 0 {
		return nil
	}
	return fmt.Errorf("%w:%s", ErrDiffers, lines.String())
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
