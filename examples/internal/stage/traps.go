package stage

import (
	"hash/maphash"
	"strconv"
	"sync"

	"github.com/spinneret-go/spinneret/dedupe"
	"github.com/spinneret-go/spinneret/dedupe/simhash"
	"github.com/spinneret-go/spinneret/dedupe/urlfilter/trap"
	"github.com/spinneret-go/spinneret/dedupe/weburl"
)

// Traps finds the parts of hosts that a server generates without end. Only pages that their own
// site links to are evidence of a trap: another site can link to any number of pages that do not
// exist, and some hosts answer for each of them with the same page. It lives in memory: after a
// restart each trap is found again. Its methods are safe for concurrent use.
type Traps struct {
	limits   trap.Limits
	contents *dedupe.Filter // of the pages of each host
	seed     maphash.Seed

	mu      sync.Mutex
	strange map[uint64]struct{} // hashes of unvisited pages that only other sites link to
}

// maxContents is the minimum number of contents that are remembered, in about 4 MB, and maxStrange
// that of pages, in about 10 MB.
const maxContents, maxStrange = 1 << 20, 1 << 18

// NewTraps finds a trap after the given number of pages in a row without new content; 0 means
// never, by a nil Traps.
func NewTraps(repeats int) *Traps {
	if repeats <= 0 {
		return nil
	}
	return &Traps{
		limits:   trap.Limits{Repeats: repeats},
		contents: dedupe.New(dedupe.Options{Capacity: maxContents, Generations: 2}),
		seed:     maphash.MakeSeed(), strange: map[uint64]struct{}{},
	}
}

// Admit returns why a URL is not followed, or "".
func (t *Traps) Admit(it Item) Reason {
	if t == nil || it.Seeded() {
		return ""
	}
	if why := t.limits.Admit(it.URL); why != "" {
		return why
	}
	own := it.From == "" || weburl.Host(it.From) == weburl.Host(it.URL) ||
		weburl.Site(it.From) == weburl.Site(it.URL)
	t.mu.Lock()
	defer t.mu.Unlock()
	if own && len(t.strange) == 0 {
		return ""
	}
	page := maphash.String(t.seed, it.URL)
	if _, strange := t.strange[maphash.String(t.seed, it.From)]; !own || it.Hops > 0 && strange {
		makeRoom(t.strange, maxStrange)
		t.strange[page] = struct{}{}
	} else {
		delete(t.strange, page)
	}
	return ""
}

// Note records a page after its first visit. Its text is better evidence than its bytes, if it was
// extracted: a calendar without events has another date on each page.
func (t *Traps) Note(it Item) {
	if t == nil || it.Sitemap != nil || !it.Visit.Before.IsZero() {
		return
	}
	content := it.Visit.State.Hash
	if text := it.Visit.State.Text; text != (simhash.Print{}) {
		content = text.Words
	}
	known := !t.contents.Add(weburl.Host(it.URL) + " " + strconv.FormatUint(content, 16))
	page := maphash.String(t.seed, it.URL)
	t.mu.Lock()
	_, strange := t.strange[page]
	delete(t.strange, page)
	t.mu.Unlock()
	if !strange || !known {
		t.limits.Fetched(it.URL, known)
	}
}
