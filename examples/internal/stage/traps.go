package stage

import (
	"strconv"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/simhash"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter/trap"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// Traps finds the parts of hosts that a server makes up without end. It lives in memory: after a
// restart each trap is found once more. Its methods are safe for concurrent use.
type Traps struct {
	limits   trap.Limits
	contents *dedupe.Filter // of the pages of each host
}

// maxContents is how many contents are remembered at least, in some 4 MB.
const maxContents = 1 << 20

// NewTraps finds a trap when so many pages in a row say nothing new; 0 finds none, by a nil Traps.
func NewTraps(repeats int) *Traps {
	if repeats <= 0 {
		return nil
	}
	return &Traps{trap.Limits{Repeats: repeats},
		dedupe.New(dedupe.Options{Capacity: maxContents, Generations: 2, Recent: -1})}
}

// Admit returns why a URL is left alone, or "".
func (t *Traps) Admit(it Item) Reason {
	if t == nil || it.Seeded() {
		return ""
	}
	return t.limits.Admit(it.URL)
}

// Note notes a page after its first visit. Its text says more than its bytes, if it was looked at:
// a calendar without events has another date on each page.
func (t *Traps) Note(it Item) {
	if t == nil || it.Sitemap != nil || !it.Visit.Before.IsZero() {
		return
	}
	content := it.Visit.State.Hash
	if text := it.Visit.State.Text; text != (simhash.Print{}) {
		content = text.Words
	}
	key := weburl.Host(it.URL) + " " + strconv.FormatUint(content, 16)
	t.limits.Fetched(it.URL, !t.contents.Add(key))
}
