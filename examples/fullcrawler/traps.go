package main

import (
	"strconv"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/simhash"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter/trap"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// traps find the parts of hosts that a server generates without end. Pages that other sites have
// found are no evidence of a trap (Strange): some hosts answer for each page that does not
// exist with the same one. They live in
// memory: after a restart each is found again. Their methods are safe for concurrent use.
type traps struct {
	limits   trap.Limits
	contents *dedupe.Filter // of the pages of each host
}

// maxContents is the minimum number of contents that are remembered, in about 4 MB.
const maxContents = 1 << 20

// newTraps finds a trap after the given number of pages in a row without new content; 0 means
// never, by a nil traps.
func newTraps(repeats int, contents *dedupe.Filter) *traps {
	if repeats <= 0 {
		return nil
	}
	return &traps{
		limits:   trap.Limits{Repeats: repeats},
		contents: contents,
	}
}

// admit returns why a URL is not followed, or "".
func (t *traps) admit(it stage.Item) stage.Reason {
	if t == nil || it.Seeded() {
		return ""
	}
	return t.limits.Admit(it.URL)
}

// note records a page after its first visit. Its text is better evidence than its bytes, if it was
// extracted: a calendar without events has another date on each page.
func (t *traps) note(it stage.Item) {
	if t == nil || it.Sitemap != nil || !it.Visit.Before.IsZero() {
		return
	}
	content := it.Visit.State.Hash
	if text := it.Visit.State.Text; text != (simhash.Print{}) {
		content = text.Words
	}
	known := !t.contents.Add(weburl.Host(it.URL) + " " + strconv.FormatUint(content, 16))
	if !it.Strange || !known {
		t.limits.Fetched(it.URL, known)
	}
}
