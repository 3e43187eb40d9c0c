package robotstag

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

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
		if ok && date.IsZero() { // a date in the past, but the zero time would mean never
			date = date.Add(time.Second)
		}
		d.Unavailable = earlier(d.Unavailable, date)
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
func known(word string) bool { return hasValue(word) || new(Directives).set(word, "") }

// hasValue reports whether a word is a directive that has a value.
func hasValue(word string) bool {
	switch word {
	case "max-snippet", "max-video-preview", "max-image-preview", "unavailable_after":
		return true
	}
	return false
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
	field = strings.ReplaceAll(field, "\u00a0", " ") // so that dates need not know it
	for field != "" {
		item, rest := cutItem(field, 0)
		key, value, colon := cutKey(item)
		for named := false; colon && marks != "" && isName(key, value, own) && (names(key, own) ||
			strings.IndexByte(marks, item[strings.IndexAny(item, ":=")]) >= 0); named = true {
			// Of several names before a directive, one of the crawler's is enough.
			applies = names(key, own) || named && applies
			field = strings.TrimLeftFunc(field[strings.IndexAny(field, ":=")+1:], isBlankOrMark)
			item = value
			key, value, colon = cutKey(item)
		}
		if end := dateEnd(field, len(field)-len(rest)); end > 0 {
			item, rest = cutItem(field, end) // a date may contain two commas
		}
		if !applies {
			item, applies = fromOwnName(item, own, marks)
		}
		if applies {
			d.add(item, own)
		}
		field = rest
	}
}

// fromOwnName returns what follows the crawler's own name in an item for another one, if a blank is
// before the name.
func fromOwnName(item, own, marks string) (rest string, found bool) {
	for rest = item; ; {
		i := strings.IndexAny(rest, marks)
		if i < 0 {
			return "", false
		}
		words := strings.Fields(rest[:i])
		if rest = rest[i+1:]; len(words) > 1 && names(strings.ToLower(words[len(words)-1]), own) {
			return rest, true
		}
	}
}

// add adds one item. Words separated by blanks are read as if separated by commas. So a value is one
// word, unless it is a date, and what follows it is read like the next item.
func (d *Directives) add(item, own string) {
	for text := item; text != ""; {
		words, value, colon := cutKey(text)
		key := ""
		for word := range strings.FieldsSeq(words) {
			d.set(key, "")
			key = word
		}
		if !colon {
			d.set(key, "")
			return
		}
		text = d.assign(key, value, own)
	}
}

// assign applies a directive with the value at the start of some text. It returns what does not
// belong to the value. Only an unknown directive may have another directive as its value.
func (d *Directives) assign(key, text, own string) (rest string) {
	if key == "unavailable_after" {
		n := leadingDate(text)
		d.set(key, trimValue(text[:n]))
		return strings.TrimSpace(text[n:])
	}
	// A word ends at the next colon, too, or many of them would each be read up to the next blank.
	n := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == ':' || r == '=' })
	if n < 0 {
		n = len(text)
	}
	word, rest := trimValue(text[:n]), strings.TrimSpace(text[n:])
	switch {
	case !known(key):
		if key == "" || names(key, own) {
			return text // a name that follows a blank
		}
	case !d.set(key, word), !hasValue(key) && known(strings.ToLower(word)):
		return text
	}
	return rest
}

// dateEnd returns where the date of the last unavailable_after in an item ends, or 0 if there is
// none. The item is the beginning of a field up to a comma, which may be part of the date.
func dateEnd(field string, item int) int {
	const before, after = len("unavailable"), len("_after")
	for i := item; i >= before; {
		if i = strings.LastIndexByte(field[:i], '_'); i < before || i+after > item {
			continue
		}
		if strings.EqualFold(field[i-before:i+after], "unavailable_after") {
			rest := field[i+after:]
			value := strings.TrimLeftFunc(rest, isBlankOrMark)
			n := leadingDate(value)
			if n == 0 {
				return 0
			}
			return len(field) - len(value) + n
		}
	}
	return 0
}

// maxDate bounds, in bytes, the text that is tried as a date. No date is longer.
const maxDate = 64

// leadingDate returns the length of the longest beginning of a text that is a date, in whole words. None
// of them is a directive, which webdate would take for a weekday or a zone.
func leadingDate(text string) int {
	isEnd := func(c byte) bool { return strings.IndexByte(" \t\n\v\f\r,;", c) >= 0 }
	for n := min(len(text), maxDate); n > 0; n-- {
		if isEnd(text[n-1]) || n < len(text) && !isEnd(text[n]) {
			continue
		}
		isDirective := func(word string) bool { return known(strings.ToLower(strings.Trim(word, `",()`))) }
		_, ok := webdate.Parse(trimValue(text[:n]))
		if ok && !slices.ContainsFunc(strings.Fields(text[:n]), isDirective) {
			return n
		}
	}
	return 0
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
	if words := strings.Fields(next); len(words) > 0 {
		next = words[0]
	}
	// Future limits may have values that are known today: "max-audio-preview: none".
	return !strings.HasPrefix(key, "max-") && known(next)
}

// cutKey splits an item at its first colon or equals sign. The key is returned in lower case.
func cutKey(item string) (key, value string, found bool) {
	i := strings.IndexAny(item, ":=")
	if i < 0 {
		return strings.ToLower(strings.TrimSpace(item)), "", false
	}
	value = strings.TrimLeftFunc(trimValue(item[i+1:]), isBlankOrMark)
	return strings.ToLower(strings.TrimSpace(item[:i])), value, true
}

// isBlankOrMark says what may separate a key from its value, in any number. In a page, that may be
// a line break.
func isBlankOrMark(r rune) bool { return isBlankOrQuote(r) || r == ':' || r == '=' }

func isBlankOrQuote(r rune) bool { return unicode.IsSpace(r) || r == '"' }

// trimValue removes blanks and quotation marks around a value.
func trimValue(s string) string { return strings.TrimFunc(s, isBlankOrQuote) }

// cutItem splits off what precedes the first comma from an offset on, or semicolon, which some pages
// use instead.
func cutItem(field string, from int) (item, rest string) {
	if i := strings.IndexAny(field[from:], ",;"); i >= 0 {
		return strings.TrimSpace(field[:from+i]), field[from+i+1:]
	}
	return strings.TrimSpace(field), ""
}
