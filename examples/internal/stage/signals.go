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

// Uses are the labels of Content-Usage and Content-Signal.
var Uses = []string{"train-ai", "ai-train", "ai-input", "search"}

// maxStated bounds the text of labels that are not in Uses. It is kept with every page, and a robots.txt may
// have half a megabyte of them.
const maxStated = 200

// Stated returns signals in the syntax of the drafts, such as "search=y train-ai=n".
func Stated(signals []usage.Preference) string {
	words, others := make([]string, 0, len(Uses)), 0
	for _, s := range signals {
		word := s.Label + "=n"
		if s.Allowed {
			word = s.Label + "=y"
		}
		if !slices.Contains(Uses, s.Label) {
			if others += len(word) + 1; others > maxStated {
				continue
			}
		}
		words = append(words, word)
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
