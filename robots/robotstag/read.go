package robotstag

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spinneret-go/spinneret/internal/webdate"
	"github.com/spinneret-go/spinneret/robots/internal/rep"
)

// flagNames are the directives without a value.
var flagNames = []string{
	"noindex", "nofollow", "noarchive", "nosnippet", "noimageindex", "notranslate", "noai",
	"noimageai", "indexifembedded",
}

// flag returns the field of a directive without a value, or nil.
func (d *Directives) flag(name string) *bool {
	fields := [...]*bool{
		&d.NoIndex, &d.NoFollow, &d.NoArchive, &d.NoSnippet, &d.NoImageIndex, &d.NoTranslate,
		&d.NoAI, &d.NoImageAI, &d.IndexIfEmbedded,
	}
	if i := slices.Index(flagNames, name); i >= 0 {
		return fields[i]
	}
	return nil
}

// set applies a directive and reports whether it is known. If it contradicts an earlier one, the
// more restrictive wins.
func (d *Directives) set(key, value string) bool {
	switch key {
	case "all", "index", "follow": // the default
	case "none":
		d.NoIndex, d.NoFollow = true, true
	case "max-snippet":
		return d.MaxSnippet.set(value)
	case "max-video-preview":
		return d.MaxVideoPreview.set(value)
	case "max-image-preview":
		i := slices.Index(previews, strings.ToLower(value))
		if i >= 0 {
			d.MaxImagePreview = smaller(d.MaxImagePreview, previews[i])
		}
		return i >= 0
	case "unavailable_after":
		date, ok := webdate.Parse(value)
		if ok {
			d.Unavailable = earlier(d.Unavailable, date)
		}
		return ok
	default:
		// The value of a flag is ignored. Ignoring the whole directive would be the less careful
		// choice.
		flag := d.flag(key)
		if flag != nil {
			*flag = true
		}
		return flag != nil
	}
	return true
}

// known reports whether a word is a directive.
func known(word string) bool {
	switch word {
	case "max-snippet", "max-video-preview", "max-image-preview", "unavailable_after":
		return true
	}
	return new(Directives).set(word, "")
}

// set keeps the lowest of several limits, as if they had come from several fields.
func (l *Limit) set(value string) bool {
	if value == "-1" {
		return true
	}
	// Digits beyond the range of int are a limit that no text reaches.
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return false
	}
	if n, err := strconv.Atoi(value); err == nil {
		*l = l.lower(Limit{true, n})
	}
	return true
}

// read adds the directives of a header field, in which one of the marks follows the name of a
// crawler. In a meta element no crawler can be named.
func (d *Directives) read(field, own, marks string) {
	applies := true
	for field != "" {
		item, rest := cutItem(field, 1)
		key, value, colon := cutKey(item)
		if colon && marks != "" && isName(key, value, own) &&
			(names(key, own) || strings.IndexByte(marks, item[strings.IndexAny(item, ":=")]) >= 0) {
			applies = names(key, own)
			_, field, _ = cutKey(field)
			item, rest = cutItem(field, 1)
			key, _, _ = cutKey(item)
		}
		// A date may contain two commas, so the longest item that parses as a date counts.
		for n := 3; n > 1 && key == "unavailable_after"; n-- {
			longer, after := cutItem(field, n)
			if _, value, _ := cutKey(longer); new(Directives).set(key, value) {
				item, rest = longer, after
				break
			}
		}
		if applies {
			d.add(item)
		}
		field = rest
	}
}

// add adds one item. Words separated by blanks are read as if separated by commas.
func (d *Directives) add(item string) {
	key, value, colon := cutKey(item)
	unknown := false
	if colon {
		unknown = !d.set(key, value)
	} else {
		for word := range strings.FieldsSeq(key) {
			unknown = !d.set(word, "") || unknown
		}
	}
	if unknown {
		d.Other = append(d.Other, strings.Clone(item))
	}
}

// isName reports whether a key followed by a colon is the name of a crawler. Mistaking an unknown
// directive for a name would hide all directives up to the next name.
func isName(key, value, own string) bool {
	token := rep.NameOf(key)
	if token == "" || known(key) || key != token && key[len(token)] != '/' {
		return false // not a name, with or without version
	}
	if names(token, own) {
		return true
	}
	next, _, _ := cutKey(value)
	next = rep.Leading(next, func(c byte) bool { return !rep.IsBlank(c) })
	// Future limits may have values that are known today: "max-audio-preview: none".
	return !strings.HasPrefix(key, "max-") && known(next)
}

// cutKey splits an item at its first colon or equals sign. The key is returned in lower case.
func cutKey(item string) (key, value string, found bool) {
	i := strings.IndexAny(item, ":=")
	if i < 0 {
		return strings.ToLower(strings.TrimSpace(item)), "", false
	}
	return strings.ToLower(strings.TrimSpace(item[:i])), strings.Trim(item[i+1:], " \t\""), true
}

// cutItem splits off what precedes the n-th comma, or semicolon, which some pages use instead.
func cutItem(field string, n int) (item, rest string) {
	for i := range len(field) {
		if field[i] == ',' || field[i] == ';' {
			if n--; n == 0 {
				return strings.TrimSpace(field[:i]), field[i+1:]
			}
		}
	}
	return strings.TrimSpace(field), ""
}
