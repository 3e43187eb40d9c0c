package main

import (
	"strconv"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/simhash"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter/trap"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// traps finds the parts of hosts that a server makes up without end. It lives in memory: after a
// restart each trap is found once more.
type traps struct {
	trap.Limits
	contents *dedupe.Filter // of the pages of each host
}

// maxContents is how many contents are remembered at least, in some 4 MB.
const maxContents = 1 << 20

func newTraps(repeats int) *traps {
	if repeats <= 0 {
		return nil
	}
	return &traps{trap.Limits{Repeats: repeats},
		dedupe.New(dedupe.Options{Capacity: maxContents, Generations: 2, Recent: -1})}
}

// admit returns why a URL is left alone, or "".
func (t *traps) admit(it stage.Item) stage.Reason {
	if t == nil || it.Seeded() {
		return ""
	}
	return t.Admit(it.URL)
}

// fetched notes a page after its first visit. Its text says more than its bytes, if it was looked at:
// a calendar without events has another date on each page.
func (t *traps) fetched(it stage.Item) {
	if t == nil || it.Sitemap != nil || !it.Visit.Before.IsZero() {
		return
	}
	content := it.Visit.State.Hash
	if text := it.Visit.State.Text; text != (simhash.Print{}) {
		content = text.Words
	}
	key := weburl.Host(it.URL) + " " + strconv.FormatUint(content, 16)
	t.Fetched(it.URL, !t.contents.Add(key))
}
