// Package usage reads what sites state about the use of their content by AI systems, in robots.txt
// and in header fields.
//
//	rules, err := cache.Load(ctx, url)
//	for _, p := range usage.ContentSignal(rules, url) {
//		fmt.Println(p.Label, p.Allowed, p.Line)
//	}
//
// It follows drafts and changes with them, so it does not promise the compatibility of the other
// packages: Content-Signal by contentsignals.org, Content-Usage by draft-ietf-aipref-attach-05 and
// draft-ietf-aipref-vocab (August 2026). A server may also demand a license, by Really Simple
// Licensing (RSL) 1.0, or a payment: see [ForSale].
//
// # What it does not do
//
// A preference is about the use of content after the fetch. It changes no verdict of robots.txt,
// and the package enforces none. It neither finds licenses nor pays. Lines are parsed at each
// call, which takes microseconds; with 26,000 lines in 500 KiB of a hostile file, much longer.
package usage

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/robots/robotstxt"
)

// Preference is what a site states about one use of its content. A use without a Preference is
// neither allowed nor disallowed.
type Preference struct {
	Label   string // of the use, such as search, ai-train or train-ai
	Allowed bool
	Line    int // of the robots.txt; 0 if it comes from a header
}

// ContentSignal returns the preferences that the Content-Signal lines of the crawler's groups state
// for a URL, sorted by label, in lower case. The key may also be written Content-Signals.
//
//	Content-Signal: search=yes, ai-input=no, ai-train=no
//
// A line may start with a path; without one it is for all URLs. Of several matching lines, those
// with the longest path count; if these disagree, no wins. A URL that may not be fetched has no
// preferences. Values other than yes and no are ignored.
func ContentSignal(rules robotstxt.Rules, url string) []Preference {
	return preferences(rules, url, parseSignals, "Content-Signal", "Content-Signals")
}

// ContentUsage returns the preferences that the Content-Usage lines of the crawler's groups state
// for a URL, sorted by label. Lines are selected as by [ContentSignal].
//
//	Content-Usage: /articles/ train-ai=n, search=y
//
// The preferences are a dictionary of RFC 9651. An invalid line states nothing, and neither does a
// member other than the token y or n. The case of labels matters. Labels that the vocabulary does
// not define are returned too; ignore those that you do not know.
func ContentUsage(rules robotstxt.Rules, url string) []Preference {
	return preferences(rules, url, parseUsage, "Content-Usage")
}

// FromHeader returns the preferences of a response, from its Content-Usage and Content-Signal
// fields, combined.
func FromHeader(h http.Header) []Preference {
	var list []Preference
	if values := h["Content-Usage"]; values != nil {
		list = parseUsage(strings.Join(values, ","), 0)
	}
	for _, key := range []string{"Content-Signal", "Content-Signals"} {
		if values := h[key]; values != nil {
			list = append(list, parseSignals(strings.Join(values, ","), 0)...)
		}
	}
	if list == nil { // by far the most common case
		return nil
	}
	return Combine(list)
}

// Combine merges several statements, such as those of a robots.txt and a header. A use is
// disallowed if any statement disallows it, and otherwise allowed if any allows it
// (draft-ietf-aipref-vocab, Combining Preferences). The result is sorted by label; of statements
// that agree it has the first line.
func Combine(statements ...[]Preference) []Preference {
	all := slices.Concat(statements...)
	rank := func(p Preference) int {
		if p.Allowed {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(a, b Preference) int {
		return cmp.Or(strings.Compare(a.Label, b.Label), rank(a)-rank(b), a.Line-b.Line)
	})
	return slices.CompactFunc(all, func(a, b Preference) bool { return a.Label == b.Label })
}

// preferences finds the lines that have one of the keys and the longest matching path.
func preferences(
	rules robotstxt.Rules, url string, parse func(string, int) []Preference, keys ...string,
) (found []Preference) {
	longest, match := 0, (func(string) (int, bool))(nil) // few lines have a path
	for record := range rules.Records() {
		isKey := func(key string) bool { return strings.EqualFold(key, record.Key) }
		if !slices.ContainsFunc(keys, isKey) {
			continue
		}
		octets, value := 0, record.Value
		if strings.HasPrefix(value, "/") {
			path, rest, _ := strings.Cut(strings.ReplaceAll(value, "\t", " "), " ")
			if match == nil {
				match = robotstxt.Matcher(url)
			}
			n, ok := match(path)
			if !ok {
				continue
			}
			octets, value = n, strings.TrimLeft(rest, " ")
		}
		if octets > longest {
			found, longest = nil, octets
		}
		if octets == longest {
			found = append(found, parse(value, record.Line)...)
		}
	}
	// Few files state anything, so whether the URL is allowed is checked last.
	if len(found) == 0 || !rules.Allowed(url) {
		return nil
	}
	return Combine(found)
}

// parseSignals reads a list of key=yes and key=no, and ignores everything else.
func parseSignals(value string, line int) (list []Preference) {
	for member := range strings.SplitSeq(strings.ToLower(value), ",") {
		label, wish, _ := strings.Cut(member, "=")
		label, wish = strings.Trim(label, " \t"), strings.Trim(wish, " \t")
		if label != "" && (wish == "yes" || wish == "no") {
			list = append(list, Preference{label, wish == "yes", line})
		}
	}
	return list
}

// parseUsage reads a dictionary whose members are the tokens y or n.
func parseUsage(value string, line int) (list []Preference) {
	for label, wish := range parseDictionary(value) {
		if wish == "y" || wish == "n" {
			list = append(list, Preference{label, wish == "y", line})
		}
	}
	return list
}

// ForSale reports whether a server wants something before it sends a resource, given the status and the
// header of its response: a payment, or a license token of RSL, for which it has a challenge of the scheme
// License.
func ForSale(status int, h http.Header) bool {
	switch status {
	case http.StatusPaymentRequired:
		return true
	case http.StatusUnauthorized, http.StatusForbidden:
		isLicense := func(challenge string) bool { return challenges(challenge, "License") }
		return slices.ContainsFunc(h["Www-Authenticate"], isLicense)
	}
	return false
}

// challenges reports whether a WWW-Authenticate field has a challenge of a scheme. Commas separate
// challenges as well as the parameters of one (RFC 9110, 11.6.1); a scheme is what stands alone
// before one or before a blank, outside of quotes.
func challenges(field, scheme string) bool {
	quoted, start := false, 0
	for i := 0; i <= len(field); i++ {
		switch {
		case i == len(field), field[i] == ',' && !quoted:
			word, rest, _ := strings.Cut(strings.Trim(field[start:i], " \t"), " ")
			if strings.EqualFold(word, scheme) && !strings.HasPrefix(strings.TrimLeft(rest, " \t"), "=") {
				return true
			}
			start = i + 1
		case field[i] == '"':
			quoted = !quoted
		case field[i] == '\\' && quoted:
			i++
		}
	}
	return false
}
