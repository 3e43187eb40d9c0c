package stage

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spinneret-go/spinneret/robots/usage"
)

// Signals returns what a site states about the use of a page by AI systems, in robots.txt and in
// the header of a response, which may be nil. It requests no missing rules.
func (r *Robots) Signals(url string, h http.Header, now time.Time) []usage.Preference {
	header := usage.FromHeader(h)
	rules, known := r.rules.Get(url, now)
	if !known {
		return header
	}
	return usage.Combine(usage.ContentSignal(rules, url), usage.ContentUsage(rules, url), header)
}

// Stated returns signals in the syntax of the drafts, such as "search=y train-ai=n".
func Stated(signals []usage.Preference) string {
	words := make([]string, 0, len(signals))
	for _, s := range signals {
		value := "=n"
		if s.Allowed {
			value = "=y"
		}
		words = append(words, s.Label+value)
	}
	return strings.Join(words, " ")
}

// Against returns the first signal that disallows one of some uses, or "".
func Against(signals []usage.Preference, uses []string) string {
	for _, s := range signals {
		if !s.Allowed && slices.Contains(uses, s.Label) {
			return s.Label + "=n"
		}
	}
	return ""
}
