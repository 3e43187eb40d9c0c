package robots

import (
	"strconv"
	"strings"
)

// flags are the directives without a value. Those that only say what holds anyway are among them,
// so that they are not taken for unknown ones.
var flags = map[string]func(*Tag){
	"all":                  func(*Tag) {},
	"index":                func(*Tag) {},
	"follow":               func(*Tag) {},
	"none":                 func(t *Tag) { t.NoIndex, t.NoFollow = true, true },
	"noindex":              func(t *Tag) { t.NoIndex = true },
	"nofollow":             func(t *Tag) { t.NoFollow = true },
	"noarchive":            func(t *Tag) { t.NoArchive = true },
	"nocache":              func(t *Tag) { t.NoCache = true },
	"nosnippet":            func(t *Tag) { t.NoSnippet = true },
	"noimageindex":         func(t *Tag) { t.NoImageIndex = true },
	"notranslate":          func(t *Tag) { t.NoTranslate = true },
	"noai":                 func(t *Tag) { t.NoAI = true },
	"noimageai":            func(t *Tag) { t.NoImageAI = true },
	"nopagereadaloud":      func(t *Tag) { t.NoPageReadAloud = true },
	"nositelinkssearchbox": func(t *Tag) { t.NoSitelinksSearchBox = true },
	"indexifembedded":      func(t *Tag) { t.IndexIfEmbedded = true },
}

// settings are the directives with a value. They report whether they understand it, and change
// nothing if not. Each takes the more restrictive of what it says and what was said before.
var settings = map[string]func(t *Tag, value string) bool{
	"max-snippet":       func(t *Tag, v string) bool { return t.MaxSnippet.set(v) },
	"max-video-preview": func(t *Tag, v string) bool { return t.MaxVideoPreview.set(v) },
	"max-image-preview": (*Tag).setPreview,
	"unavailable_after": (*Tag).setDate,
}

// read adds the directives of a header field or, where no names of crawlers occur, of a meta
// element.
func (t *Tag) read(field, own string, named bool) {
	applies := true
	for field != "" {
		item, rest := cutItem(field)
		key, value, colon := cutKey(item)
		// Names are taken off the item, since to look for its end again behind each of them would
		// take the square of the time.
		for named && colon && isName(key) && !strings.HasPrefix(value, "//") {
			applies = names(key, own)
			field = field[strings.IndexByte(field, ':')+1:]
			item = strings.TrimSpace(value)
			key, value, colon = cutKey(item)
		}
		switch {
		case colon && settings[key] != nil:
			// A date may hold commas, so it is looked for behind this one, too.
			_, value, _ = strings.Cut(field, ":")
			rest = t.readSetting(key, value, applies)
		case applies:
			t.addItem(item, key)
		}
		field = rest
	}
}

// cutKey splits an item at its first colon, and puts what stands before that into lower case.
func cutKey(item string) (key, value string, colon bool) {
	name, value, colon := strings.Cut(item, ":")
	return strings.ToLower(trimRight(name)), value, colon
}

// cutItem splits off what stands before a comma, or before a semicolon, which some write instead.
func cutItem(field string) (item, rest string) {
	if i := strings.IndexAny(field, ",;"); i >= 0 {
		field, rest = field[:i], field[i+1:]
	}
	return strings.TrimSpace(field), rest
}

// addItem adds a directive without value. That of flags is passed over: to ignore all of it would
// be the less careful guess. The same holds where blanks stand in the place of commas.
func (t *Tag) addItem(item, key string) {
	if set := flags[key]; set != nil {
		set(t)
		return
	}
	words := strings.Fields(strings.ToLower(item))
	for _, word := range words {
		if flags[word] == nil {
			t.Other = append(t.Other, strings.Clone(item))
			return
		}
	}
	for _, word := range words {
		flags[word](t)
	}
}

// readSetting takes the longest value that makes sense: up to the third comma, the second, or the
// first. A value that makes none is dropped up to the first. It returns what follows.
func (t *Tag) readSetting(key, value string, applies bool) (rest string) {
	var ends []int
	for i := 0; len(ends) < 3; i++ {
		next := strings.IndexAny(value[i:], ",;")
		if next < 0 {
			ends = append(ends, len(value))
			break
		}
		i += next
		ends = append(ends, i)
	}
	var scratch Tag
	if !applies {
		t = &scratch // the value has to be read all the same, to know where it ends
	}
	for i := len(ends) - 1; i >= 0; i-- {
		if settings[key](t, strings.TrimSpace(value[:ends[i]])) {
			return value[min(ends[i]+1, len(value)):]
		}
	}
	return value[min(ends[0]+1, len(value)):]
}

// readList adds the members of a Robots-Tag field: names whose parameters are directives.
func (t *Tag) readList(field, own string) {
	s := scanner{rest: field}
	var found Tag
	for name, parameters := range s.list() {
		if !names(name, own) {
			continue
		}
		for key, value := range parameters {
			found.addParameter(key, value)
		}
	}
	if !s.failed {
		*t = t.Merge(found)
	}
}

// addParameter adds what X-Robots-Tag would write as key or key: value. A flag with a value is kept
// as unknown, unless the value is the boolean that says the same.
func (t *Tag) addParameter(key, value string) {
	set := settings[key]
	switch {
	case value == "?0":
	case set != nil:
		set(t, strings.Trim(value, `"`))
	case value == implied:
		t.addItem(key, key)
	default:
		t.Other = append(t.Other, key+"="+value)
	}
}

// names reports whether a name in a header or a meta element means the crawler with that token. The
// comparison is that of groups in robots.txt, so that a crawler has one name everywhere.
func names(name, own string) bool {
	if name == anyAgent || strings.EqualFold(name, "robots") {
		return true
	}
	token, full := fileTokens(name)
	return own != "" && (token == own || full == own)
}

// isName reports whether a key that a colon follows is the name of a crawler: no directive, but of
// the form of a product token, which keeps the colons of broken dates from ending the directives for
// all.
func isName(key string) bool {
	if flags[key] != nil || settings[key] != nil {
		return false
	}
	return key == anyAgent || key != "" && leading(key, isTokenByte) == key
}

// set takes the lower of several limits, as if they had come from several fields.
func (l *Limit) set(value string) bool {
	if value == "-1" {
		return true
	}
	// Digits beyond the range of int are a limit that no text reaches.
	if value == "" || leading(value, isDigit) != value {
		return false
	}
	if n, err := strconv.Atoi(value); err == nil {
		*l = l.lower(Limit{true, n})
	}
	return true
}

// setPreview knows the three sizes that are documented. Another one is no reason to show less.
func (t *Tag) setPreview(value string) bool {
	value = strings.ToLower(value)
	for _, size := range previews {
		if value == size {
			t.MaxImagePreview = smaller(t.MaxImagePreview, size)
			return true
		}
	}
	return false
}

// setDate takes the earlier of two dates, since the page is gone after the first.
func (t *Tag) setDate(value string) bool {
	date, ok := parseDate(value)
	if ok {
		t.Unavailable = earlier(t.Unavailable, date)
	}
	return ok
}
