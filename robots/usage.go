package robots

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// Preference is what a site wishes for one use of its content. It is a wish about what happens
// after the fetch, and changes no verdict.
type Preference struct {
	Label   string // of the use, such as search, ai-train or train-ai
	Granted bool
}

// Signals returns the preferences that the Content-Signal lines of the crawler's groups state for
// a URL, by label, in lower case. What they do not state is not granted nor denied.
//
//	Content-Signal: search=yes, ai-input=no, ai-train=no
//
// A line may name a path before its preferences, and holds for all URLs otherwise. Of several
// lines that match, those of the longest path count, and among these no prevails. For a URL that
// may not be fetched there are none. The lines are parsed at each call.
func (r Rules) Signals(url string) []Preference {
	return r.preferences(url, signalKind, parseSignals)
}

// Usage returns the preferences that the Content-Usage lines of the crawler's groups state for a
// URL, by label (draft-ietf-aipref-attach-05). Lines count as with [Rules.Signals].
//
//	Content-Usage: /articles/ train-ai=n, search=y
//
// The preferences are a dictionary of RFC 9651. A line that is none states nothing, and neither
// does a member that is something else than the token y or n. The case of labels matters.
func (r Rules) Usage(url string) []Preference {
	return r.preferences(url, usageKind, parseUsage)
}

// UsageFromHeader returns the preferences of a response, from its Content-Usage fields.
func UsageFromHeader(h http.Header) []Preference {
	return parseUsage(strings.Join(h.Values("Content-Usage"), ","))
}

// MergePreferences combines several statements about one thing, such as those of a robots.txt and
// a header: what any of them denies is denied, and else what any of them grants is granted.
func MergePreferences(statements ...[]Preference) []Preference {
	all := slices.Concat(statements...)
	slices.SortFunc(all, func(a, b Preference) int {
		if c := cmp.Compare(a.Label, b.Label); c != 0 || a.Granted == b.Granted {
			return c
		}
		if b.Granted {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(all, func(a, b Preference) bool { return a.Label == b.Label })
}

// preferences finds the lines of one kind with the longest matching path.
func (r Rules) preferences(
	url string, of kind, parse func(string) []Preference,
) (found []Preference) {
	octets, path := uint32(0), target(url)
	for value := range r.values(of) {
		n, rest, ok := cutPath(value, path)
		if !ok || n < octets {
			continue
		}
		if n > octets {
			found, octets = nil, n
		}
		found = append(found, parse(rest)...)
	}
	if found == nil || !r.Allowed(url) {
		return nil
	}
	return MergePreferences(found)
}

// cutPath splits off the path pattern at the start of a value, if there is one, and reports
// whether it matches and how long it is. Its form and its matching are those of rules.
func cutPath(value, path string) (octets uint32, rest string, ok bool) {
	if value == "" || value[0] != '/' {
		return 0, value, true
	}
	written, rest := cutBlank(value)
	pattern, bits := settledPattern(written)
	r := newRule(pattern, 0, bits)
	return r.octets(), rest, r.matches(pattern, path)
}

// parseSignals reads a list of key=yes and key=no, and passes over what has another form.
func parseSignals(value string) (list []Preference) {
	for member := range strings.SplitSeq(value, ",") {
		label, wish, _ := strings.Cut(member, "=")
		label = strings.ToLower(trimRight(trimLeft(label)))
		switch wish = strings.ToLower(trimRight(trimLeft(wish))); {
		case label == "":
		case wish == "yes", wish == "no":
			list = append(list, Preference{label, wish == "yes"})
		}
	}
	return MergePreferences(list)
}

// parseUsage reads a dictionary whose members are the tokens y or n. The last of a key counts, as
// RFC 9651 (4.2.2) has it, even if it takes back what an earlier one said.
func parseUsage(value string) []Preference {
	said := make(map[string]string)
	s := scanner{rest: value}
	for label, wish := range s.dictionary() {
		said[label] = wish
	}
	if s.failed {
		return nil
	}
	var list []Preference
	for label, wish := range said {
		if wish == "y" || wish == "n" {
			list = append(list, Preference{label, wish == "y"})
		}
	}
	return MergePreferences(list)
}
