package crawl

import (
	"container/heap"
	"time"

	"github.com/spinneret-go/spinneret/examples/cluster/internal/engine"
	"github.com/spinneret-go/spinneret/examples/cluster/internal/message"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
)

// A plan is the part of a partition of dedupe that knows which pages are due again, and when: pages
// to revisit or retry, and those whose host already has enough URLs in the memory of fetch. All
// other pages of the crawl are 64 bits in seen. It is not safe for concurrent use.
//
// A page is sent out with the number of its round, and its report has the same number. So a report
// that arrives twice, because two owners made the visit, counts once.
type plan struct {
	pages map[uint64]*planned
	queue []*planned // a heap: the earliest first
	open  int        // pages without a successful visit

	dirty map[uint64]string // URLs of what has changed since the last checkpoint, by key
}

// A planned page takes some 300 bytes with its URL.
type planned struct {
	key   uint64
	url   string
	state []byte // a record of package stage
	due   int64  // in Unix time
	round uint32
	out   bool // it was sent out, and its report has not come yet
	open  bool
	at    int // in the heap
}

// Bounds of a plan.
const (
	maxAdvance = 1024               // pages sent out by one tick
	lostAfter  = 7 * 24 * time.Hour // when a page without a report is sent out again
)

func newPlan() plan {
	return plan{pages: map[uint64]*planned{}, dirty: map[uint64]string{}}
}

// pageKey is the key of a page, or of a sitemap, which may have the URL of a page.
func pageKey(url string, isSitemap bool) uint64 {
	if isSitemap {
		return keyOf("sitemap " + url)
	}
	return keyOf(url)
}

// visited processes the report of a visit. Reports of earlier rounds are ignored.
func (p *plan) visited(it message.Item) {
	known, state, err := stage.ReadRecord(it.URL, it.State)
	if err != nil {
		return // it can never be decoded
	}
	key := pageKey(it.URL, known.Sitemap != nil)
	old := p.pages[key]
	if old != nil && (!old.out || it.Round != old.round) {
		return
	}
	if it.Due.IsZero() {
		p.forget(old)
		return
	}
	if old == nil {
		if it.Round > 0 {
			return // the page has been forgotten since
		}
		old = &planned{key: key, url: it.URL}
		p.pages[key] = old
		heap.Push(p, old)
	}
	p.setOpen(old, state.History.Last().IsZero())
	old.state, old.round, old.due, old.out = it.State, it.Round+1, it.Due.Unix(), false
	heap.Fix(p, old.at)
	p.dirty[key] = old.url
}

func (p *plan) setOpen(page *planned, open bool) {
	if page.open {
		p.open--
	}
	if page.open = open; open {
		p.open++
	}
}

func (p *plan) forget(page *planned) {
	if page == nil {
		return
	}
	p.setOpen(page, false)
	heap.Remove(p, page.at)
	delete(p.pages, page.key)
	p.dirty[page.key] = page.url
}

// hinted makes a known page due earlier if a sitemap says that it has changed since the last visit.
func (p *plan) hinted(key uint64, changed, at time.Time) {
	page := p.pages[key]
	if page == nil || page.out || changed.IsZero() || page.due <= at.Unix() {
		return
	}
	_, state, err := stage.ReadRecord(page.url, page.state)
	if err != nil || !state.History.Last().Before(changed) || state.History.Last().IsZero() {
		return
	}
	page.due = at.Unix()
	heap.Fix(p, page.at)
	p.dirty[key] = page.url
}

// requested makes a known page due for an operator. It reports whether there is no plan for the page:
// it has ended, or its first visit is still to come.
func (p *plan) requested(key uint64, at time.Time) (unplanned bool) {
	page := p.pages[key]
	if page == nil {
		return true
	}
	if !page.out && page.due > at.Unix() {
		page.due = at.Unix()
		heap.Fix(p, page.at)
		p.dirty[key] = page.url
	}
	return false
}

// advance sends out the due pages.
func (p *plan) advance(at time.Time, send func(it message.Item)) {
	for range maxAdvance {
		if len(p.queue) == 0 || p.queue[0].due > at.Unix() {
			return
		}
		page := p.queue[0]
		page.out, page.due = true, at.Add(lostAfter).Unix()
		heap.Fix(p, 0)
		p.dirty[page.key] = page.url
		known, _, _ := stage.ReadRecord(page.url, page.state) // it was decoded before
		it := itemOf(known)
		it.Round, it.State, it.Again = page.round, page.state, true
		send(it)
	}
}

// next returns when the next page is due, or the zero time if there is none.
func (p *plan) next() time.Time {
	if len(p.queue) == 0 {
		return time.Time{}
	}
	return time.Unix(p.queue[0].due, 0)
}

// item returns the stored form of a planned page. An item without a State deletes the page.
func (p *plan) item(key uint64, url string) message.Item {
	it := message.Item{Kind: message.Visited, URL: url}
	if page := p.pages[key]; page != nil {
		it.Round, it.State, it.Again = page.round, page.state, page.out
		it.Due = time.Unix(page.due, 0).UTC()
		return it
	}
	it.Status = uint32(key) // a sitemap may have the URL of a page
	it.Round = uint32(key >> 32)
	return it
}

// load restores a page from its stored form.
func (p *plan) load(it message.Item) error {
	if it.State == nil {
		page := p.pages[uint64(it.Round)<<32|uint64(it.Status)]
		p.forget(page)
		return nil
	}
	known, state, err := stage.ReadRecord(it.URL, it.State)
	if err != nil {
		return err
	}
	key := pageKey(it.URL, known.Sitemap != nil)
	page := p.pages[key]
	if page == nil {
		page = &planned{key: key, url: it.URL}
		p.pages[key] = page
		heap.Push(p, page)
	}
	page.state, page.round, page.due, page.out = it.State, it.Round, seconds(it.Due), it.Again
	p.setOpen(page, state.History.Last().IsZero())
	heap.Fix(p, page.at)
	return nil
}

func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// Len, Less, Swap, Push and Pop implement heap.Interface. Pages that are due at the same time are
// ordered by key: every owner must send them out in the same order.
func (p *plan) Len() int { return len(p.queue) }

// Less is a part of heap.Interface.
func (p *plan) Less(i, j int) bool {
	a, b := p.queue[i], p.queue[j]
	return a.due < b.due || a.due == b.due && a.key < b.key
}

// Swap is a part of heap.Interface.
func (p *plan) Swap(i, j int) {
	p.queue[i], p.queue[j] = p.queue[j], p.queue[i]
	p.queue[i].at, p.queue[j].at = i, j
}

// Push is a part of heap.Interface.
func (p *plan) Push(x any) {
	page := x.(*planned)
	page.at = len(p.queue)
	p.queue = append(p.queue, page)
}

// Pop is a part of heap.Interface.
func (p *plan) Pop() any {
	last := p.queue[len(p.queue)-1]
	p.queue[len(p.queue)-1] = nil
	p.queue = p.queue[:len(p.queue)-1]
	return last
}

// itemOf converts a page from the form of package stage to an item.
func itemOf(known stage.Item) message.Item {
	it := message.Item{
		Kind: message.Page, URL: known.URL, Depth: uint32(known.Depth), Hops: uint32(known.Hops),
	}
	if known.LastMod != 0 {
		it.LastMod = time.Unix(known.LastMod, 0).UTC()
	}
	if known.Sitemap != nil {
		it.Kind, it.For = message.Sitemap, known.Sitemap.Server
		if known.Sitemap.Nested {
			it.Status = 1
		}
	}
	return it
}

// knownOf is the inverse of itemOf.
func knownOf(it message.Item) stage.Item {
	known := stage.Item{URL: it.URL, Depth: int(it.Depth), Hops: int(it.Hops)}
	known.LastMod = seconds(it.LastMod)
	if it.Kind == message.Sitemap {
		known.Sitemap = &stage.Sitemap{Server: it.For, Nested: it.Status != 0}
	}
	return known
}

// A state and a plan are one partition; see engine.Timed.
var _ engine.Timed = (*seen)(nil)
