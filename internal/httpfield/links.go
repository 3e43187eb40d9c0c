package httpfield

import (
	"iter"
	"strings"
)

// Links iterates over the links of a Link field (RFC 8288), each with its parameters by lower-case
// name. Of two parameters with one name, the first counts. Text that does not start with "<" is
// skipped up to the next comma.
func Links(s string) iter.Seq2[string, map[string]string] {
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
