package crawl

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// ErrDiffers is wrapped by the error of [Create] if the crawl exists with other options.
var ErrDiffers = errors.New("crawl: exists with other options; \"cluster add\" adds seeds to it, and " +
	"a crawl with these options needs another -crawl NAME")

// differs returns an [ErrDiffers] that names all options in which others differ from those of the
// crawl, or nil.
func (o Options) differs(other Options) error {
	is, want := reflect.ValueOf(o), reflect.ValueOf(other)
	var lines strings.Builder
	for i := range is.NumField() {
		a, b := fmt.Sprint(is.Field(i)), fmt.Sprint(want.Field(i))
		if a != b {
			fmt.Fprintf(&lines, "\n  %s is %.200s, not %.200s", is.Type().Field(i).Name, a, b)
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	return fmt.Errorf("%w:%s", ErrDiffers, lines.String())
}
