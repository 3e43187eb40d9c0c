package page

import (
	"iter"
	"net/http"
	"strings"
)

// HeaderLinks returns an iterator over the links of a response's header: those of its Link fields
// (RFC 8288), with the same kinds as link elements with that rel, and that of a Refresh field. base
// is the URL of the response. Limits, errors and strings are as those of [Links].
//
// Links with an anchor, which are about another resource, are left out, and so are links without a
// rel.
func HeaderLinks(header http.Header, base string) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		w := newWalker(yield)
		err := w.begin(base)
		if err == nil {
			err = w.header(header)
		}
		w.end(err)
	}
}

func (w *walker) header(header http.Header) error {
	for _, value := range header["Link"] {
		for url, params := range linkValues(value) {
			if err := w.field(url, params); err != nil {
				return err
			}
		}
	}
	// No standard has this field, but all browsers follow it like the meta element.
	if url := refreshURL([]byte(header.Get("Refresh"))); len(url) > 0 {
		return w.emit(Link{Kind: Redirect}, url)
	}
	return nil
}

// field yields one link of a Link field.
func (w *walker) field(url string, params map[string]string) error {
	l := Link{Rel: strings.ToLower(params["rel"])}
	// With an anchor, it is a link of another page.
	if l.Kind = relKind(l.Rel); l.Kind == 0 || params["anchor"] != "" {
		return nil
	}
	l.NoFollow = hasToken(l.Rel, "nofollow")
	l.Lang, l.Type = strings.ToLower(params["hreflang"]), strings.ToLower(params["type"])
	return w.emit(l, []byte(url))
}

// linkValues iterates over the links of a field's value, each with its parameters by lower-case
// name. Of two parameters with one name, the first counts. Text that does not start with "<" is
// skipped up to the next comma.
func linkValues(s string) iter.Seq2[string, map[string]string] {
	return func(yield func(string, map[string]string) bool) {
		for s != "" {
			s = strings.TrimLeft(s, " \t,")
			if !strings.HasPrefix(s, "<") {
				_, s, _ = strings.Cut(s, ",")
				continue
			}
			// A comma inside the URL is not a separator, so look for the bracket first.
			url, rest, ok := strings.Cut(s[1:], ">")
			if !ok {
				return
			}
			var params map[string]string
			params, s = linkParams(rest)
			if !yield(url, params) {
				return
			}
		}
	}
}

// linkParams reads parameters up to the comma that ends them.
func linkParams(s string) (params map[string]string, rest string) {
	params = make(map[string]string)
	for {
		s = strings.TrimLeft(s, " \t")
		if s == "" || s[0] == ',' {
			return params, s
		}
		s = strings.TrimLeft(s, "; \t")
		end := strings.IndexAny(s, "=;,")
		if end < 0 {
			end = len(s)
		}
		name := strings.ToLower(strings.TrimSpace(s[:end]))
		value := ""
		if s = s[end:]; s != "" && s[0] == '=' {
			value, s = linkParam(strings.TrimLeft(s[1:], " \t"))
		}
		if _, ok := params[name]; !ok && name != "" {
			params[name] = value
		}
	}
}

// linkParam reads a parameter's value, with quotes or without.
func linkParam(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ";,")
		if end < 0 {
			end = len(s)
		}
		return strings.TrimSpace(s[:end]), s[end:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			// Ignore the text between the quotes and the next parameter.
			rest = s[i+1:]
			if next := strings.IndexAny(rest, ";,"); next >= 0 {
				return b.String(), rest[next:]
			}
			return b.String(), ""
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}
