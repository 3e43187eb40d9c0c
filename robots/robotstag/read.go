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
//
// It reads one word after another, whatever separates them, so that no directive is hidden. A value is
// one word, unless it is a date. Only an unknown directive may have another directive as its value. The
// crawler's own name counts anywhere, that of another one at the beginning and after a comma or a name.
func (d *Directives) read(field, own, marks string) {
	var others Directives // what other crawlers are asked for
	to, named, first := d, false, true
	rest := strings.ReplaceAll(field, "\u00a0", " ") // so that dates need not know it
	for rest != "" {
		word, mark, after := cutWord(rest)
		value := ""
		if rest = after; mark != 0 && !startsItem(rest) {
			value, _, after = cutWord(rest)
		}
		if mark != 0 && marks != "" && isName(word, value, own) {
			isOwn := names(word, own)
			if isOwn || (first || named) && strings.IndexByte(marks, mark) >= 0 {
				if isOwn {
					to = d
				} else if !named { // of several names before a directive, one of the crawler's is enough
					to = &others
				}
				named = true
				continue
			}
		}
		switch {
		case word == "unavailable_after" && mark != 0:
			n := leadingDate(rest)
			to.set(word, trimValue(rest[:n]))
			rest = strings.TrimLeftFunc(rest[n:], isBlankOrQuote) // a comma may follow
		case hasValue(word):
			if to.set(word, value) {
				rest = after
			}
		case (!to.set(word, "") || !known(value)) && !names(word, own) && !names(value, own):
			rest = after
		}
		named, first = false, startsItem(rest)
	}
}

// startsItem reports whether the next item begins here.
func startsItem(rest string) bool { return rest == "" || isComma(rune(rest[0])) }

// cutWord splits off the first word, in lower case, and what follows it up to the next word or comma: the
// mark is 0 unless that has a colon or an equals sign.
func cutWord(text string) (word string, mark byte, rest string) {
	isEnd := func(r rune) bool { return isBlankOrMark(r) || isComma(r) }
	text = strings.TrimLeftFunc(text, isEnd)
	n := strings.IndexFunc(text, isEnd)
	if n < 0 {
		n = len(text)
	}
	rest = strings.TrimLeftFunc(text[n:], isBlankOrQuote)
	if rest != "" && (rest[0] == ':' || rest[0] == '=') {
		mark, rest = rest[0], strings.TrimLeftFunc(rest, isBlankOrMark)
	}
	return strings.ToLower(text[:n]), mark, rest
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

// isName reports whether a word followed by a mark is the name of a crawler. Mistaking an unknown
// directive for a name would hide all directives up to the next name.
func isName(word, value, own string) bool {
	token := rep.NameOf(word)
	if token == "" || known(word) || word != token && word[len(token)] != '/' {
		return false // not a name, with or without version
	}
	// Future limits may have values that are known today: "max-audio-preview: none".
	return names(token, own) || !strings.HasPrefix(word, "max-") && known(value)
}

// isBlankOrMark says what may separate a key from its value, in any number. In a page, that may be
// a line break.
func isBlankOrMark(r rune) bool { return isBlankOrQuote(r) || r == ':' || r == '=' }

func isBlankOrQuote(r rune) bool { return unicode.IsSpace(r) || r == '"' }

// isComma has the semicolon as well, which some pages use instead.
func isComma(r rune) bool { return r == ',' || r == ';' }

// trimValue removes blanks and quotation marks around a value.
func trimValue(s string) string { return strings.TrimFunc(s, isBlankOrQuote) }
